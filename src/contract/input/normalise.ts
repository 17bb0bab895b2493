// Brings what a client sends into the form the contract describes, before it is validated: trims strings, reads the
// accepted spellings of booleans, dates and amounts, drops read-only keys (DOMAIN 3.2, 3.4). It never guesses: what it does
// not recognise stays as it is, and the validator refuses it.

import type { Ignorable, OperationFact } from '../operations.gen.ts'
import { canonicalDate, canonicalTime, decimalText } from './formats.ts'
import { composed, withNewlines } from './text-rules.ts'
import { isExactNumber } from './unsafe-numbers.ts'
import { type Finding, maxFields } from './validation-errors.ts'

/** The parts of a JSON schema that matter here; the rest of the keywords are the validator's. */
export interface Shape {
  type?: string | string[]
  format?: string
  /** What the value is, where the format is only what other programs know it by. */
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
  /** Its texts are bytes, a character each: neither trimmed nor looked into. */
  'x-bytes'?: boolean
}

export interface Reading {
  zone: string
  /** Off: unknown keys are dropped instead of refused (ACCORD_STRICT=off). */
  strict: boolean
  /** On: what is not a text stays what it is, as in JSON. Off: numbers and flags may be written as texts, as in forms and files. */
  exact?: boolean
}

/** What a value is: its `x-value`, else its format. */
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

/** What the walk knows beside the value: where it is, what it found, and which keys only replies have. */
interface Place {
  path: readonly string[]
  ignorable: Ignorable | null
  /** Whether what stands here becomes a new record: then a key that only replies have is a mistake. */
  isNew: boolean
  found: Finding[]
}

export interface Intake {
  /** Reply-only keys of the operation. */
  ignorable: Ignorable | null
  /** Whether the body makes a record rather than changes one. */
  creates: boolean
}

export const intakeOf = ({ method, ignorable }: Pick<OperationFact, 'method' | 'ignorable'>): Intake => ({
  ignorable,
  creates: method === 'post',
})

/** For values that no operation describes. */
export const plainIntake: Intake = { ignorable: null, creates: false }

/**
 * A body by its schema, as a new value. `found` gets what the validator cannot see: empty texts where there must be one, and
 * reply-only keys that would be lost without a word (DOMAIN 3.2, 3.4).
 */
export function normaliseBody(
  value: unknown,
  shape: Shape,
  { ignorable, creates }: Intake,
  reading: Reading,
  found: Finding[] = [],
): unknown {
  const keys = isObject(value) && reading.strict && !creates ? Object.keys(value) : []
  if (keys.length > 0 && ignorable && keys.every((key) => ignorable.keys.includes(key)))
    for (const key of keys) found.push([key, readOnly(ignorable, key)])
  return normalise(value, shape, { path: [], ignorable, isNew: creates, found }, reading)
}

/** Why a key that only replies have is refused. */
const readOnly = ({ hints }: Ignorable, key: string): string =>
  `Read-only: ${(hints && Object.hasOwn(hints, key) ? hints[key] : undefined) ?? 'the server sets it'}.`

function normalise(value: unknown, shape: Shape, place: Place, reading: Reading): unknown {
  const branch = choose(value, shape)
  if (branch !== shape) return normalise(value, branch, place, reading)
  if (Array.isArray(value)) {
    // One entry too many is enough to be refused; the others would only be reported one by one.
    const { items, maxItems = Number.POSITIVE_INFINITY } = shape
    const entries = value.length > maxItems ? value.slice(0, maxItems + 1) : value
    if (!items) return entries
    return entries.map((each, index) => normalise(each, items, below(place, String(index), each), reading) ?? null)
  }
  if (isObject(value)) return normaliseObject(value, shape, place, reading)
  return normaliseScalar(value, shape, reading)
}

/** A part that names its record by id refers to what exists: what is shown of that can be sent along. */
const below = (place: Place, key: string, value: unknown): Place => ({
  ...place,
  path: [...place.path, key],
  isNew: place.isNew && !namesRecord(value),
})

const namesRecord = (value: unknown): boolean => isObject(value) && Object.hasOwn(value, 'id') && value.id !== null

function normaliseObject(value: Json, shape: Shape, place: Place, reading: Reading): Json {
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
      // defineProperty, because `__proto__` must arrive at the validator as the unknown key it is
      Object.defineProperty(result, key, { value: each, enumerable: true, configurable: true, writable: true })
      continue
    }
    const inner = { ...below(place, key, each), ignorable: ignorable?.nested[key] ?? null }
    // One record given inline, without the id of any, is a new one in an update as well.
    if (isObject(each) && !namesRecord(each) && inner.ignorable) inner.isNew = true
    const normalised = normalise(each, property, inner, reading)
    if (normalised !== undefined) result[key] = normalised
    else if (each !== undefined) found.push([inner.path.join('.'), 'The field is required.'])
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

function normaliseScalar(value: unknown, shape: Shape, { zone, exact = false }: Reading): unknown {
  const allowed = types(shape)
  if (allowed.includes('boolean') && booleans.has(value)) return booleans.get(value)
  if (typeof value !== 'string') return value
  if (allowed.includes('string')) {
    const kind = kindOf(shape)
    if (kind === 'password' || kind === 'file') return value
    // The choices of an enum are meant to the letter: one of them may be a tab.
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

/** Whether an empty text is a text that the schema takes. */
const mayBeEmpty = ({ format, pattern, enum: choices, minLength }: Shape): boolean =>
  format === undefined && !choices && !minLength && (pattern === undefined || new RegExp(pattern).test(''))

const hasRequired = (value: Json, { required = [] }: Shape): boolean =>
  required.every((key) => Object.hasOwn(value, key))

/** The branch of a union a value is meant for, by its JSON type and the keys it must have; the shape itself when there is no union. */
function choose(value: unknown, shape: Shape): Shape {
  const branches = shape.anyOf ?? shape.oneOf
  if (!branches) return shape
  const kind = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
  const fitting = branches.filter((each) => types(each).includes(kind))
  const sent = isObject(value) && fitting.length > 1 ? fitting.find((each) => hasRequired(value, each)) : undefined
  return sent ?? fitting[0] ?? shape
}
