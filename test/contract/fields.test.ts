// Every field that the contract declares does what it says: a writable property is shown again, a
// filter selects rows, and a sort name orders them. All are found from the contract.
import { parse } from 'csv-parse/sync'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { unescapeFormula } from '../../src/kernel/resource/csv-cells.ts'
import { file, form } from '../support/form.ts'
import { fill, validBody } from '../support/given.ts'
import { pixel } from '../support/pictures.ts'
import { bodySchema, document, facts, follow, isFile, type SchemaObject, typesOf } from '../support/schema.ts'
import {
  filtersOf,
  isVaried,
  knownOf,
  type ListFilter,
  moreIds,
  partsOf,
  type Row,
  resources,
  shownBy,
  shows,
  sortFault,
  sortNames,
  testsOf,
  valuesOf,
  type Walked,
  withoutWriteOnly,
} from './fields.ts'
import { request, send, urlOf } from './support.ts'
import { useWorld } from './use-world.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })
const world = useWorld()

async function read({ get, list, path, entity }: Walked, id: number): Promise<Row | undefined> {
  if (get) return (await send(world, get, { method: 'GET', url: urlOf(world, get, { [entity]: id }) })).body?.data
  const { body } = await world.server.admin.get(`/${path}?per_page=100`)
  return list ? body.data.find((row: Row) => row.id === id) : undefined
}

interface Try {
  status: number
  body: any
  text: string
}

const isFree = (schema: SchemaObject): boolean => !isFile(schema) && follow(schema).writeOnly !== true
const properties = (operation: string): [string, SchemaObject][] =>
  Object.entries(bodySchema(operation)?.properties ?? {}).filter(
    ([name, each]) => name !== 'custom_attributes' && isFree(each),
  )

/** Tests one property of a body: some of its values are accepted, and those are shown again. */
class Property {
  readonly refusals: string[] = []
  shown = 0
  /** The entries of a list that the record has, and that the server may renumber. */
  kept: readonly unknown[] = []
  /** The record and the body of the last accepted value. */
  last: { id: number; body: Row } | undefined

  constructor(
    readonly resource: Walked,
    readonly operation: string,
    readonly name: string,
  ) {}

  get schema(): SchemaObject {
    return follow(bodySchema(this.operation)?.properties?.[this.name])
  }

  /** Sends a body with the value. Returns what is wrong with the record that is read afterwards. */
  async send(body: Row, id?: number): Promise<string | null> {
    const { operation, resource, name } = this
    const at = id === undefined ? {} : { url: urlOf(world, operation, { [resource.entity]: id }) }
    const reply: Try = await send(world, operation, { ...request(world, operation), ...at, body })
    const warned = JSON.stringify(reply.body?.meta?.warnings ?? '').includes(`"${name}`)
    if (reply.status >= 300 || warned) {
      this.refusals.push(
        `${JSON.stringify(body[name])}: ${warned ? 'warned' : JSON.stringify(reply.body?.errors ?? reply.text)}`,
      )
      return null
    }
    const record = { ...reply.body.data, ...(await read(resource, reply.body.data.id)) }
    this.last = { id: reply.body.data.id, body }
    this.shown++
    world.server.clock.advanceMs(10 * 60_000)
    const sent = Array.isArray(body[name]) ? body[name].filter((each) => !this.kept.includes(each)) : body[name]
    const value = withoutWriteOnly(sent, this.schema)
    return shows(record, name, value) ? null : `${operation}.${name}: ${JSON.stringify(value)} is not shown again.`
  }

  /** Sends null, where the schema allows it. A rule may refuse it. */
  async faultOfNull(id?: number): Promise<string | null> {
    return takesNull(this.schema) ? this.send({ ...this.last?.body, [this.name]: null }, id) : null
  }

  /** Sends values with each body, and then together with each value of each other property. */
  async fault(bodies: () => Row[], wanted: number, values: unknown[], id?: number): Promise<string | null> {
    for (const value of values)
      for (const body of bodies()) {
        if (this.shown >= wanted) return this.faultOfNull(id)
        const fault = await this.send({ ...body, [this.name]: value }, id)
        if (fault !== null) return fault
        if (this.last?.body[this.name] === value) break
      }
    if (this.shown > 0) return this.faultOfNull(id)
    for (const [other, property] of properties(this.operation))
      for (const companion of valuesOf(other, property, world).slice(0, 16))
        for (const value of values.slice(0, 3))
          for (const body of bodies()) {
            if (other === this.name || this.shown > 0) continue
            const fault = await this.send({ ...body, [other]: companion, [this.name]: value }, id)
            if (fault !== null) return fault
          }
    return this.shown > 0
      ? null
      : `${this.operation}.${this.name}: no value was accepted: ${this.refusals.slice(0, 4).join('; ')}`
  }
}

/** Returns a body with the required properties, and one for each example of the contract. */
function bodiesOf(create: string): Row[] {
  const known = knownOf({ ...world.main, ...world.plain })
  const schema = bodySchema(create)
  const further = (schema?.examples ?? []).slice(1).map((each) => fill(each, schema, known) as Row)
  return [...(['required', 'example'] as const).map((part) => validBody(create, known, part) as Row), ...further]
}

const takesNull = (schema: SchemaObject): boolean =>
  typesOf(schema).includes('null') || (schema.anyOf ?? schema.oneOf ?? []).some((each) => takesNull(follow(each)))

async function faultsOf(resource: Walked): Promise<{ faults: string[]; count: number }> {
  const faults: (string | null)[] = []
  const { create, update, entity } = resource
  const made = new Map<string, Property>()
  for (const [name] of properties(create)) {
    const property = new Property(resource, create, name)
    made.set(name, property)
    const bodies = () => bodiesOf(create)
    const own = bodies().flatMap((body) => (body[name] === undefined ? [] : [body[name]]))
    faults.push(
      await property.fault(
        bodies,
        2,
        [...valuesOf(name, property.schema, world), ...own].filter((each) => each !== null),
      ),
    )
  }
  if (update === undefined) return { faults: faults.flatMap((each) => each ?? []), count: made.size }
  for (const [name] of properties(update)) {
    const property = new Property(resource, update, name)
    const { id = world.main[entity] ?? 0, body = {} } = made.get(name)?.last ?? {}
    const values = [...valuesOf(name, property.schema, world), ...(body[name] === undefined ? [] : [body[name]])]
    const present = writable((await read(resource, id))?.[name], property.schema)
    if (Array.isArray(present)) property.kept = present
    const added = Array.isArray(present)
      ? values.flatMap((each) => (Array.isArray(each) ? [[...present, ...each]] : []))
      : []
    faults.push(await property.fault(() => [{}], 2, [...values, ...added], id))
  }
  return { faults: faults.flatMap((each) => each ?? []), count: made.size + properties(update).length }
}

/** Returns a shown list in the form of the body. */
const writable = (shown: unknown, schema: SchemaObject): unknown =>
  Array.isArray(shown) ? shown.map((each) => withOnly(each, follow(schema.items).properties)) : shown

const withOnly = (value: unknown, properties: Record<string, SchemaObject> | undefined): unknown =>
  properties && typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).filter(([name]) => Object.hasOwn(properties, name)))
    : value

beforeAll(async () => {
  const { body, headers } = await form({ file: file('pixel.png', pixel) })
  moreIds.files = [(await world.server.admin.post('/files', body, { headers })).body.data.id]
  moreIds.stages = [1, 2, 3, 4, 5, 6]
  for (const { list, path, entity } of resources)
    if (list !== undefined && moreIds[entity] === undefined)
      moreIds[entity] = (await world.server.admin.get(`/${path}?per_page=100`)).body.data
        .map(({ id }: Row) => id)
        .reverse()
})

/** The lists of all resources, which have an `id` to sort by. */
const lists = resources.flatMap(({ list }) => (list !== undefined && sortNames(list).includes('id') ? list : []))
/** The sort names by which all records are equal. */
const unvaried: string[] = []
const counts = { properties: 0, filters: 0, sorts: 0, columns: 0 }

describe('a writable property', () => {
  it.each(resources.filter(({ create }) => properties(create).length > 0).map((each) => [each.entity, each] as const))(
    'of %s is shown again',
    async (_entity, resource) => {
      const { faults, count } = await faultsOf(resource)
      counts.properties += count
      expect(faults).toEqual([])
    },
  )
})

/** Returns all records of a list, as the list shows them. */
async function rowsOf(list: string, query = ''): Promise<Row[]> {
  const url = `${urlOf(world, list)}?per_page=100${query}`
  const { status, body, text } = await send(world, list, { method: 'GET', url })
  if (status !== 200) throw new Error(`${url}: ${text}`)
  const { next } = body.links
  if (next === null) return body.data
  return [
    ...body.data,
    ...(await rowsOf(list, `${query.replace(/&page=\d+/, '')}&page=${Number(/[?&]page=(\d+)/.exec(next)?.[1])}`)),
  ]
}

it('a key of one body is a key of the other, unless replies never show it', () => {
  const keys = (operation: string) => properties(operation).map(([name]) => name)
  const pairs = resources.flatMap(({ create, update }) => (update === undefined ? [] : [[create, update] as const]))
  const lost = pairs.flatMap(([create, update]) => [
    ...keys(create).flatMap((name) => (keys(update).includes(name) ? [] : `${update} forgets ${name} of ${create}`)),
    ...keys(update).flatMap((name) => (keys(create).includes(name) ? [] : `${create} forgets ${name} of ${update}`)),
  ])
  expect(lost).toEqual([])
})

const idsOf = (rows: readonly Row[]): unknown[] => rows.map(({ id }) => id)

const found = async (list: string, parameter: string, value: unknown): Promise<unknown[] | null> => {
  const text = encodeURIComponent(String(value).replaceAll(',', '\\,'))
  const { status, body } = await send(world, list, {
    method: 'GET',
    url: `${urlOf(world, list)}?per_page=100&sort=id&${encodeURIComponent(parameter)}=${text}`,
  })
  return status === 200 && body.links.next === null ? idsOf(body.data) : null
}

/** Returns what is wrong with a filter, tested with values of the records and with others. */
async function filterFault(list: string, rows: readonly Row[], filter: ListFilter): Promise<string | null> {
  const { parameter, field } = filter
  if (rows.every((row) => shownBy(row, field) === undefined)) return hiddenFault(list, rows, filter)
  let excludes = filter.operator !== ''
  for (const { value, holds } of testsOf(rows, filter, world)) {
    const [ids, wanted] = [await found(list, parameter, value), idsOf(rows.filter(holds))]
    if (ids === null) continue
    if (String(ids) !== String(wanted)) return `${list} ${parameter}=${value}: finds ${ids} instead of ${wanted}`
    excludes ||= wanted.length < rows.length
  }
  return excludes ? null : `${list} ${parameter}: no value excludes a record`
}

/**
 * Tests a filter by something that rows show only as a part, such as `phone` in `contact_numbers`.
 */
async function hiddenFault(
  list: string,
  rows: readonly Row[],
  { parameter, field }: ListFilter,
): Promise<string | null> {
  const all = String(idsOf(rows))
  for (const value of new Set([true, ...(moreIds[`${field}s`] ?? []), ...rows.flatMap(partsOf)])) {
    const [ids, others] = [await found(list, parameter, value), await found(list, field, value)]
    if (ids === null || ids.length === 0 || ids.length === rows.length) continue
    if (parameter === field) return null
    const rest = idsOf(rows).filter((id) => !others?.includes(id))
    return String(ids) === String(rest) ? null : `${list} ${parameter}=${value}: finds ${ids} instead of ${rest}`
  }
  return `${list} ${parameter}: no value finds some records of ${all} and not others`
}

describe('a filter', () => {
  beforeAll(async () => {
    // Leads rot, and offers expire.
    world.server.clock.advanceMs(35 * 86_400_000)
    for (const [id, { method, path }] of facts)
      if (method === 'put' && /\{id\}\/\w+$/.test(path)) await send(world, id, request(world, id))
    await world.server.work()
    // A view that selects one record, of each type that has views.
    const types = (follow({ $ref: '#/components/schemas/ViewType' }).enum ?? []) as string[]
    const made = types.map(async (type) => {
      const { body } = await world.server.admin.post('/views', { name: 'One', type, where: { id: world.main[type] } })
      return body.data.id
    })
    moreIds.views = await Promise.all(made)
  })

  it.each(lists)('of %s finds the records with its value, and no others', async (list) => {
    const rows = await rowsOf(list, '&sort=id')
    const faults: (string | null)[] = []
    for (const filter of filtersOf(list)) faults.push(await filterFault(list, rows, filter))
    counts.filters += faults.length
    expect(faults.flatMap((each) => each ?? [])).toEqual([])
  })
})

describe('a sort name', () => {
  it.each(lists)('of %s orders the records', async (list) => {
    const faults: string[] = []
    for (const name of sortNames(list)) {
      const [up, down] = [await rowsOf(list, `&sort=${name}`), await rowsOf(list, `&sort=-${name}`)]
      const fault = sortFault(name, up, down)
      if (!isVaried(name, up)) unvaried.push(`${list} ${name}`)
      if (fault !== null) faults.push(`${list} ${name}: ${fault}`)
      counts.sorts++
    }
    expect(faults).toEqual([])
  })
})

/** The exports, each with the list of the same records. */
const exports = resources.flatMap(({ entity, export: id, list }) => (id && list ? [{ entity, id, list }] : []))

async function csvOf(id: string): Promise<{ header: string[]; rows: Record<string, string>[] }> {
  const { status, text } = await send(world, id, { method: 'GET', url: `${urlOf(world, id)}?format=csv&sort=id` })
  expect(status).toBe(200)
  const [header = [], ...lines] = parse(text, { relax_column_count: false }) as string[][]
  return { header, rows: lines.map((line) => Object.fromEntries(line.map((cell, at) => [header[at], cell]))) }
}

describe('a CSV export', () => {
  it.each(exports)('of $entity has a column for each property, with its value', async ({ id, list }) => {
    const { header, rows } = await csvOf(id)
    const records = await rowsOf(list, '&sort=id')
    expect(rows.length).toBe(records.length)
    const faults = Object.keys(records[0] ?? {}).flatMap((name) => {
      const columns = header.filter((each) => each === name || each.startsWith(`${name}.`) || isPartColumn(each, name))
      counts.columns += columns.length
      if (columns.length === 0 && name !== 'custom_attributes' && !isAlwaysNull(name))
        return [`${list} ${name} has no column`]
      const wrong = records.findIndex((record, at) => {
        const [value, cell] = [record[name], rows[at]?.[name]]
        return typeof value !== 'object' && cell !== undefined && unescapeFormula(cell) !== String(value)
      })
      return wrong < 0 ? [] : [`${list} ${name}: ${rows[wrong]?.[name]} instead of ${records[wrong]?.[name]}`]
    })
    expect(faults).toEqual([])
  })
})

const isAlwaysNull = (name: string): boolean =>
  Object.values((document.components?.schemas ?? {}) as Record<string, SchemaObject>).some(
    ({ properties }) => properties?.[name]?.type === 'null',
  )

/**
 * A list of records has a column of its singular: `products` is `product`, `leads` is `lead_ids`.
 */
const isPartColumn = (column: string, name: string): boolean =>
  [name.replace(/s$/, ''), `${name.replace(/s$/, '')}_ids`].includes(column)

it('tests all of them', () => {
  expect(counts.properties).toBeGreaterThanOrEqual(378)
  expect(counts.filters).toBeGreaterThanOrEqual(587)
  expect(counts.sorts).toBeGreaterThanOrEqual(122)
  // In these lists the world has one value, so their order says nothing.
  expect(unvaried.length, unvaried.join(', ')).toBeLessThanOrEqual(8)
})
