// Wherever a body of the contract takes the id of a record, it also takes an object that names the
// record, with the same result.
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { resources } from '../../src/operations.ts'
import { bodySchema, facts, follow, type SchemaObject, takesHeader } from '../support/schema.ts'
import { request, send } from './support.ts'
import { useWorld } from './use-world.ts'

const world = useWorld()

/** Records without another name than their ids in other systems. */
const unnamed = ['leads', 'quotes', 'activities', 'emails', 'locations', 'attributes']
beforeAll(async () => {
  for (const { table, getOperation, namedBy } of resources.values()) {
    if (namedBy?.keys.external_id === undefined) continue
    const records = await world.server.store.db
      .selectFrom(table as 'leads')
      .select('id')
      .execute()
    for (const { id } of records) {
      const path = getOperation.path.replace('{id}', String(id))
      await world.server.admin.put(`/${path}`, { external_ids: { hubspot: `id${id}` } })
    }
  }
  await world.server.keep()
})

interface Place {
  path: (string | number)[]
  entity: string
  id: number
}

/** Returns the places of the body where an id could be a name. */
function references(shape: SchemaObject | undefined, value: unknown, path: Place['path'] = []): Place[] {
  const schema = follow(shape)
  const entity = schema['x-reference']
  if (typeof entity === 'string') return typeof value === 'number' ? [{ path, entity, id: value }] : []
  const branches = [schema, ...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].map(follow)
  const found = branches.flatMap(({ properties = {}, items }) =>
    Array.isArray(value)
      ? value.flatMap((each, index) => (items ? references(items, each, [...path, index]) : []))
      : typeof value === 'object' && value !== null
        ? Object.entries(value).flatMap(([key, each]) =>
            properties[key] ? references(properties[key], each, [...path, key]) : [],
          )
        : [],
  )
  return [...new Map(found.map((each) => [each.path.join('.'), each])).values()]
}

/** Returns variants of the body with one more reference each. */
function withMoreReferences(shape: SchemaObject | undefined, body: unknown): object[] {
  return Object.entries(follow(shape).properties ?? {}).flatMap(([key, property]) => {
    const schema = follow(property)
    const [entity, items] = [schema['x-reference'], follow(schema.items)['x-reference']]
    const id = world.main[String(entity ?? items)]
    return id === undefined ? [] : [{ ...(body as object), [key]: items === undefined ? id : [id] }]
  })
}

/** Returns the body with the name of the record in the place of its id. */
async function named(body: unknown, { path, entity, id }: Place): Promise<object> {
  if (entity === 'records') return put(body, path, { external_id: `hubspot:id${id}` })
  const table = entity === 'stages' ? 'lead_pipeline_stages' : (resources.get(entity)?.table ?? '')
  const row = await world.server.store.db
    .selectFrom(table as 'products')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const emails = JSON.parse((row as { emails?: string }).emails ?? '[]')
  return put(
    body,
    path,
    entity === 'users'
      ? { email: (row as unknown as { email: string }).email }
      : emails.length > 0
        ? { email: emails[0].value }
        : entity === 'products'
          ? { sku: row.sku }
          : unnamed.includes(entity)
            ? { external_id: `hubspot:id${id}` }
            : { name: row.name },
  )
}

/** Returns a copy of the body with another value at the path. */
function put(body: unknown, path: Place['path'], value: unknown): object {
  const copy = structuredClone(body) as Record<string | number, unknown>
  const holder = path.slice(0, -1).reduce<unknown>((at, key) => (at as typeof copy)[key], copy) as typeof copy
  holder[path.at(-1) ?? ''] = value
  return copy
}

const ids = facts
  .filter(([id, { servedBy, takesBytes }]) => servedBy === 'handler' && bodySchema(id) && !takesBytes)
  .map(([id]) => id)
  .filter((id) => takesHeader(id, 'Accord-Dry-Run'))

describe('a name in the place of an id', () => {
  const tried = new Set<string>()

  it.each(ids)('has the same result in %s', async (id) => {
    const { body: sent, ...rest } = request(world, id)
    const headers = { 'accord-dry-run': 'true' }
    for (const body of [sent, ...withMoreReferences(bodySchema(id), sent)]) {
      const usual = await send(world, id, { ...rest, body, headers })
      // Not every reference fits the others of the example.
      if (body !== sent && usual.status > 299) continue
      for (const place of references(bodySchema(id), body)) {
        tried.add(place.entity)
        const reply = await send(world, id, { ...rest, body: await named(body, place), headers })
        expect([place.path.join('.'), reply.status], reply.text).toEqual([place.path.join('.'), usual.status])
        expect(withoutTimes(reply.text)).toBe(withoutTimes(usual.text))
      }
    }
  })

  it('was tried for every type of record', () => {
    const text = readFileSync('openapi.yaml', 'utf8')
    const named = new Set([...text.matchAll(/x-reference: (\S+)/g)].map(([, entity]) => entity))
    expect([...tried].sort()).toEqual([...named].sort())
  })
})

const withoutTimes = (text: string): string =>
  text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z|"(request_id|message_id|thread_id)":[^,]*|"references":\[[^\]]*\]/g, '')
