// Brings a body into the form the contract describes, before validation: trims strings, reads the
// accepted spellings of booleans, dates and amounts, drops read-only keys (DOMAIN 3.2, 3.4). It
// never guesses: a value it does not recognize stays as it is, and the validator refuses it.

import type { Ignorable, OperationFact } from '../operations.gen.ts'
import { canonicalDate, canonicalTime, decimalText } from './formats.ts'
import { composed, withNewlines } from './text-rules.ts'
import { isExactNumber } from './unsafe-numbers.ts'
import { type Finding, maxFields } from './validation-errors.ts'

/** The keywords of a JSON schema that this room reads; Ajv reads the rest. */
export interface Shape {
  type?: string | string[]
  format?: string
  /** The kind of a value where `format` is only what other programs know it as. */
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
  /** Its texts hold bytes, one per character, so they are neither trimmed nor inspected. */
  'x-bytes'?: boolean
}

export interface Reading {
  zone: string
  /** False: unknown keys are dropped instead of refused (ACCORD_STRICT=off). */
  strict: boolean
  /**
   * True for JSON: only a number is a number. False for forms and files, where text may stand for a
   * number or a boolean.
   */
  exact?: boolean
}

/** The `x-value` of a schema, else its format. */
export const kindOf = (shape: Shape): string | undefined => shape['x-value'] ?? shape.format

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

/** The position of the walk: the path, the errors so far, and the keys that only replies have. */
interface Place {
  path: readonly string[]
  ignorable: Ignorable | null
  /**
   * Whether the object here becomes a new record; then a key that only replies have is an error.
   */
  isNew: boolean
  found: Finding[]
}

export interface Intake {
  /** Keys that only the operation's replies have. */
  ignorable: Ignorable | null
  /** Whether the body creates a record rather than changes one. */
  creates: boolean
}

export const intakeOf = ({ method, ignorable }: Pick<OperationFact, 'method' | 'ignorable'>): Intake => ({
  ignorable,
  creates: method === 'post',
})

/** For values that belong to no operation. */
export const plainIntake: Intake = { ignorable: null, creates: false }

/**
 * A normalized copy of a body. `found` gets the errors that the validator cannot see: empty texts
 * where one is required, and reply-only keys that would be dropped silently (DOMAIN 3.2, 3.4).
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

/** The sentence that refuses a reply-only key. */
const readOnly = ({ hints }: Ignorable, key: string): string =>
  `Read-only: ${(hints && Object.hasOwn(hints, key) ? hints[key] : undefined) ?? 'the server sets it'}.`

function normalize(value: unknown, shape: Shape, place: Place, reading: Reading): unknown {
  const branch = choose(value, shape)
  if (branch !== shape) return normalize(value, branch, place, reading)
  if (Array.isArray(value)) {
    // One entry too many is enough to be refused; the rest would only add errors.
    const { items, maxItems = Number.POSITIVE_INFINITY } = shape
    const entries = value.length > maxItems ? value.slice(0, maxItems + 1) : value
    if (!items) return entries
    return entries.map((each, index) => normalize(each, items, below(place, String(index), each), reading) ?? null)
  }
  if (isObject(value)) return normalizeObject(value, shape, place, reading)
  return normalizeScalar(value, shape, reading)
}

/** An object with an `id` refers to an existing record, so reply-only keys may be sent with it. */
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
      // defineProperty, so that `__proto__` reaches the validator as an unknown key.
      Object.defineProperty(result, key, { value: each, enumerable: true, configurable: true, writable: true })
      continue
    }
    const inner = { ...below(place, key, each), ignorable: ignorable?.nested[key] ?? null }
    // An inline object without an id is a new record, in an update too.
    if (isObject(each) && !namesRecord(each) && inner.ignorable) inner.isNew = true
    const normalized = normalize(each, property, inner, reading)
    if (normalized !== undefined) result[key] = normalized
    else if (each !== undefined) found.push([inner.path.join('.'), 'The field is required.'])
  }
  return result
}

/**
 * Values without a schema in the contract are validated in open-schema.ts; here only their texts
 * are normalized.
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
  const allowed = types(shape)
  if (allowed.includes('boolean') && booleans.has(value)) return booleans.get(value)
  if (typeof value !== 'string') return value
  if (allowed.includes('string')) {
    const kind = kindOf(shape)
    if (kind === 'password' || kind === 'file') return value
    // Enum values are compared exactly, because one of them may be a tab.
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

/** Whether the schema accepts an empty text. */
const mayBeEmpty = ({ format, pattern, enum: choices, minLength }: Shape): boolean =>
  format === undefined && !choices && !minLength && (pattern === undefined || new RegExp(pattern).test(''))

const hasRequired = (value: Json, { required = [] }: Shape): boolean =>
  required.every((key) => Object.hasOwn(value, key))

/**
 * The branch of a union that fits the JSON type and the keys of a value; the shape itself when it
 * is not a union.
 */
function choose(value: unknown, shape: Shape): Shape {
  const branches = shape.anyOf ?? shape.oneOf
  if (!branches) return shape
  const kind = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
  const fitting = branches.filter((each) => types(each).includes(kind))
  const sent = isObject(value) && fitting.length > 1 ? fitting.find((each) => hasRequired(value, each)) : undefined
  return sent ?? fitting[0] ?? shape
}
