// `npm run licences`: lists the installed production dependencies by name, version and license.
// The allowed licenses are listed here, and test/dependencies.test.ts checks every package.
import { existsSync, readFileSync } from 'node:fs'
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

/** Returns the installed production packages. Optional packages may be missing. */
export function production(packages: Readonly<Record<string, Locked>>): Licence[] {
  return Object.entries(packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .flatMap(([path, { optional, version }]) => {
      const file = join(root, path, 'package.json')
      if (optional && !existsSync(file)) return []
      const { name, license } = JSON.parse(readFileSync(file, 'utf8')) as { name: string; license?: string }
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
