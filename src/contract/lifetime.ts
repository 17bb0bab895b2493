// Deprecated operations, parameters and keys: notes their use by a call, and tells the caller in
// the headers `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link`.
import { operations } from './operations.gen.ts'

/** The keys of the contract about how long a part exists. */
export interface Lifetime {
  deprecated?: boolean
  /** The day of the deprecation, such as `2026-12-01`. */
  'x-deprecated-on'?: string
  /** The day until which the part is promised. */
  'x-sunset'?: string
  /** The operation, parameter or key to use instead. */
  'x-replaced-by'?: string
  /** The new name of the same value. */
  'x-alias'?: string
}

/** The use of a deprecated part. `name` is empty for the operation itself. */
export interface Use {
  name: string
  on: string
  sunset: string
}

export function lifetimeOf({ deprecated, ...part }: Lifetime): Lifetime {
  if (deprecated !== true) return {}
  const kept: Lifetime = { deprecated }
  for (const key of ['x-deprecated-on', 'x-sunset', 'x-replaced-by', 'x-alias'] as const)
    if (part[key] !== undefined) kept[key] = part[key]
  return kept
}

/** Adds a deprecated part to the uses of a call. */
export function noteUse(uses: Use[], name: string, part: Lifetime): void {
  if (part.deprecated === true && !uses.some((each) => each.name === name))
    uses.push({ name, on: part['x-deprecated-on'] ?? '', sunset: part['x-sunset'] ?? '' })
}

const changesPath = `${operations.getDocumentation.path}/changes`

/** Returns the headers for a call that used deprecated parts. Returns none for other calls. */
export function deprecationHeaders(uses: readonly Use[], successor: string | undefined): Record<string, string> {
  const [on] = uses.map((each) => each.on).sort()
  const [sunset] = uses.map((each) => each.sunset).sort()
  if (on === undefined || sunset === undefined) return {}
  const links = [
    `<${changesPath}>; rel="deprecation"; type="text/html"`,
    ...(successor === undefined ? [] : [`<${successor}>; rel="successor-version"`]),
  ]
  return {
    deprecation: `@${Math.floor(Date.parse(on) / 1000)}`,
    sunset: new Date(sunset).toUTCString(),
    link: links.join(', '),
  }
}
