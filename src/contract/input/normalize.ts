// Normalizes a body before validation (DOMAIN 3.2, 3.4). Trims strings, reads the accepted
// spellings of booleans, dates and amounts, and drops read-only keys. An unrecognized value stays
// unchanged, so that the validator refuses it.

import type { Ignorable, OperationFact } from '../operations.gen.ts'
import { canonicalDate, canonicalTime, decimalText } from './formats.ts'
import { composed, withNewlines } from './text-rules.ts'
import { isExactNumber } from './unsafe-numbers.ts'
import { type Finding, maxFields } from './validation-errors.ts'

/** The JSON Schema keywords that this folder reads. Ajv also reads other keywords. */
export interface Shape {
  type?: string | string[]
  format?: string
  /**
   * The kind of the value in this API. Beside it, `format` only describes the value to other
   * programs.
   */
  'x-value'?: string
  pattern?: string
  minLength?: number
  properties?: Record<string, Shape>
  additionalProperties?: boolean | Shape
  required?: string[]
  maxLength?: number
  maxItems?: number
  items?: Shape
  enum?: readonly unknown[]
  anyOf?: Shape[]
  oneOf?: Shape[]
  /**
   * Whether the texts of the form hold bytes, one per character. Such texts are neither trimmed nor
   * checked.
   */
  'x-bytes'?: boolean
}

export interface Reading {
  zone: string
  /** False when unknown keys are dropped; true when they are refused. Set by ACCORD_STRICT. */
  strict: boolean
  /**
   * True for JSON, where only a JSON number is a number. False for a form or a file, where text may
   * represent a number or a boolean.
   */
  exact?: boolean
}

/** Returns the `x-value` of a schema. Without an `x-value`, returns its `format`. */
export const kindOf = (shape: Shape): string | undefined => shape['x-value'] ?? shape.format

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
export const typesOf = (shape: Shape): string[] => (shape.type === undefined ? [] : [shape.type].flat())
export const booleans = new Map<unknown, boolean>([
  [0, false],
  [1, true],
  ['0', false],
  ['1', true],
  ['false', false],
  ['true', true],
])

/** The current position in the body, with the errors so far and the reply-only keys. */
interface Place {
  path: readonly string[]
  ignorable: Ignorable | null
  /**
   * Whether the object at this position becomes a new record. In a new record, a reply-only key is
   * an error.
   */
  isNew: boolean
  found: Finding[]
}

export interface Intake {
  /**
   * The reply-only keys: the operation's replies have these keys, but its request body does not.
   */
  ignorable: Ignorable | null
  /** True when the body creates a record; false when the body changes a record. */
  creates: boolean
}

export const intakeOf = ({ method, ignorable }: Pick<OperationFact, 'method' | 'ignorable'>): Intake => ({
  ignorable,
  creates: method === 'post',
})

/** The settings for a value that does not belong to an operation. */
export const plainIntake: Intake = { ignorable: null, creates: false }

/**
 * Returns a normalized copy of a body (DOMAIN 3.2, 3.4). Adds to `found` the errors that the
 * validator cannot detect afterwards: an empty text where a text is required, and a reply-only key
 * whose removal would be silent.
 */
export function normalizeBody(
  value: unknown,
  shape: Shape,
  { ignorable, creates }: Intake,
  reading: Reading,
  found: Finding[] = [],
): unknown {
  const keys = isObject(value) && reading.strict && !creates ? Object.keys(value) : []
  if (keys.length > 0 && ignorable && keys.every((key) => ignorable.keys.includes(key)))
    for (const key of keys) found.push([key, readOnly(ignorable, key)])
  return normalize(value, shape, { path: [], ignorable, isNew: creates, found }, reading)
}

/** Returns the error sentence for a reply-only key. */
const readOnly = ({ hints }: Ignorable, key: string): string =>
  `Read-only: ${(hints && Object.hasOwn(hints, key) ? hints[key] : undefined) ?? 'the server sets it'}.`

function normalize(value: unknown, shape: Shape, place: Place, reading: Reading): unknown {
  const branch = choose(value, shape)
  if (branch !== shape) return normalize(value, branch, place, reading)
  if (Array.isArray(value)) {
    // Keeps one entry more than allowed, so that the validator refuses the list. The other entries
    // are dropped, because they would only add errors.
    const { items, maxItems = Number.POSITIVE_INFINITY } = shape
    const entries = value.length > maxItems ? value.slice(0, maxItems + 1) : value
    if (!items) return entries
    return entries.map((each, index) => normalize(each, items, below(place, String(index), each), reading) ?? null)
  }
  if (isObject(value)) return normalizeObject(value, shape, place, reading)
  return normalizeScalar(value, shape, reading)
}

/**
 * Returns the position one level deeper. An object with an `id` refers to an existing record, so
 * reply-only keys are allowed in this object.
 */
const below = (place: Place, key: string, value: unknown): Place => ({
  ...place,
  path: [...place.path, key],
  isNew: place.isNew && !namesRecord(value),
})

const namesRecord = (value: unknown): boolean => isObject(value) && Object.hasOwn(value, 'id') && value.id !== null

function normalizeObject(value: Json, shape: Shape, place: Place, reading: Reading): Json {
  const { properties } = shape
  if (!properties) return openTexts(value) as Json
  const { ignorable, path, found } = place
  const result: Json = {}
  let unknown = 0
  for (const [key, each] of Object.entries(value)) {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (property === undefined) {
      const isIgnorable = ignorable?.keys.includes(key) ?? false
      if (!reading.strict && (isIgnorable || shape.additionalProperties === false)) continue
      if (ignorable && isIgnorable) {
        if (place.isNew) found.push([[...path, key].join('.'), readOnly(ignorable, key)])
        continue
      }
      if (++unknown > maxFields + 1) continue
      // Plain assignment would set the prototype for the key `__proto__`. defineProperty creates an
      // ordinary key, which the validator refuses as unknown.
      Object.defineProperty(result, key, { value: each, enumerable: true, configurable: true, writable: true })
      continue
    }
    const inner = { ...below(place, key, each), ignorable: ignorable?.nested[key] ?? null }
    // A nested object without an id is a new record, even when the operation is an update.
    if (isObject(each) && !namesRecord(each) && inner.ignorable) inner.isNew = true
    const normalized = normalize(each, property, inner, reading)
    if (normalized !== undefined) result[key] = normalized
    else if (each !== undefined) found.push([inner.path.join('.'), 'The field is required.'])
  }
  return result
}

/**
 * Normalizes the texts of a value that has no schema in the contract. open-schema.ts validates such
 * a value.
 */
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

function normalizeScalar(value: unknown, shape: Shape, { zone, exact = false }: Reading): unknown {
  const allowed = typesOf(shape)
  if (allowed.includes('boolean') && booleans.has(value)) return booleans.get(value)
  if (typeof value !== 'string') return value
  if (allowed.includes('string')) {
    const kind = kindOf(shape)
    if (kind === 'password' || kind === 'file') return value
    // An enum value is compared untrimmed, because an enum may list a tab.
    const text = shape.enum ? value : composed(withNewlines(value).trim())
    if (text === '' && !allowed.includes('null')) return undefined
    if (text === '') return exact && !mayBeEmpty(shape) ? text : null
    if (kind === 'date-time') return canonicalTime(text, zone) ?? text
    if (kind === 'date') return canonicalDate(text, zone) ?? text
    if (kind === 'country') return text.toUpperCase()
    return text
  }
  const trimmed = value.trim()
  if (trimmed === '') return exact || !allowed.includes('null') ? value : null
  if (allowed.includes('number') && shape.format !== undefined && decimalText.test(trimmed) && isExactNumber(trimmed))
    return Number(trimmed)
  return value
}

/** Returns whether the schema accepts an empty text. */
const mayBeEmpty = ({ format, pattern, enum: choices, minLength }: Shape): boolean =>
  format === undefined && !choices && !minLength && (pattern === undefined || new RegExp(pattern).test(''))

const hasRequired = (value: Json, { required = [] }: Shape): boolean =>
  required.every((key) => Object.hasOwn(value, key))

/**
 * Returns the branch of a union that fits the JSON type and the keys of the value. Returns the
 * shape itself when the shape is not a union.
 */
function choose(value: unknown, shape: Shape): Shape {
  const branches = shape.anyOf ?? shape.oneOf
  if (!branches) return shape
  const kind = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
  const fitting = branches.filter((each) => typesOf(each).includes(kind))
  const sent = isObject(value) && fitting.length > 1 ? fitting.find((each) => hasRequired(value, each)) : undefined
  return sent ?? fitting[0] ?? shape
}
