// Reads a query string by the contract. Splits lists at unescaped commas, and converts booleans,
// dates and timestamps to their canonical form. The validator refuses invalid values later.

import { noteUse } from '../lifetime.ts'
import { Problem } from '../output/problems.ts'
import { canonicalDate, canonicalInstant, canonicalTime } from './formats.ts'
import { type Asked, booleans, kindOf, type Reading, type Shape, typesOf } from './normalize.ts'
import { composed, textFault, withNewlines } from './text-rules.ts'
import { numberIn } from './unsafe-numbers.ts'
import type { Finding } from './validation-errors.ts'

/** The schemas of the query parameters, by parameter name. */
export type Parameters = Readonly<Record<string, Shape>>

/**
 * Returns the parameters by name. A single-valued parameter that was sent twice becomes a list,
 * which the validator refuses. Adds invalid texts to `found`. Throws 400 for invalid
 * percent-encoding.
 */
export function readQuery(
  raw: string,
  parameters: Parameters,
  { zone, strict }: Reading,
  found: Finding[],
  asked: Asked = { uses: [], oldNames: new Map() },
): Record<string, unknown> {
  if (raw === '') return {}
  if (!isDecodable(raw)) throw new Problem('malformed_request', 'The query string is not valid percent-encoded UTF-8.')
  const query = Object.create(null) as Record<string, unknown>
  const objects = new Map<string, Map<string, unknown>>()
  for (const [name, sent] of new URLSearchParams(withEscapedCommas(raw, parameters))) {
    const part = partOf(name, parameters)
    if (part) {
      const text = withNewlines(sent)
      const fault = textFault(text)
      if (fault !== undefined) found.push([`query.${name}`, fault])
      const parts = objects.get(part.of) ?? new Map<string, unknown>()
      objects.set(part.of, parts.set(part.key, parts.has(part.key) ? [parts.get(part.key), text].flat() : text))
      continue
    }
    const shape = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    if (shape === undefined && !strict) continue
    const text = withNewlines(sent)
    const fault = textFault(text)
    if (fault !== undefined) found.push([`query.${name}`, fault])
    const { items, 'x-alias': alias = name } = shape ?? {}
    if (shape) noteUse(asked.uses, `?${name}`, shape)
    if (alias !== name) asked.oldNames.set(`query.${alias}`, `query.${name}`)
    const value = items
      ? splitList(text).map((each) => readValue(renamed(each, name, items, asked), items, zone))
      : readValue(text, shape, zone)
    const lack = shape && listFault(name, text, shape)
    if (lack !== undefined) found.push([`query.${name}`, lack])
    const before = query[alias]
    query[alias] = before === undefined ? value : [before, value].flat()
  }
  for (const [name, parts] of objects)
    query[name] =
      query[name] === undefined ? Object.fromEntries(parts) : [query[name], Object.fromEntries(parts)].flat()
  return { ...query }
}

/**
 * Escapes the encoded commas in lists of texts: with `explode: false`, `%2C` belongs to a value. In
 * lists of other values it separates too, because no number and no date has a comma.
 */
const withEscapedCommas = (raw: string, parameters: Parameters): string =>
  raw
    .split('&')
    .map((pair) => {
      if (!/%2c/i.test(pair)) return pair
      const [name = ''] = [...new URLSearchParams(pair).keys()]
      const items = Object.hasOwn(parameters, name) ? parameters[name]?.items : undefined
      return items && isText(items) ? pair.replaceAll(/(?<!\\|%5c)%2c/gi, '%5C%2C') : pair
    })
    .join('&')

/** Returns whether values are free texts. The names in `sort` are an enum, or one by `else`. */
const isText = (shape: Shape & { else?: unknown }): boolean =>
  typesOf(shape).every((each) => each === 'string') &&
  shape.enum === undefined &&
  shape.else === undefined &&
  kindOf(shape) === undefined

/**
 * Splits `custom_attributes[industry]` into the parameter name and the key. Returns undefined if
 * the parameter is not an object.
 */
function partOf(name: string, parameters: Parameters): { of: string; key: string } | undefined {
  const [, of = '', key = ''] = /^([a-z_]+)\[(.*)\]$/s.exec(name) ?? []
  if (Object.hasOwn(parameters, name) || !Object.hasOwn(parameters, of)) return undefined
  return typesOf(parameters[of] ?? {}).includes('object') ? { of, key } : undefined
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Returns the new name of an old value of a list, such as a sort key. */
function renamed(text: string, parameter: string, items: Shape, { uses }: Asked): string {
  const aliases = items['x-aliases'] ?? {}
  const part = Object.hasOwn(aliases, text) ? aliases[text] : undefined
  if (part) noteUse(uses, `?${parameter}=${text}`, part)
  return part?.['x-alias'] ?? text
}

/** Converts a text by the schema of its parameter. */
function readValue(text: string, shape: Shape | undefined, zone: string): unknown {
  if (shape === undefined) return text
  const allowed = typesOf(shape)
  if (allowed.includes('boolean')) return String(booleans.get(text) ?? text)
  // Ajv would coerce `0x10`, `1e1` and `+1` to numbers. As a list, the text is refused.
  if (allowed.includes('integer') || allowed.includes('number'))
    return numberIn(text, { isWhole: !allowed.includes('number') }) === undefined ? [text] : text.trim()
  const kind = kindOf(shape)
  if (kind === 'date') return canonicalDate(text.trim(), zone) ?? text
  if (kind === 'date-time') return canonicalTime(text.trim(), zone) ?? text
  if (kind === 'instant') return canonicalInstant(text.trim(), zone) ?? ''
  return text
}

/**
 * Returns an error for a list that would mean less than it says: a filter with an empty entry that
 * is not a free text, which is often a variable without a value, or a list that sorts by a key
 * twice. `minItems` refuses other empty lists.
 */
function listFault(name: string, text: string, { items, minItems }: Shape): string | undefined {
  const entries = text.split(',').map((each) => each.trim())
  if (items && !isText(items) && minItems === undefined && entries.includes(''))
    return entries.length === 1 ? 'Must not be empty.' : 'Must not have an empty entry.'
  const keys = name === 'sort' ? splitList(text).map((key) => key.replace(/^-/, '')) : []
  const twice = keys.find((key, at) => keys.indexOf(key) < at)
  return twice === undefined ? undefined : `Sorts by ${twice} twice.`
}

/** Splits a text at its commas. `\,` is a comma inside a value. */
export function splitList(text: string): string[] {
  return text
    .split(/(?<!\\),/)
    .map((each) => composed(each.replaceAll('\\,', ',').trim()))
    .filter((each) => each !== '')
}
