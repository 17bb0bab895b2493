// Normalizes a body before validation: trims strings, converts booleans, dates
// and amounts to their canonical form, and drops read-only keys. Other values stay unchanged, so
// that the validator refuses invalid ones.

import { type Lifetime, noteUse, type Use } from '../lifetime.ts'
import type { Ignorable, OperationFact } from '../operations.gen.ts'
import { canonicalAddress, isEmailAddress } from './email-addresses.ts'
import { canonicalDate, canonicalInstant, canonicalTime } from './formats.ts'
import { asciiDigits, composed, inOneLine, withNewlines } from './text-rules.ts'
import { numberIn } from './unsafe-numbers.ts'
import { type Finding, maxFields } from './validation-errors.ts'

/** The JSON Schema keywords that the files of this folder use. Ajv also uses other keywords. */
export interface Shape extends Lifetime {
  type?: string | string[]
  format?: string
  minItems?: number
  /**
   * The kind of the value in this API (formats.ts). When it is set, `format` is only documentation.
   */
  'x-value'?: string
  /** Whether the text is a name in one line, in which tabs and line breaks become blanks. */
  'x-line'?: boolean
  /** Whether unknown keys are refused in any mode, because without them more records match. */
  'x-strict'?: boolean
  /** Whether an empty text is refused, because null removes a limit. */
  'x-explicit-null'?: boolean
  /** The entity of the record to which the value refers by its id or by an object with its name. */
  'x-reference'?: string
  pattern?: string
  minLength?: number
  properties?: Record<string, Shape>
  additionalProperties?: boolean | Shape
  required?: string[]
  maxLength?: number
  maxItems?: number
  items?: Shape
  enum?: readonly unknown[]
  /** Old values of an enum, such as sort keys, each with its new value in `x-alias`. */
  'x-aliases'?: Record<string, Lifetime>
  anyOf?: Shape[]
  oneOf?: Shape[]
  /**
   * Whether the texts of the form contain bytes, one per character. These texts are not trimmed or
   * checked.
   */
  'x-bytes'?: boolean
}

/** An object in the place of an id, such as `{ email: 'ada@example.com' }`. */
export interface NamedReference {
  /** The entity, such as `persons`. */
  entity: string
  path: readonly string[]
  value: Readonly<Record<string, unknown>>
}

export interface Reading {
  zone: string
  /** Whether unknown keys are refused (ACCORD_STRICT). Otherwise they are dropped. */
  strict: boolean
}

/** A read-only key that the body of a PUT had, and that was dropped. */
export interface IgnoredKey {
  path: readonly string[]
  value: unknown
  /** Why the key is read-only, or what to send instead. */
  sentence: string
}

/** Returns the `x-value` of a schema, or else its `format`. */
export const kindOf = (shape: Shape): string | undefined => shape['x-value'] ?? shape.format

export type Json = Record<string, unknown>

export const isJsonObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const typesOf = (shape: Shape): string[] => (shape.type === undefined ? [] : [shape.type].flat())
export const booleans = new Map<unknown, boolean>([
  [0, false],
  [1, true],
  ['0', false],
  ['1', true],
  ['false', false],
  ['true', true],
])

/** The current position in the body, with the reply-only keys there and the errors so far. */
interface Place {
  path: readonly string[]
  ignorable: Ignorable | null
  /** Whether the object at this position creates a record. A reply-only key is then an error. */
  isNew: boolean
  found: Finding[]
  named: NamedReference[]
  ignored: IgnoredKey[]
  asked: Asked
}

/** The old names and deprecated parts in a request, which the reading of the request adds. */
export interface Asked {
  uses: Use[]
  oldNames: Map<string, string>
}

export interface Intake {
  /** The reply-only keys: keys that the operation's replies have but its request body does not. */
  ignorable: Ignorable | null
  /** Whether the body creates a record. Otherwise it changes a record. */
  creates: boolean
  /** The read-only keys that were dropped, except in lists, whose entries may have moved. */
  ignored?: IgnoredKey[]
  asked?: Asked
}

export const intakeOf = ({
  method,
  ignorable,
}: Pick<OperationFact, 'method' | 'ignorable'>): Intake & { ignored: IgnoredKey[] } => ({
  ignorable,
  creates: method === 'post',
  ignored: [],
})

/** The settings for a value that does not belong to an operation. */
export const plainIntake: Intake = { ignorable: null, creates: false }

/**
 * Returns a normalized copy of a body. Adds the errors to `found` that the
 * validator could not detect later: empty texts in required fields, and reply-only keys that must
 * be refused. Adds the references by name to `named`.
 */
export function normalizeBody(
  value: unknown,
  shape: Shape,
  { ignorable, creates, ignored = [], asked = { uses: [], oldNames: new Map() } }: Intake,
  reading: Reading,
  found: Finding[] = [],
  named: NamedReference[] = [],
): unknown {
  const keys = isJsonObject(value) && reading.strict && !creates ? Object.keys(value) : []
  if (keys.length > 0 && ignorable && keys.every((key) => ignorable.keys.includes(key)))
    for (const key of keys) found.push([key, readOnly(ignorable, key)])
  return normalize(value, shape, { path: [], ignorable, isNew: creates, found, named, ignored, asked }, reading)
}

/** Returns the error sentence for a reply-only key. */
const readOnly = ({ hints }: Ignorable, key: string): string =>
  `Read-only: ${(hints && Object.hasOwn(hints, key) ? hints[key] : undefined) ?? 'the server sets it'}.`

function normalize(value: unknown, shape: Shape, place: Place, reading: Reading): unknown {
  const branch = choose(value, shape)
  if (branch !== shape) {
    const entity = shape['x-reference']
    // `{ id: 7, name: 'Ada' }` without the unknown key `id` would find a record by name that is not
    // record 7, so unknown keys are refused here.
    const isNamed = entity !== undefined && isJsonObject(value)
    const result = normalize(value, branch, place, isNamed ? { ...reading, strict: true } : reading)
    if (entity !== undefined && isJsonObject(result) && areValid(result, branch))
      place.named.push({ entity, path: place.path, value: result })
    return result
  }
  if (Array.isArray(value)) {
    // Keeps one entry more than allowed, so that the validator refuses the list. Further entries
    // would only cause more errors.
    const { items, maxItems = Number.POSITIVE_INFINITY } = shape
    const entries = value.length > maxItems ? value.slice(0, maxItems + 1) : value
    if (!items) return entries
    return entries.map((each, index) => normalize(each, items, below(place, String(index), each), reading) ?? null)
  }
  if (isJsonObject(value)) return normalizeObject(value, shape, place, reading)
  return normalizeScalar(value, shape, reading)
}

const forms = new Map<string, RegExp>()

/** Returns the regular expression of a pattern of the contract, compiled once. */
function formOf(pattern: string): RegExp {
  const known = forms.get(pattern) ?? new RegExp(pattern, 'u')
  forms.set(pattern, known)
  return known
}

/** Returns whether the names are valid. The validator reports the errors of the others. */
const areValid = (value: Json, { properties = {} }: Shape): boolean =>
  Object.entries(value).every(([key, text]) => {
    const { maxLength = 0, pattern, ...shape } = properties[key] ?? {}
    const isShort = typeof text === 'string' && text.length <= maxLength
    return (
      isShort &&
      (pattern === undefined || formOf(pattern).test(text)) &&
      (kindOf(shape) !== 'email' || isEmailAddress(text))
    )
  })

/**
 * Returns the position of a child. An object with an `id` refers to an existing record, so it may
 * contain reply-only keys.
 */
const below = (place: Place, key: string, value: unknown): Place => ({
  ...place,
  path: [...place.path, key],
  isNew: place.isNew && !namesRecord(value),
})

const namesRecord = (value: unknown): boolean => isJsonObject(value) && Object.hasOwn(value, 'id') && value.id !== null

function normalizeObject(value: Json, shape: Shape, place: Place, outer: Reading): Json {
  const reading = shape['x-strict'] ? { ...outer, strict: true } : outer
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
        const sentence = readOnly(ignorable, key)
        if (place.isNew) found.push([[...path, key].join('.'), sentence])
        else if (!path.some((step) => /^\d+$/.test(step)))
          place.ignored.push({ path: [...path, key], value: each, sentence })
        continue
      }
      if (++unknown > maxFields + 1) continue
      // An assignment to the key `__proto__` would set the prototype. `defineProperty` creates an
      // ordinary key, which the validator refuses as unknown.
      Object.defineProperty(result, key, { value: each, enumerable: true, configurable: true, writable: true })
      continue
    }
    noteUse(place.asked.uses, [...path, key].join('.'), property)
    const name = property['x-alias'] ?? key
    if (name !== key) {
      place.asked.oldNames.set([...path, name].join('.'), [...path, key].join('.'))
      if (Object.hasOwn(value, name)) {
        if (JSON.stringify(value[name]) !== JSON.stringify(each))
          found.push([[...path, key].join('.'), `Old name of \`${name}\`: send one of both, or the same value.`])
        continue
      }
    }
    const inner = { ...below(place, name, each), ignorable: ignorable?.nested[name] ?? null }
    // A nested object without an id creates a record, even if the operation is an update.
    if (isJsonObject(each) && !namesRecord(each) && inner.ignorable) inner.isNew = true
    const normalized = normalize(each, property, inner, reading)
    if (normalized !== undefined) result[name] = normalized
    else if (each !== undefined) found.push([inner.path.join('.'), 'The field is required.'])
  }
  return result
}

/**
 * Normalizes the texts of an object whose properties are not in the contract, such as custom
 * attributes. open-schema.ts validates it.
 */
function openTexts(value: unknown): unknown {
  if (typeof value === 'string') return composed(withNewlines(value))
  if (Array.isArray(value)) return value.map(openTexts)
  if (!isJsonObject(value)) return value
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

function normalizeScalar(value: unknown, shape: Shape, { zone }: Reading): unknown {
  const branches = shape.anyOf ?? shape.oneOf
  const allowed = branches ? branches.flatMap(typesOf) : typesOf(shape)
  if (allowed.includes('boolean') && booleans.has(value)) return booleans.get(value)
  if (typeof value !== 'string') return value
  if (allowed.includes('string')) {
    const kind = kindOf(shape)
    if (kind === 'password' || kind === 'file') return value
    // An enum value is not trimmed, because an enum may contain a tab.
    const text = shape.enum ? value : composed(withNewlines(value).trim())
    if (text === '' && !allowed.includes('null')) return undefined
    if (text === '') return shape['x-explicit-null'] ? text : null
    if (kind === 'date-time') return canonicalTime(text, zone) ?? text
    if (kind === 'date') return canonicalDate(text, zone) ?? text
    // An invalid one becomes an empty text, which the pattern refuses.
    if (kind === 'instant') return canonicalInstant(text, zone) ?? ''
    if (kind === 'email') return canonicalAddress(text)
    if (kind === 'country') return text.toUpperCase()
    if (kind === 'phone') return asciiDigits(text)
    if (shape['x-line']) return inOneLine(text)
    return text
  }
  const trimmed = value.trim()
  if (trimmed === '') return allowed.includes('null') && !shape['x-explicit-null'] ? null : value
  // Spreadsheets and integration tools send ids as texts.
  const isWhole = allowed.includes('integer')
  const isAmount = allowed.includes('number') && shape.format !== undefined
  return (isWhole || isAmount ? numberIn(value, { isWhole: !isAmount }) : undefined) ?? value
}

const hasRequired = (value: Json, { required = [] }: Shape): boolean =>
  required.every((key) => Object.hasOwn(value, key))

/**
 * Returns the branch of a union (`anyOf` or `oneOf`) that matches the JSON type and the keys of the
 * value. Returns any other shape unchanged.
 */
function choose(value: unknown, shape: Shape): Shape {
  const branches = shape.anyOf ?? shape.oneOf
  if (!branches) return shape
  const kind = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
  const fitting = branches.filter((each) => typesOf(each).includes(kind))
  const sent = isJsonObject(value) && fitting.length > 1 ? fitting.find((each) => hasRequired(value, each)) : undefined
  // An empty text stands for null where null is allowed, as with a type that includes null.
  const [text] = kind === 'string' && branches.some((each) => typesOf(each).includes('null')) ? fitting : []
  return text ? { ...text, type: [...typesOf(text), 'null'] } : (sent ?? fitting[0] ?? shape)
}
