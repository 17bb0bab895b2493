// Races: concurrent requests that are each allowed alone, but not all together. The result must be
// the same as if they ran one after another.
import { describe, expect, it } from 'vitest'
import type { Caller, Reply } from '../../support/app.ts'
import { given, seeded, validBody } from '../../support/given.ts'
import { csvOf, importing, path as imports } from '../../support/importing.ts'
import { someone } from '../../support/people.ts'
import { useServer } from '../../support/using.ts'

const server = useServer()

const at = 8
/** Runs the same call several times concurrently. */
const together = (call: (index: number) => Promise<Reply>): Promise<Reply[]> =>
  Promise.all(Array.from({ length: at }, (_, index) => call(index)))
const statuses = (replies: readonly Reply[]): number[] => replies.map(({ status }) => status).sort()
const one = (status: number, other: number): number[] => [status, ...Array<number>(at - 1).fill(other)].sort()
const total = async (path: string): Promise<number> => (await server.admin.get(`${path}?per_page=1`)).body.meta.total
/** Returns the names of the after-events. */
const done = (base: string): string[] => server.events().filter((name) => name === `${base}.after`)

describe('at the same moment', () => {
  it('administrators cannot all deactivate, demote or delete each other: one who holds everything is left', async () => {
    const { admin } = server
    const weak = await given(admin).role({ permission_type: 'custom', permissions: ['leads'] })
    const ways: ((caller: Caller, id: number) => Promise<Reply>)[] = [
      (caller, id) => caller.put(`/settings/users/${id}`, { is_active: false }),
      (caller, id) => caller.put(`/settings/users/${id}`, { role_id: weak.id }),
      (caller, id) => caller.delete(`/settings/users/${id}`),
    ]
    for (const way of ways) {
      const [first, second] = [await someone(server, 'all'), await someone(server, 'all')]
      expect((await second.caller.put('/settings/users/1', { is_active: false })).status).toBe(200)
      await Promise.all([way(first.caller, second.id), way(second.caller, first.id)])
      const left = await server.store.db
        .selectFrom('users')
        .innerJoin('roles', 'roles.id', 'users.role_id')
        .select('users.id')
        .where('roles.permission_type', '=', 'all')
        .where('users.is_active', '=', 1)
        .execute()
      expect(left.length).toBeGreaterThanOrEqual(1)
      await server.rewind()
      await given(server.admin).role({ permission_type: 'custom', permissions: ['leads'] })
    }
  })

  it('one of several gets a unique value, and the others are told who has it', async () => {
    const { admin } = server
    const person = { ...validBody('createPerson', seeded), emails: [{ value: 'ada@example.com' }] }
    const made = await together(() => admin.post('/contacts/persons', person))
    expect(statuses(made)).toEqual(one(201, 409))
    expect(await total('/contacts/persons')).toBe(1)
    expect(done('contacts.person.create')).toHaveLength(1)

    const user = { ...validBody('createUser', seeded), email: 'Grace@example.com' }
    expect(statuses(await together(() => admin.post('/settings/users', user)))).toEqual(one(201, 409))
    const tag = { ...validBody('createTag', seeded), name: 'VIP' }
    expect(statuses(await together(() => admin.post('/tags', tag)))).toEqual(one(201, 409))
    const product = { ...validBody('createProduct', seeded), sku: 'X-1' }
    expect(statuses(await together(() => admin.post('/products', product)))).toEqual(one(201, 409))
  })

  it('one of several changes a version, and the others learn that it is gone', async () => {
    const { admin } = server
    const { id, version } = await given(admin).organization()
    server.events()
    const headers = { 'if-match': `"${version}"` }
    const changed = await together((index) =>
      admin.put(`/contacts/organizations/${id}`, { name: `N${index}` }, { headers }),
    )
    expect(statuses(changed)).toEqual(one(200, 412))
    expect(done('contacts.organization.update')).toHaveLength(1)
  })

  it('one of several takes the stock that each of them saw', async () => {
    const { admin } = server
    const { id } = await given(admin).product()
    const warehouse = await admin.post('/settings/warehouses', validBody('createWarehouse', seeded))
    expect(warehouse.status, warehouse.text).toBe(201)
    const warehouse_id = warehouse.body.data.id
    const location = await admin.post('/settings/locations', { name: 'A', warehouse_id })
    expect(location.status, location.text).toBe(201)
    const stock = (in_stock: number, more: object = {}) => ({
      inventories: [{ warehouse_id, warehouse_location_id: location.body.data.id, in_stock, allocated: 0, ...more }],
    })
    const path = `/products/${id}/inventories`
    const first = await admin.put(path, stock(at))
    expect(first.status, first.text).toBe(200)
    const taken = await together(() => admin.put(path, stock(at - 1, { expected_in_stock: at })))
    expect(statuses(taken)).toEqual(one(200, 409))
    expect((await admin.get(path)).body.data[0].in_stock).toBe(at - 1)
  })

  it('one of several requests with a key is done, whatever the others are told', async () => {
    const { admin } = server
    const body = validBody('createOrganization', seeded)
    const headers = { 'idempotency-key': 'once' }
    const made = await together(() => admin.post('/contacts/organizations', body, { headers }))
    expect(statuses(made).every((status) => status === 201 || status === 409)).toBe(true)
    expect(new Set(made.filter(({ status }) => status === 201).map((reply) => reply.body.data.id)).size).toBe(1)
    expect(await total('/contacts/organizations')).toBe(1)
    expect(done('contacts.organization.create')).toHaveLength(1)
  })

  it('an import is validated once and started once', async () => {
    const { admin } = server
    const using = importing(admin)
    const table = csvOf([['name', 'emails'], ...Array.from({ length: 20 }, (_, n) => [`P${n}`, `p${n}@example.com`])])
    const { id } = await using.record('persons', table, { process_in_queue: true })
    const validated = await together(() => admin.post(`${imports}/${id}/validate`))
    expect(statuses(validated)).toEqual(one(202, 409))
    await server.work()
    server.events()
    const started = await together(() => admin.post(`${imports}/${id}/start`))
    expect(statuses(started)).toEqual(one(202, 409))
    await server.work()
    expect((await admin.get(`${imports}/${id}`)).body.data).toMatchObject({
      state: 'completed',
      summary: { created: 20 },
    })
    expect(done('contacts.person.create')).toHaveLength(20)
  })

  it('a limit on how many there can be holds', async () => {
    const { admin } = server
    const hook = (name: string) => ({ name, url: 'https://example.com/' })
    for (let n = 0; n < 48; n++) expect((await admin.post('/settings/webhooks', hook(`W${n}`))).status).toBe(201)
    const made = await together((index) => admin.post('/settings/webhooks', hook(`Last ${index}`)))
    expect(made.filter(({ status }) => status === 201)).toHaveLength(2)
    expect(await total('/settings/webhooks')).toBe(50)
  })

  it('a record that is deleted twice is deleted once, and nothing is attached to a deleted record', async () => {
    const { admin } = server
    const { id } = await given(admin).lead()
    const tag = await given(admin).tag()
    server.events()
    const replies = await together((index) =>
      index % 2 === 0 ? admin.delete(`/leads/${id}`) : admin.post(`/leads/${id}/tags`, { tag_id: tag.id }),
    )
    expect(
      replies
        .filter((_reply, index) => index % 2 === 0)
        .map(({ status }) => status)
        .sort(),
    ).toEqual([200, 404, 404, 404])
    for (const { status } of replies) expect(status).toBeLessThan(500)
    expect(done('lead.delete')).toHaveLength(1)
    const links = await server.store.db.selectFrom('lead_tags').selectAll().where('lead_id', '=', id).execute()
    expect(links).toEqual([])
  })

  it('changes of the same record are both made, one after the other, each with a version of its own', async () => {
    const { admin } = server
    const { id, version } = await given(admin).lead()
    const changed = await together((index) => admin.put(`/leads/${id}`, { title: `Title ${index}` }))
    expect(statuses(changed)).toEqual(Array<number>(at).fill(200))
    expect(changed.map(({ body }) => body.data.version - version).sort()).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })
})
