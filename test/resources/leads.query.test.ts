// POST /…/query: related records are those in view, pages go on by cursor, what the contract does
// not define is refused, and so is a question that would read too much.
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { contract } from '../support/contract.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useSharedServer()

type Json = Record<string, any>
const paths = { persons: '/contacts/persons', organizations: '/contacts/organizations' }

async function make(path: string, body: Json): Promise<Json> {
  const reply = await server.admin.post(path, body)
  expect(reply.status, reply.text).toBe(201)
  return reply.body.data
}

beforeAll(async () => {
  const price = { entity_type: 'leads', code: 'c_price', name: 'Price', type: 'price' }
  for (const attribute of [price, { ...price, code: 'c_text', name: 'Text', type: 'text' }])
    await make('/settings/attributes', attribute)
  const { id } = await make(paths.persons, { name: 'Ada', emails: [{ value: 'ada@example.com', label: 'work' }] })
  for (let n = 0; n < 40; n++)
    await make('/leads', {
      title: ['Größe', 'Other'][n % 2],
      lead_value: n,
      person_id: id,
      lead_pipeline_stage_id: 1 + (n % 6),
    })
})

describe('a limited user', () => {
  it('finds own records, by related records in view only', async () => {
    const ben = await addUser(server, 'Ben', { view: 'individual' })
    const hidden = await make(paths.organizations, { name: 'Hidden Holding' })
    const seen = await make(paths.organizations, { name: 'Seen Holding', user_id: ben.id })
    for (const { id, name } of [hidden, seen])
      await make(paths.persons, { name: `At ${name}`, organization_id: id, user_id: ben.id })
    const named = { organization: { name: { contains: 'holding' } } }
    const namesFor = async (caller: Caller, where: Json) => {
      const reply = await caller.post(`${paths.persons}/query?sort=name`, { where })
      expect(reply.status, reply.text).toBe(200)
      return reply.body.data.map(({ name }: Json) => name)
    }
    expect(await namesFor(server.admin, named)).toEqual(['At Hidden Holding', 'At Seen Holding'])
    expect(await namesFor(ben, named)).toEqual(['At Seen Holding'])
    expect(await namesFor(ben, { not: [named] })).toEqual(['At Hidden Holding'])
  })

  it('meets no condition on records that it may not list', async () => {
    const where = { organization: { name: { is_empty: false } } }
    const found = async (caller: Caller) => (await caller.post(`${paths.persons}/query`, { where })).body.meta.total
    expect(await found(server.admin)).toBeGreaterThan(0)
    const dan = await addUser(server, 'Dan', { permissions: ['contacts', 'contacts.persons'] })
    expect((await dan.post(`${paths.persons}/query`, { where: {} })).status).toBe(200)
    expect(await found(dan)).toBe(0)
    expect(await found(await server.as(1, ['persons:read']))).toBe(0)
    expect((await (await server.as(1, ['leads:read'])).post(`${paths.persons}/query`, { where: {} })).status).toBe(403)
  })
})

describe('paging', () => {
  it('goes on by cursor, which belongs to its question', async () => {
    const where = { or: [{ status: 1 }, { title: { starts_with: 'gr' } }] }
    const leads: Json[] = (await server.admin.get('/leads?per_page=100&sort=id')).body.data
    const expected = leads.filter(({ status, title }) => status === 1 || title === 'Größe').map(({ id }) => id)
    expect(expected.length).toBeGreaterThan(25)
    const ids: number[] = []
    let cursor: string | null = ''
    let first: string | null = null
    while (cursor !== null) {
      const reply: Json = await server.admin.post(`/leads/query?sort=id&per_page=7&cursor=${cursor}`, { where })
      expect(reply.status, reply.text).toBe(200)
      ids.push(...reply.body.data.map(({ id }: Json) => id))
      cursor = reply.body.meta.next_cursor
      first ??= cursor
    }
    expect(ids).toEqual(expected)
    const other = await server.admin.post(`/leads/query?sort=id&per_page=7&cursor=${first}`, { where: { status: 1 } })
    expect(other).toMatchObject({ status: 422, body: { errors: { 'query.cursor': [expect.any(String)] } } })
  })
})

describe('a moment', () => {
  it('is read in each form that the parameters of the list take', async () => {
    const { data } = (await server.admin.get('/leads?per_page=1&sort=id')).body
    const at = data[0].created_at.slice(0, 19)
    const found = async (bound: string) => {
      const reply = await server.admin.post('/leads/query', { where: { created_at: { lte: bound }, id: data[0].id } })
      expect(reply.status, reply.text).toBe(200)
      return reply.body.meta.total
    }
    for (const same of [`${at}Z`, `${at}`, `${at}+00:00`, `${at}-01:00`, at.slice(0, 10)])
      expect(await found(same), same).toBe(1)
    expect(await found(`${at}+01:00`)).toBe(0)
  })
})

describe('a question that the contract does not define', () => {
  const many = Array.from({ length: 50 }, (_, n) => ({ id: n + 1, user_id: 1, status: 1 }))
  it.each<[string, Json]>([
    ['where', { where: { or: many } }],
    ['where.titel', { where: { titel: 'x' } }],
    ['where.or', { where: { or: [] } }],
    ['where.closed_at.gte', { where: { closed_at: { gte: '2026-02-30T10:00:00Z' } } }],
    ['where.lead_value', { where: { lead_value: 'many' } }],
    ['where.lead_value.gte', { where: { lead_value: { gte: 'x' } } }],
    ['where.or.0.not.0.or', { where: { or: [{ not: [{ or: [{ id: 1 }] }] }] } }],
    ['where.title.contains', { where: { title: { contains: "'" } } }],
    ['where.custom_attributes.c_text][not', { where: { custom_attributes: { 'c_text][not': 'x' } } }],
    ['where.custom_attributes.c_pric', { where: { custom_attributes: { c_pric: 1 } } }],
    ['where.and.0.custom_attributes.c_price', { where: { and: [{ custom_attributes: { c_price: { gte: 'x' } } }] } }],
    ['where.custom_attributes.c_text', { where: { custom_attributes: { c_text: { gte: 'x' } } } }],
    ['where', {}],
  ])('is refused at %s', async (field, body) => {
    const reply = await server.admin.post('/leads/query', body)
    expect(reply.status, reply.text).toBe(422)
    expect(Object.keys(reply.body.errors)).toEqual([field])
  })
})

describe('the contract of the questions', () => {
  const { paths: operations, components } = contract as Json
  const asked = Object.entries<Json>(operations).filter(
    ([path]) => path.endsWith('/query') && !path.includes('reports'),
  )
  const named = (each: Json): Json => (each.$ref ? components.parameters[each.$ref.split('/').at(-1)] : each)
  const paging = ['page', 'per_page', 'count', 'cursor', 'sort', 'include', 'fields', 'q', 'view']

  it.each(asked.map(([path]) => path))('%s has the filters of its list', (path) => {
    const list = operations[path.replace(/\/query$/, '')].get
    const filters = list.parameters
      .map(named)
      .filter((each: Json) => each.in === 'query')
      .map(({ name }: Json) => name.replace(/\[.*/, ''))
    const expected = new Set(filters.filter((name: string) => !paging.includes(name)))
    const noun = operations[path].post.requestBody.content['application/json'].schema.$ref
      .split('/')
      .at(-1)
      .replace('Query', '')
    const fieldsOf = (name: string) =>
      Object.keys(components.schemas[`${noun}${name}`].properties).filter(
        (key) => !['person', 'organization', 'lead'].includes(key),
      )
    expect(new Set(fieldsOf('Conditions'))).toEqual(expected)
    for (const level of ['Where', 'WhereGroup'])
      expect(fieldsOf(level)).toEqual(['and', 'or', 'not', ...fieldsOf('Conditions')])
  })
})

describe('a question that no index serves', () => {
  it('is refused in a list of more than 200,000 records', async () => {
    const { db } = server.store
    const digits = '(select 0 as d union all select 1 union all select 2 union all select 3 union all select 4)'
    const [a, ...others] = ['a', 'b', 'c', 'e', 'f', 'g', 'h'].map((name) => `${digits} as ${name}`)
    const number = 'a.d + 5 * (b.d + 5 * (c.d + 5 * (e.d + 5 * (f.d + 5 * (g.d + 5 * (h.d + 5 * i.d))))))'
    const from = `${[a, ...others].join(' cross join ')} cross join ${digits} as i`
    await sql`insert into organizations (name, name_key, custom_attributes, created_at, updated_at)
      select 'x', 'n' || (${sql.raw(number)}), '{}', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z'
      from ${sql.raw(from)} where ${sql.raw(number)} < 200001`.execute(db)
    const ask = (body: Json, query = '') => server.admin.post(`${paths.organizations}/query${query}`, body)
    const contains = { name: { contains: 'n77' } }
    for (const where of [
      {},
      contains,
      { or: [contains, { id: 7 }] },
      { not: [{ id: 7 }] },
      { name: { starts_with: 'n' } },
      { country: 'GB' },
    ])
      expect(await ask({ where }), JSON.stringify(where)).toMatchObject({
        status: 422,
        body: { code: 'query_too_costly' },
      })
    expect((await ask({ where: contains })).body.detail).toContain('By name, no index leaves at most 200,000')
    for (const where of [
      { ...contains, id: 7 },
      { and: [contains, { name: { starts_with: 'n7' } }] },
      { country: 'GB', tag_id: 1 },
    ])
      expect((await ask({ where })).status, JSON.stringify(where)).toBe(200)
    expect((await ask({ where: contains }, '?q=holding')).status).toBe(200)
  }, 120_000)
})
