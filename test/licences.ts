// `npm run licences`: lists the installed production dependencies by name, version and license.
// The allowed licenses are listed here, and test/dependencies.test.ts checks every package.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

export interface Locked {
  /** The name in the registry, if it differs from the name in node_modules. */
  name?: string
  version: string
  dev?: boolean
  optional?: boolean
  integrity?: string
  resolved?: string
  hasInstallScript?: boolean
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

export interface Licence {
  name: string
  version: string
  licence: string
}

/**
 * Licenses that allow use, modification and redistribution in a work with another license, and
 * require only a notice.
 */
export const allowed: readonly string[] =
  // OFL-1.1 is for fonts, which PDFs may embed. It only forbids selling the fonts alone.
  'MIT MIT-0 ISC BSD-2-Clause BSD-3-Clause 0BSD Apache-2.0 BlueOak-1.0.0 Unlicense CC0-1.0 Zlib OFL-1.1 PSF-2.0 Python-2.0'.split(
    ' ',
  )

/** The licenses of packages without a declared license. */
export const exceptions: Readonly<Record<string, { licence: string; why: string }>> = {
  'png-js': { licence: 'MIT', why: 'its LICENSE file is the text of MIT; its package.json names none' },
}

export const lockfile = (): Record<string, Locked> =>
  (JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> }).packages

const nameOf = (path: string): string => path.split('/', path.startsWith('@') ? 2 : 1).join('/')

/** Returns the names of the packages that the program imports. The build bundles most of them. */
export function importedPackages(): string[] {
  const texts = ['src', 'db'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.endsWith('.gen.ts'))
      .map((path) => readFileSync(join(root, folder, path), 'utf8')),
  )
  const pattern = /(?:from|import|import\(|resolve\(|[)]\()\s*'((?!node:)[@\w][^']*)'/g
  return [...new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, path = '']) => nameOf(path))))]
}

/** Returns the path that Node resolves a name to in the package at `from`. */
function locate(packages: Readonly<Record<string, Locked>>, from: string, name: string): string | undefined {
  const path = from === '' ? `node_modules/${name}` : `${from}/node_modules/${name}`
  if (path in packages) return path
  return from === ''
    ? undefined
    : locate(packages, from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/'))), name)
}

/** Returns the installed packages that run in production, bundled or beside the bundle. */
export function production(packages: Readonly<Record<string, Locked>>): Licence[] {
  const { '': manifest } = packages
  const found = new Set<string>()
  const add = (from: string, name: string): void => {
    const path = locate(packages, from, name)
    if (path === undefined || found.has(path)) return
    found.add(path)
    const { dependencies, optionalDependencies } = packages[path] ?? {}
    for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) add(path, next)
  }
  const roots = [
    ...Object.keys({ ...manifest?.dependencies, ...manifest?.optionalDependencies }),
    ...importedPackages(),
  ]
  // The types are compiled in a checkout only.
  for (const name of roots.filter((each) => each !== 'openapi-typescript')) add('', name)
  return [...found]
    .flatMap((path) => {
      const file = join(root, path, 'package.json')
      if (packages[path]?.optional && !existsSync(file)) return []
      const { name, version, license } = JSON.parse(readFileSync(file, 'utf8')) as Record<
        'name' | 'version',
        string
      > & {
        license?: string
      }
      return [{ name, version, licence: license ?? exceptions[name]?.licence ?? 'none' }]
    })
    .sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0))
}

/**
 * Returns whether an SPDX expression is allowed. `A OR B` needs one license, `A AND B` both.
 * Supports parentheses only around the whole expression.
 */
export const isAllowed = (expression: string): boolean =>
  expression
    .replace(/^\((.*)\)$/, '$1')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((licence) => allowed.includes(licence)))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = production(lockfile())
  for (const { name, version, licence } of found) console.log(`${name}\t${version}\t${licence}`)
  const refused = found.filter(({ licence }) => !isAllowed(licence))
  console.log(`${found.length} packages, ${refused.length} of a licence that is not allowed.`)
  if (refused.length > 0) process.exitCode = 1
}
