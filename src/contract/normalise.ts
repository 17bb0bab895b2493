// Brings what a client sends into the form the contract describes, before it is validated: trims strings, reads the
// accepted spellings of booleans, dates and amounts, drops read-only keys (DOMAIN 3.2, 3.4). It never guesses: what it does
// not recognise stays as it is, and the validator refuses it.
import { maxFields } from './findings.ts'
import { canonicalDate, canonicalTime, decimalText } from './formats.ts'
import { isExactNumber } from './numbers.ts'
import type { Ignorable } from './operations.gen.ts'
import { composed, withNewlines } from './texts.ts'

/** The parts of a JSON schema that matter here; the rest of the keywords are the validator's. */
export interface Shape {
  type?: string | string[]
  format?: string
  properties?: Record<string, Shape>
  additionalProperties?: boolean | Shape
  required?: string[]
  maxLength?: number
  maxItems?: number
  items?: Shape
  anyOf?: Shape[]
  oneOf?: Shape[]
  /** Its texts are bytes, a character each: neither trimmed nor looked into. */
  'x-bytes'?: boolean
}

export interface Reading {
  zone: string
  /** Off: unknown keys are dropped instead of refused (ACCORD_STRICT=off). */
  strict: boolean
}

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
export const types = (shape: Shape): string[] => (shape.type === undefined ? [] : [shape.type].flat())
export const booleans = new Map<unknown, boolean>([
  [0, false],
  [1, true],
  ['0', false],
  ['1', true],
  ['false', false],
  ['true', true],
])

/** A body by its schema. Returns a new value; `undefined` for a required string that is empty, that is: missing. */
export function normaliseBody(value: unknown, shape: Shape, ignorable: Ignorable | null, reading: Reading): unknown {
  const branch = choose(value, shape)
  if (branch !== shape) return normaliseBody(value, branch, ignorable, reading)
  if (Array.isArray(value)) {
    // One entry too many is enough to be refused; the others would only be reported one by one.
    const { items, maxItems = Number.POSITIVE_INFINITY } = shape
    const entries = value.length > maxItems ? value.slice(0, maxItems + 1) : value
    return items ? entries.map((each) => normaliseBody(each, items, ignorable, reading) ?? null) : entries
  }
  if (isObject(value)) return normaliseObject(value, shape, ignorable, reading)
  return normaliseScalar(value, shape, reading)
}

function normaliseObject(value: Json, shape: Shape, ignorable: Ignorable | null, reading: Reading): Json {
  const { properties } = shape
  if (!properties) return openTexts(value) as Json
  const result: Json = {}
  let unknown = 0
  for (const [key, each] of Object.entries(value)) {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (property === undefined) {
      if (ignorable?.keys.includes(key) || (!reading.strict && shape.additionalProperties === false)) continue
      if (++unknown > maxFields + 1) continue
      // defineProperty, because `__proto__` must arrive at the validator as the unknown key it is
      Object.defineProperty(result, key, { value: each, enumerable: true, configurable: true, writable: true })
      continue
    }
    const normalised = normaliseBody(each, property, ignorable?.nested[key] ?? null, reading)
    if (normalised !== undefined) result[key] = normalised
  }
  return result
}

/** What the contract leaves open is read where its schema is known (open.ts); its texts are of one kind like all others. */
function openTexts(value: unknown): unknown {
  if (typeof value === 'string') return composed(withNewlines(value))
  if (Array.isArray(value)) return value.map(openTexts)
  if (!isObject(value)) return value
  const result: Json = {}
  for (const [key, each] of Object.entries(value))
    Object.defineProperty(result, key, {
      value: openTexts(each),
      enumerable: true,
      configurable: true,
      writable: true,
    })
  return result
}

function normaliseScalar(value: unknown, shape: Shape, { zone }: Reading): unknown {
  const allowed = types(shape)
  if (allowed.includes('boolean') && booleans.has(value)) return booleans.get(value)
  if (typeof value !== 'string') return value
  if (allowed.includes('string')) {
    if (shape.format === 'password' || shape.format === 'file') return value
    const text = composed(withNewlines(value).trim())
    if (text === '') return allowed.includes('null') ? null : undefined
    if (shape.format === 'date-time') return canonicalTime(text, zone) ?? text
    if (shape.format === 'date') return canonicalDate(text, zone) ?? text
    if (shape.format === 'country') return text.toUpperCase()
    return text
  }
  const trimmed = value.trim()
  if (trimmed === '' && allowed.includes('null')) return null
  if (allowed.includes('number') && shape.format !== undefined && decimalText.test(trimmed) && isExactNumber(trimmed))
    return Number(trimmed)
  return value
}

/** The branch of a union a value is meant for, by its JSON type; the shape itself when there is no union. */
function choose(value: unknown, shape: Shape): Shape {
  const branches = shape.anyOf ?? shape.oneOf
  if (!branches) return shape
  const kind = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
  return branches.find((each) => types(each).includes(kind)) ?? shape
}
