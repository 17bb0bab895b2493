// The fields of resources as the contract declares them: values for the properties of a body, where
// a reply shows them, and which rows a filter selects.
import { textKey } from '../../db/schema/search-folding.ts'
import { fold } from '../../src/kernel/values/format.ts'
import { fill, type Known, seeded, unique } from '../support/given.ts'
import {
  creators,
  entityOf,
  fact,
  facts,
  follow,
  isReference,
  parametersOf,
  requiredOf,
  type SchemaObject,
  sample,
  typesOf,
} from '../support/schema.ts'
import type { World } from './support.ts'

export type Row = Record<string, any>

export interface Walked {
  entity: string
  path: string
  create: string
  /** The operations of the same path, and of `{id}` and `export` below it, where there are any. */
  list: string | undefined
  get: string | undefined
  update: string | undefined
  export: string | undefined
}

const operation = (method: string, path: string): string | undefined =>
  facts.find(([, each]) => each.method === method && each.path === path)?.[0]

/** All resources of the contract: each path at which an operation creates a record. */
export const resources: readonly Walked[] = [...creators].map(([entity, create]) => {
  const { path } = fact(create)
  return {
    entity,
    path,
    create,
    list: operation('get', path),
    get: operation('get', `${path}/{id}`),
    update: operation('put', `${path}/{id}`),
    export: operation('get', `${path}/export`),
  }
})

/** Two different values of each kind of text. */
const texts: Record<string, string[]> = {
  date: ['2026-05-06', '2026-07-08'],
  'date-time': ['2026-02-06T07:08:00.000Z', '2026-05-06T07:08:00.000Z', '2026-07-08T09:10:00.000Z'],
  instant: ['2026-02-06T07:08:00.000Z', '2026-07-08T09:10:00.000Z'],
  country: ['FR', 'DE'],
  phone: ['+1 202 555 0111', '+1 202 555 0122'],
  uri: ['https://one.example.com/a', 'https://two.example.com/b'],
}

/** Returns valid values of a property, none of which is null. */
export function valuesOf(name: string, shape: SchemaObject | undefined, world: World): unknown[] {
  const schema = follow(shape)
  if (isReference(name, schema) || name === 'entity_id') return referencesOf(name, schema, world)
  if (schema.const !== undefined) return [schema.const]
  if (Array.isArray(schema.enum)) return schema.enum.filter((each) => each !== null)
  const branches = schema.anyOf ?? schema.oneOf
  if (branches) return branches.flatMap((branch) => valuesOf(name, branch, world))
  const types = typesOf(schema)
  // A property without a type takes any value.
  if (types.length === 0) return [...textsOf(name, schema), 12, true]
  if (types.includes('boolean')) return [true, false]
  if (types.includes('integer') || types.includes('number')) return numbersOf(schema)
  if (types.includes('string')) return textsOf(name, schema)
  if (types.includes('array')) {
    const own = (schema.examples ?? []).filter((each) => Array.isArray(each) && each.length > 0)
    const items = valuesOf(name, schema.items, world).slice(0, 8)
    return [...items.map((each) => [each]), ...own.map((each) => fill(each, schema, knownOf(world.main)))]
  }
  if (!types.includes('object')) return []
  const own = (schema.examples ?? []).map((each) => fill(each, schema, knownOf(world.main)))
  return [...objectsOf(schema, world), ...own]
}

function objectsOf(schema: SchemaObject, world: World): unknown[] {
  const base = fill(sample(schema), schema, knownOf(world.main)) as Row
  const required = requiredOf(schema)
  // The values of an optional property are not asked for: the schema of a query contains itself.
  const own = Object.entries(schema.properties ?? {})
    .filter(([name]) => name in base || required.includes(name))
    .map(([name, each]) => [name, valuesOf(name, each, world)] as const)
    .filter(([, values]) => values.length > 0)
  const at = (index: number) => own.map(([name, values]) => [name, values[Math.min(index, values.length - 1)]] as const)
  return [0, 1, 2, 3, 4, 5].map((index) => ({ ...base, ...Object.fromEntries(at(index)) }))
}

export const knownOf =
  (ids: Record<string, number>): Known =>
  (entity) =>
    ids[entity] ?? seeded(entity)

/** Ids of further records, by entity. */
export const moreIds: Record<string, number[]> = {}

function referencesOf(name: string, schema: SchemaObject, { main, spare, plain }: World): unknown[] {
  const entity = name === 'entity_id' ? 'leads' : (entityOf(name) ?? '')
  const ids = [spare[entity], main[entity], plain[entity], seeded(entity), ...(moreIds[entity] ?? [])].filter(
    (id) => id !== undefined,
  )
  return [...new Set(ids)].map((id) => (typesOf(schema).includes('array') ? [id] : id))
}

function numbersOf(schema: SchemaObject): unknown[] {
  const { minimum = 0, maximum = 100_000 } = schema
  const [low, high] = [Math.max(0, Number(minimum)), Number(maximum)]
  const some = [low + 7, low + 3, low + 1, high].filter((each) => each <= high)
  return typesOf(schema).includes('number') && low + 2.5 <= high ? [low + 2.5, ...some] : some
}

function textsOf(name: string, schema: SchemaObject): string[] {
  const { format = '', pattern, minLength = 0, maxLength = 255 } = schema
  if (/email/.test(format)) return [`other${unique()}@example.com`, `other${unique()}@example.com`]
  const some: string[] = texts[format] ?? [
    `Other ${name} ${unique()}`.slice(0, Number(maxLength)).padEnd(Number(minLength), 'o'),
    `other_${unique()}`,
    `#12345${unique() % 10}`,
    `https://other.example.com/${unique()}`,
    `other${unique()}.example.com`,
    `<p>Other ${unique()}</p>`,
    '10.0.0.1',
    'de-AT',
    'fr',
  ]
  if (format === 'instant') return some
  const own = [sample(schema)].flat().map(String)
  const fits = (text: string): boolean => typeof pattern !== 'string' || new RegExp(pattern, 'u').test(text)
  return [...some.filter((each) => fits(each) && each.length <= Number(maxLength)), ...own.filter(fits)]
}

/** Returns the value without the properties that replies never show. */
export function withoutWriteOnly(value: unknown, shape: SchemaObject | undefined): unknown {
  const found = follow(shape)
  const kind = Array.isArray(value) ? 'array' : 'object'
  const schema = (found.anyOf ?? found.oneOf ?? []).map(follow).find((each) => typesOf(each).includes(kind)) ?? found
  if (Array.isArray(value)) return value.map((each) => withoutWriteOnly(each, schema.items))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([name]) => follow(schema.properties?.[name]).writeOnly !== true)
  return Object.fromEntries(entries.map(([name, each]) => [name, withoutWriteOnly(each, schema.properties?.[name])]))
}

/** Returns whether a record shows a value that a body sent as `name`. */
export function shows(record: Row, name: string, value: unknown): boolean {
  // A list without entries may be shown for null, and the key of a name only where there is one.
  if (value === null) return record[name] === null || record[name] === undefined || leaves(record[name]).length === 0
  if (Object.hasOwn(record, name)) return contains(record[name], value)
  const ids = /^(.+)_ids?$/.exec(name)
  // An id is shown as a list of ids, or as the record that it names, or in the list of these.
  if (ids) return [value].flat().every((id) => shownIds(record, ids[1] as string).includes(id))
  // Another key shows it. A flag or a number may be there by chance.
  const sent = leaves(value).filter((leaf) => typeof leaf === 'string')
  return sent.some((leaf) => leaves(record).some((each) => same(each, leaf)))
}

function shownIds(record: Row, single: string): unknown[] {
  const found = [single, `${single}s`, `${single}_ids`, single.replace(/^.*_/, ''), 'parent'].flatMap(
    (key) => record[key] ?? [],
  )
  return [...found, record].flatMap((each) => (typeof each === 'object' ? [each?.id, each?.[`${single}_id`]] : each))
}

function contains(shown: any, sent: unknown): boolean {
  if (Array.isArray(sent)) return Array.isArray(shown) && sent.every((each) => shown.some((one) => contains(one, each)))
  if (typeof sent === 'object' && sent !== null)
    return (
      typeof shown === 'object' &&
      shown !== null &&
      Object.entries(sent).every(([key, each]) => shows(shown, key, each))
    )
  return same(shown, sent)
}

function same(shown: unknown, sent: unknown): boolean {
  if (typeof shown !== 'string' || typeof sent !== 'string') return shown === sent
  return fold(shown) === fold(sent) || (Date.parse(shown) === Date.parse(sent) && /^\d{4}-/.test(sent))
}

const leaves = (value: unknown): unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [value]

/** Returns the values of a field that a record shows: its own, or those of the records in it. */
export function valuesAt(row: Row, field: string): unknown[] | undefined {
  if (Object.hasOwn(row, field)) return [row[field]].flat()
  if (field === 'external_id' && row.external_ids)
    return Object.entries(row.external_ids).map(([source, id]) => `${source}:${id}`)
  const parts = field.split('_')
  for (let at = parts.length - 1; at > 0; at--) {
    const [holder, key] = [parts.slice(0, at).join('_'), parts.slice(at).join('_')]
    for (const name of [holder, `${holder}s`]) {
      const held = [row[name] ?? []].flat()
      if (Object.hasOwn(row, name) && held.some((each) => typeof each === 'object' && Object.hasOwn(each, field)))
        return held.map((each) => each[field])
      if (Object.hasOwn(row, name) && held.every((each) => typeof each === 'object' && Object.hasOwn(each, key)))
        return held.map((each) => each[key])
      if (key === 'id' && Object.hasOwn(row, `${holder}_ids`)) return row[`${holder}_ids`]
    }
  }
  return undefined
}

export interface ListFilter {
  parameter: string
  field: string
  operator: string
  schema: SchemaObject
}

/** The filters of a list, and not the parameters that page, sort, search or shape it. */
export const filtersOf = (list: string): ListFilter[] =>
  parametersOf(list, 'query').flatMap(({ name, schema }) => {
    const [, field = '', operator = ''] = /^([a-z_]+)(?:\[([a-z]+)\])?$/.exec(name) ?? []
    const isShape = /^(page|per_page|count|cursor|sort|include|fields|q|custom_attributes)$/.test(field)
    return isShape ? [] : [{ parameter: name, field, operator, schema }]
  })

export const sortNames = (list: string): string[] => {
  const sort = parametersOf(list, 'query').find(({ name }) => name === 'sort')
  return ((follow(sort?.schema.items).enum ?? []) as string[]).filter((name) => !name.startsWith('-'))
}

export interface FilterTest {
  value: unknown
  holds: (row: Row) => boolean
}

const ranges: Record<string, (a: any, b: any) => boolean> = {
  gt: (a, b) => a > b,
  gte: (a, b) => a >= b,
  lt: (a, b) => a < b,
  lte: (a, b) => a <= b,
}

/** Returns tests of a filter with values that the records show. */
export function testsOf(rows: readonly Row[], { field, operator, schema }: ListFilter, world: World): FilterTest[] {
  const shown = new Map(rows.map((row) => [row, shownBy(row, field) ?? []]))
  const valuesOfRow = (row: Row): unknown[] => shown.get(row) ?? []
  if (operator === 'null')
    return [true, false].map((isNull) => ({
      value: isNull,
      holds: (row) => valuesOfRow(row).every((each) => each === null) === isNull,
    }))
  const own = [...new Set([...shown.values()].flat())].filter((each) => each !== null && typeof each !== 'object')
  const others = valuesOf(field, isList(schema) ? schema.items : schema, world).filter(
    (each) => typeof each !== 'object',
  )
  const range = ranges[operator]
  return [...spread(own), ...others.slice(0, 4)].map((value) => ({
    value,
    holds: (row) =>
      range
        ? valuesOfRow(row).some((each) => each !== null && range(each, value))
        : valuesOfRow(row).some((each) => same(each, value)) !== (operator === 'not'),
  }))
}

/** Returns at most five values: the least, the greatest and some between. */
function spread(values: readonly unknown[]): unknown[] {
  const sorted = [...values].sort((one, other) => ((one as number) > (other as number) ? 1 : -1))
  return [...new Set([0, 0.25, 0.5, 0.75, 1].map((part) => sorted[Math.round(part * (sorted.length - 1))]))].filter(
    (each) => each !== undefined,
  )
}

/**
 * Returns the values of a field that a row shows, also as a flag; undefined for a field that it
 * does not show.
 */
export function shownBy(row: Row, field: string): unknown[] | undefined {
  const found = valuesAt(row, field)
  if (found) return found
  const [, flag] = /^(?:has|is)_(.+)$/.exec(field) ?? []
  return flag !== undefined && Array.isArray(row[flag]) ? [row[flag].length > 0] : undefined
}

/** Returns the texts and numbers in a row, also those of its parts. */
export const partsOf = (row: Row): unknown[] => leaves(row).filter((each) => each !== null)

const isList = (schema: SchemaObject): boolean => typesOf(schema).includes('array')

/** Returns what is wrong with the ascending and the descending order of records, or null. */
export function sortFault(name: string, up: readonly Row[], down: readonly Row[]): string | null {
  const key = (row: Row): string | number | null => {
    const [value] = valuesAt(row, name) ?? [undefined]
    return typeof value === 'string' ? textKey(value) : value === null || value === undefined ? null : Number(value)
  }
  for (const [rows, sign] of [
    [up, 1],
    [down, -1],
  ] as const)
    for (const [index, row] of rows.entries()) {
      const [one, other] = [key(row), index + 1 < rows.length ? key(rows[index + 1] as Row) : null]
      if (one === null && other !== null) return `record ${row.id} without a value precedes one with ${other}`
      if (one !== null && other !== null && one !== other && one > other !== sign < 0) return `${one} precedes ${other}`
    }
  return null
}

/** Returns whether records differ in what a sort name sorts by. */
export const isVaried = (name: string, rows: readonly Row[]): boolean =>
  new Set(rows.map((row) => JSON.stringify(valuesAt(row, name)))).size > 1
