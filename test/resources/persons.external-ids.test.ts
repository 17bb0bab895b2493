// External ids of records of every type that has them: in bodies, replies, filters, references,
// exports, events, deletion and restore; and the upsert by an external id.
import { describe, expect, it } from 'vitest'
import { operations } from '../../src/contract/operations.gen.ts'
import type { OperationId } from '../../src/contract/types.ts'
import { given, validBody } from '../support/given.ts'
import { importing } from '../support/importing.ts'
import { newName } from '../support/names.ts'
import { creatorOfUpsert, fact, facts } from '../support/schema.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const { admin } = server
const make = given(admin)

/** Every upsert of the contract, with the list and the operation that creates. */
const upserts = facts.flatMap(([id, { path }]) => {
  const create = creatorOfUpsert(id) as OperationId | undefined
  return create ? [{ id, list: path.replace(/^\/api\/admin|\/external\/.*$/g, ''), create }] : []
})

const known = (entity: string): number | undefined =>
  ['users', 'persons', 'roles', 'warehouses'].includes(entity) ? 1 : undefined
const bodyOf = (create: OperationId, external = 'x'): Record<string, any> => {
  const body = validBody(create, known, 'required') as Record<string, any>
  if (create === 'createActivity') return { ...body, type: 'note', comment: 'Called' }
  // The code of an attribute cannot change.
  if (create === 'createAttribute') return { ...body, code: `of_${external.replace(/\W/g, '_')}` }
  if (create === 'createProduct') return { ...body, sku: newName('sku') }
  return body
}

it('finds the upsert of every record that can be created and changed', () => {
  const paths = facts.map(([, { method, path }]) => `${method} ${path}`)
  const whole = facts.filter(
    ([, { method, path }]) =>
      method === 'post' && ['put', 'delete', 'get'].every((each) => paths.includes(`${each} ${path}/{id}`)),
  )
  const without = ['createImport', 'createView']
  expect(upserts.map(({ create }) => create).sort()).toEqual(
    whole
      .map(([id]) => id)
      .filter((id) => !without.includes(id))
      .sort(),
  )
})

describe.each(upserts)('$id', ({ id, list, create }) => {
  const at = (external: string, source = 'hubspot') => `${list}/external/${source}/${encodeURIComponent(external)}`
  /** Makes the records that the bodies name. */
  const prepare = async () => {
    await make.person()
    await make.warehouse()
  }
  const upsert = async (external: string, body = bodyOf(create, external)) => {
    await prepare()
    return admin.put(at(external), body)
  }
  /** Deletes the record; the first deletion of an e-mail moves it to the trash. */
  const remove = async (record: number) => {
    if (create === 'createEmail') await admin.delete(`${list}/${record}`)
    expect((await admin.delete(`${list}/${record}`)).status).toBe(200)
  }

  it('names a read-only key that it ignores, as an update does', async () => {
    await upsert('read-only')
    const { status, body } = await admin.put(at('read-only'), {
      ...bodyOf(create, 'read-only'),
      created_at: '2001-01-01T00:00:00.000Z',
    })
    expect(status).toBe(200)
    expect(body.meta?.warnings).toMatchObject([{ field: 'created_at' }])
  })

  it('creates a record once and then updates it', async () => {
    const body = await upsert('123')
    expect(body).toMatchObject({ status: 201, body: { data: { external_ids: { hubspot: '123' } } } })
    const { data } = body.body
    server.events()
    const again = await admin.put(at('123'), bodyOf(create, '123'))
    expect(again).toMatchObject({ status: 200, body: { data: { id: data.id } } })
    const history = async () => (await admin.get(`${list}/${data.id}/history`)).body.data
    const before = await history()
    for (const body of [{}, { external_ids: { hubspot: '123' } }]) {
      const same = await admin.put(at('123'), body)
      expect(same).toMatchObject({ status: 200, body: { data: { id: data.id, version: again.body.data.version } } })
    }
    expect(before.length).toBeGreaterThan(0)
    expect(await history()).toEqual(before)
    expect((await admin.get(`${list}?external_id=hubspot:123,hubspot:none`)).body.data).toMatchObject([{ id: data.id }])
    expect((await admin.get(`${list}?external_id=other:123`)).body.data).toEqual([])
  })

  it('only creates with If-None-Match, and only updates with If-Match', async () => {
    const only = { headers: { 'if-none-match': '*' } }
    const missing = await admin.put(at('a/b ü'), bodyOf(create, 'a/b ü'), { headers: { 'if-match': '"1"' } })
    expect(missing).toMatchObject({ status: 412, body: { code: 'version_mismatch' } })
    await prepare()
    const { status, body } = await admin.put(at('a/b ü'), bodyOf(create, 'a/b ü'), only)
    expect([status, body.data?.external_ids]).toEqual([201, { hubspot: 'a/b ü' }])
    expect((await admin.put(at('a/b ü'), bodyOf(create, 'a/b ü'), only)).status).toBe(412)
    expect((await admin.put(at('a/b ü'), {}, { headers: { 'if-match': '"99"' } })).status).toBe(412)
    expect((await admin.put(at('a/b ü'), {}, { headers: { 'if-match': `"${body.data.version}"` } })).status).toBe(200)
  })

  it('keeps other systems, removes one with null, and refuses an id that another record has', async () => {
    const first = (await upsert('1')).body.data
    const second = (await upsert('2')).body.data
    const path = `${list}/${first.id}`
    const put = async (external_ids: object) => admin.put(path, { external_ids })
    expect((await put({ sap: '77' })).body.data.external_ids).toEqual({ hubspot: '1', sap: '77' })
    const taken = await put({ hubspot: '2' })
    expect(taken).toMatchObject({
      status: 409,
      body: { code: 'unique_violation', conflicts: [{ id: second.id, field: 'external_ids.hubspot' }] },
    })
    const { version } = (await admin.get(path)).body.data
    const removed = await put({ hubspot: null })
    expect(removed.body.data).toMatchObject({ external_ids: { sap: '77' }, version: version + 1 })
    expect((await put({ sap: '77' })).body.data.version).toBe(version + 1)
    expect((await put({ 'Not a system': '1' })).status).toBe(422)
    expect((await put({ sap: '' })).status).toBe(422)
    expect((await put({ sap: 'a,b' })).status).toBe(422)
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`system${index}`, 'x']))
    expect((await put(many)).body.errors).toEqual({ external_ids: ['Must not have more than 20 entries.'] })
  })

  it('is deleted and restored with its external ids, unless another record has them by then', async () => {
    const { data } = (await upsert('9')).body
    if (fact(create).path && !facts.some(([, { path }]) => path === `/api/admin${list}/{id}/restore`)) return
    await remove(data.id)
    const restore = () => admin.post(`${list}/${data.id}/restore`)
    const other = (await upsert('9')).body.data
    expect(other.id).not.toBe(data.id)
    expect(await restore()).toMatchObject({ status: 409, body: { code: 'unique_violation' } })
    expect((await admin.put(`${list}/${other.id}`, { external_ids: { hubspot: null } })).status).toBe(200)
    expect((await restore()).status).toBeLessThan(300)
    expect((await admin.get(`${list}/${data.id}`)).body.data.external_ids).toEqual({ hubspot: '9' })
  })

  it('gives the external id of a deleted record to the next one', async () => {
    const { data } = (await upsert('deleted')).body
    await remove(data.id)
    expect((await admin.get(`${list}?external_id=hubspot:deleted`)).body.data).toEqual([])
    const next = await upsert('deleted')
    expect(next.status).toBe(201)
    expect(next.body.data.id).not.toBe(data.id)
  })

  it('has one winner of two upserts at once', async () => {
    await prepare()
    const both = await Promise.all([
      admin.put(at('race'), bodyOf(create, 'race')),
      admin.put(at('race'), bodyOf(create, 'race')),
    ])
    const statuses = both.map(({ status }) => status).sort()
    expect(statuses[1]).not.toBe(statuses[0])
    expect([200, 201, 409]).toEqual(expect.arrayContaining(statuses))
    expect((await admin.get(`${list}?external_id=hubspot:race`)).body.data).toHaveLength(1)
  })

  it('needs the permission to create, and for a change that to change', async () => {
    const { data } = (await upsert('rights')).body
    const [creates, edits] = [create, create.replace('create', 'update')].map(
      (each) => operations[each as OperationId].permission as string,
    )
    const may = async (...permissions: (string | undefined)[]) =>
      addUser(server, newName('May'), { permissions: permissions.filter((each) => each !== undefined) })
    const [creator, editor] = [await may(creates), await may(edits)]
    expect((await editor.put(at('rights'), {})).body.code).toBe('forbidden')
    expect((await creator.put(at('rights'), {})).body.code).toBe('forbidden')
    expect((await admin.get(`${list}/${data.id}`)).body.data.version).toBe(data.version)
  })

  it('names what a new record needs, and a different id in the body', async () => {
    const needs = await admin.put(at('new'), {})
    expect([needs.status, Object.keys(needs.body.errors ?? {}).length > 0]).toEqual([422, true])
    const different = await admin.put(at('new'), { ...bodyOf(create, 'new'), external_ids: { hubspot: 'other' } })
    expect(different.body.errors).toEqual({
      'external_ids.hubspot': ['Must be the external id in the path, or left out.'],
    })
    expect((await admin.get(`${list}?external_id=hubspot:new,hubspot:other`)).body.data).toEqual([])
  })

  it('creates nothing in a dry run', async () => {
    await prepare()
    const dry = { headers: { 'accord-dry-run': 'true' } }
    expect((await admin.put(at('dry'), bodyOf(create, 'dry'), dry)).status).toBe(200)
    expect((await admin.get(`${list}?external_id=hubspot:dry`)).body.data).toEqual([])
  })

  it('tells a user who may not see the record nothing but that the id is taken', async () => {
    await upsert('hidden')
    const limited = await addUser(server, newName('Limited'), { view: 'individual' })
    const { status, body } = await limited.put(at('hidden'), bodyOf(create, 'hidden'))
    const { code } = body
    const isOpenToAll = (await limited.get(`${list}?external_id=hubspot:hidden`)).body.data.length > 0
    // A user with a limited view changes only own tags.
    if (isOpenToAll) expect([status, code]).toEqual(id === 'upsertTag' ? [404, 'not_found'] : [200, undefined])
    else expect([status, body.code, body.conflicts[0].id]).toEqual([409, 'unique_violation', null])
    expect(id).toBeTruthy()
  })
})

describe('a reference by external id', () => {
  it('stands wherever bodies refer to such a record, also in custom attributes', async () => {
    const own = (source: string) => ({ external_ids: { [source]: newName('x') } })
    const ref = ({ external_ids }: any) => {
      const [[source, id] = []] = Object.entries(external_ids)
      return { external_id: `${source}:${id}` }
    }
    const organization = await make.organization(own('sap'))
    const person = (
      await admin.post('/contacts/persons', { name: 'Ada', ...own('hubspot'), organization_id: ref(organization) })
    ).body.data
    expect(person.organization.id).toBe(organization.id)
    const product = await make.product(own('shop'))
    const lead = (
      await admin.post('/leads', {
        ...{ title: 'Deal', lead_value: 1, ...own('hubspot') },
        person_id: ref(person),
        products: [{ product_id: ref(product), quantity: 1, price: 2 }],
      })
    ).body.data
    expect([lead.person.id, lead.products_amount]).toEqual([person.id, 2])
    const quote = (
      await admin.post('/quotes', {
        ...bodyOf('createQuote'),
        person_id: ref(person),
        lead_id: ref(lead),
        ...own('erp'),
      })
    ).body.data
    expect((await admin.get(`/leads/${lead.id}/quotes`)).body.data).toMatchObject([{ id: quote.id }])
    const activity = await admin.post('/activities', {
      ...{ type: 'note', comment: 'Called' },
      ...{ lead_ids: [ref(lead)], quote_ids: [ref(quote)], person_ids: [ref(person)] },
      ...{ organization_ids: [ref(organization)], product_ids: [ref(product)] },
    })
    expect(activity.body.data).toMatchObject({ leads: [{ id: lead.id }], persons: [{ id: person.id }] })
    await admin.post('/settings/attributes', {
      ...{ entity_type: 'persons', code: 'deal', name: 'Deal', type: 'lookup', lookup_type: 'leads' },
    })
    const put = await admin.put(`/contacts/persons/${person.id}`, { custom_attributes: { deal: ref(lead) } })
    expect(put.body.data?.custom_attributes).toEqual({ deal: lead.id })
    const unknown = await admin.post('/leads', {
      ...{ title: 'Deal', lead_value: 1, person_id: { external_id: 'hubspot:none' } },
    })
    expect(unknown.body.errors).toEqual({ person_id: ['No person has the external id hubspot:none.'] })
  })

  it('names no record that the caller may not see', async () => {
    const person = await make.person({ external_ids: { hubspot: 'secret' }, user_id: 1 })
    const limited = await addUser(server, newName('Limited'), { view: 'individual' })
    const reply = await limited.post('/leads', {
      ...{ title: 'Deal', lead_value: 1, person_id: { external_id: 'hubspot:secret' } },
    })
    expect(reply.body.errors).toEqual({ person_id: ['No person has the external id hubspot:secret.'] })
    expect(person.id).toBeGreaterThan(0)
  })
})

describe('external ids in files', () => {
  it('are exported in one column, and read back by an import', async () => {
    await make.person({ name: 'Ada', emails: [{ value: 'ada@x.example' }], external_ids: { hubspot: '1', sap: 'a:b' } })
    const { text } = await admin.get('/contacts/persons/export', { headers: { accept: 'text/csv' } })
    expect(text).toContain('hubspot:1|sap:a:b')
    const run = importing(admin)
    const table = 'name,emails,external_ids\nGrace,grace@x.example,hubspot:2|erp:7\n'
    expect((await run.run('persons', table)).errors).toEqual([])
    const grace = (await admin.get('/contacts/persons?external_id=hubspot:2')).body.data
    expect(grace).toMatchObject([{ name: 'Grace', external_ids: { erp: '7', hubspot: '2' } }])
    const wrong = await run.validate('persons', 'name,emails,external_ids\nEve,eve@x.example,7\n')
    expect(wrong.errors).toMatchObject([{ row: 2, column: 'external_ids' }])
  })

  it('find the record of a row: an import of leads updates instead of doubling them', async () => {
    const run = importing(admin)
    const table = (value: number) =>
      `title,lead_value,external_ids\nFirst,${value},crm:1\nSecond,${value},crm:2|erp:9\n`
    expect((await run.run('leads', table(5))).summary).toMatchObject({ created: 2, updated: 0 })
    expect((await run.run('leads', table(6))).summary).toMatchObject({ created: 0, updated: 2 })
    expect((await run.validate('leads', 'title,external_ids\nBoth,crm:1|erp:9\n')).errors).toMatchObject([
      { column: 'external_ids', code: 'unique_violation' },
    ])
    const leads = (await admin.get('/leads?external_id=crm:1,crm:2')).body.data
    expect(leads.map((lead: any) => lead.lead_value)).toEqual([6, 6])
  })
})
