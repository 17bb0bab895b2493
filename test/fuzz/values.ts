// Generates values for a schema of the contract: valid values, values at its limits, and values
// that violate it in one or more places. References become ids of existing records.
import { adminPassword } from '../support/app.ts'
import { entityOf, follow, isReference, requiredOf, type SchemaObject, sample, typesOf } from '../support/schema.ts'
import { moments, numerals } from './ends.ts'
import { anything, hostileText, letters, oddKey } from './hostile.ts'
import type { Random } from './random.ts'

/** Returns the id of a record of an entity, existing or deleted. */
export type Ids = (entity: string) => number

/**
 * A text that is written unchanged into a JSON body, such as a number that a float cannot
 * represent, deep nesting or invalid JSON.
 */
export class Raw {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Json = Record<string, unknown>
type Bounds = Partial<Record<'minimum' | 'maximum' | 'minLength' | 'maxLength' | 'minItems' | 'maxItems', number>>

const boundsOf = (schema: SchemaObject): Bounds => schema as Bounds
const password = 'a fuzzed password 7'

/** Returns a value that the schema accepts. The server may still refuse it by other rules. */
export function valid(random: Random, shape: SchemaObject | undefined, ids: Ids, name = '', depth = 0): unknown {
  const schema = follow(shape)
  const types = typesOf(schema)
  if (isReference(name, schema) && !(types.includes('null') && random.chance(0.1))) {
    const entity = entityOf(name) ?? ''
    if (!types.includes('array')) return ids(entity)
    return Array.from({ length: random.whole(0, 3) }, () => ids(entity))
  }
  if (types.includes('null') && random.chance(0.12)) return null
  if (schema.enum !== undefined) return random.pick(schema.enum as unknown[])
  const branches = schema.anyOf ?? schema.oneOf ?? []
  if (branches.length > 0) return valid(random, random.pick(branches), ids, name, depth)
  const [type] = types
  if (type === 'object') return validObject(random, schema, ids, depth)
  if (type === 'array') {
    const { minItems = 0, maxItems = 4 } = boundsOf(schema)
    const count = random.whole(minItems, Math.max(minItems, Math.min(maxItems, depth > 2 ? 1 : 3)))
    return Array.from({ length: count }, () => valid(random, schema.items, ids, '', depth + 1))
  }
  if (type === 'boolean') return random.chance(0.5)
  if (type === 'integer' || type === 'number') return validNumber(random, schema)
  if (type === 'string') return validText(random, schema, name)
  return types.length === 0 ? anything(random, 1) : sample(schema)
}

function validObject(random: Random, schema: SchemaObject, ids: Ids, depth: number): unknown {
  const properties = Object.entries(schema.properties ?? {})
  const required = requiredOf(schema)
  const example = schema.examples?.length && random.chance(0.6) ? (random.pick(schema.examples) as Json) : {}
  const share = random.pick([0, 0.1, 0.3, depth > 1 ? 0.3 : 1])
  const made: Json = {}
  for (const [name, property] of properties) {
    const isShown = Object.hasOwn(example, name)
    if (!isShown && !required.includes(name) && !random.chance(share)) continue
    const isKept = isShown && !isReference(name, follow(property)) && name !== 'ids' && random.chance(0.7)
    if (isKept) made[name] = distinct(random, name, example[name])
    else if (name === 'entity_id') made[name] = ids(String(made.entity_type ?? example.entity_type ?? 'leads'))
    else made[name] = valid(random, property, ids, name, depth + 1)
  }
  if (properties.length === 0 && random.chance(0.5)) return { [oddKey(random)]: anything(random, 1) }
  return made
}

const distinct = (random: Random, name: string, value: unknown): unknown =>
  typeof value === 'string' && ['name', 'title', 'sku', 'code'].includes(name) && random.chance(0.8)
    ? `${value}${name === 'code' ? '_' : ' '}${random.whole(1, 1_000_000)}`
    : value

function validNumber(random: Random, schema: SchemaObject): unknown {
  const { minimum = -1000, maximum = 1000 } = boundsOf(schema)
  const kind = random.weighted({ small: 6, low: 1, high: 1, any: 2 })
  if (kind === 'low') return minimum
  if (kind === 'high') return Math.min(maximum, Number.MAX_SAFE_INTEGER)
  const [low, high] =
    kind === 'small' ? [Math.max(minimum, 0), Math.min(maximum, 12)] : [minimum, Math.min(maximum, 1e9)]
  const whole = random.whole(Math.ceil(Math.min(low, high)), Math.floor(high))
  if (typesOf(schema).includes('integer') || random.chance(0.5)) return whole
  return Math.min(maximum, Number((whole + random.next()).toFixed(4)))
}

const formats: Record<string, (random: Random) => string> = {
  email: (random) => `p${random.whole(1, 40)}@example.com`,
  phone: (random) => `+1 202 ${random.whole(5_550_000, 5_559_999)}`,
  date: (random) => random.pick(['2026-03-31', '2026-02-28', '2024-02-29', '2030-12-31', '1999-01-01']),
  'date-time': (random) => `202${random.whole(5, 8)}-0${random.whole(1, 9)}-1${random.whole(0, 9)}T10:00:00.000Z`,
  instant: (random) =>
    random.pick(['2026-03-01', '2026-03-02T10:00:00Z', '2026-03-01T23:00:00-08:00', '2026-03-05 08:15']),
  country: (random) => random.pick(['GB', 'us', 'DE', 'JP']),
  password: () => password,
  money: (random) => String(random.whole(0, 99_999) / 100),
  decimal: (random) => String(random.whole(0, 99_999) / 10_000),
}

function validText(random: Random, schema: SchemaObject, name: string): string {
  const { format, pattern, examples } = schema
  if (name === 'current_password') return random.chance(0.5) ? adminPassword : password
  const made = formats[format ?? '']
  if (made) return made(random)
  if (Array.isArray(examples) && random.chance(0.5)) return String(random.pick(examples))
  if (typeof pattern === 'string')
    return /#/.test(pattern) ? '#0E90D9' : `demo${pattern.includes('_') ? '_' : ''}${random.whole(1, 9_999)}`
  const { minLength = 0, maxLength = 255 } = boundsOf(schema)
  const length = random.chance(0.06)
    ? Math.min(maxLength, 70_000)
    : random.whole(Math.max(minLength, 1), Math.min(maxLength, 24))
  // An unusual but valid text.
  return random.chance(0.5)
    ? letters(random, Math.floor(length / 2) || 1)
    : `${random.pick(words)} ${random.whole(1, 400)}`
}

const words = [
  'Acme',
  'Ünal & Söhne',
  'O’Brien',
  '{{ lead.title }}',
  "x'); --",
  '=1+1',
  '<b>bold</b>',
  '日本',
  '100%',
  '_',
]

/** Returns the value with one violation at a random place. */
export function broken(random: Random, shape: SchemaObject | undefined, value: unknown, ids: Ids): unknown {
  const schema = follow(shape)
  const keys = typeof value === 'object' && value !== null && !(value instanceof Raw) ? Object.keys(value) : []
  if (keys.length > 0 && random.chance(0.85)) {
    const key = random.pick(keys)
    if (Array.isArray(value)) {
      const items = [...value]
      items[Number(key)] = broken(random, schema.items, items[Number(key)], ids)
      return random.chance(0.1) ? Array.from({ length: random.pick([2, 21, 101, 501]) }, () => items[0]) : items
    }
    const { [key]: old, ...rest } = value as Json
    const [kind, property] = [random.weighted({ deep: 80, gone: 10, odd: 6, renamed: 4 }), schema.properties?.[key]]
    if (kind === 'gone') return rest
    if (kind === 'odd') return withKey({ ...(value as Json) }, oddKey(random), anything(random))
    if (kind === 'renamed') return withKey(rest, key.toUpperCase(), old)
    return withKey({ ...(value as Json) }, key, broken(random, property, old, ids))
  }
  return wrong(random, schema)
}

/** Sets a key, which may be `__proto__`. */
const withKey = (object: Json, key: string, value: unknown): Json =>
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })

function wrong(random: Random, schema: SchemaObject): unknown {
  const { minimum, maximum, minLength, maxLength, maxItems } = boundsOf(schema)
  const kind = random.weighted({ text: 40, edge: 25, number: 15, anything: 12, empty: 8, nested: 2, moment: 5 })
  if (kind === 'text') return hostileText(random, maxLength)
  if (kind === 'number') return random.chance(0.4) ? new Raw(random.pick(numerals)) : random.pick(numerals)
  if (kind === 'moment') return random.pick(moments)
  if (kind === 'empty') return random.pick([null, '', [], {}, [null], [[]], ' '])
  if (kind === 'nested') return new Raw(nested(random.pick([20, 31, 32, 33, 34, 100, 10_000])))
  if (kind === 'edge') {
    const edges: unknown[] = []
    for (const bound of [minimum, maximum])
      if (bound !== undefined) edges.push(bound - 1, bound, bound + 1, bound + 0.5)
    for (const bound of [minLength, maxLength])
      if (bound !== undefined && bound < 200_000)
        for (const length of [bound - 1, bound, bound + 1])
          edges.push(letters(random, Math.max(0, length), random.pick(['x', '😀', 'e\u0301'])))
    if (maxItems !== undefined && maxItems < 2_000)
      edges.push(Array.from({ length: maxItems + 1 }, () => sample(schema.items)))
    if (edges.length > 0) return random.pick(edges)
  }
  return anything(random)
}

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`

/** Returns the value as JSON. The text of a `Raw` is written unchanged. */
export function write(value: unknown): string {
  if (value instanceof Raw) return value.text
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  return `{${Object.entries(value)
    .map(([key, each]) => `${JSON.stringify(key)}:${write(each)}`)
    .join(',')}}`
}
