// The history of a record, for every resource: lists the changes of fields with their user, newest
// first, also after deletion. It is visible to callers who see the record, and shows only fields
// that the record shows.
import { describe, expect, it } from 'vitest'
import type { Context } from '../../../src/kernel/context.ts'
import { changeLog, describe as describeLines } from '../../../src/kernel/history/history.ts'
import { given } from '../../support/given.ts'
import { useServer } from '../../support/using.ts'
import { addUser } from '../../support/viewers.ts'

const server = useServer()
const make = given(server.admin)

type Json = Record<string, any>

const historyOf = async (path: string, query = ''): Promise<Json[]> => {
  const { status, body, text } = await server.admin.get(`${path}/history${query}`)
  expect(status, text).toBe(200)
  return body.data
}

describe('listPersonHistory', () => {
  it('tells of the deletions and restores of its organization, and not of those after it has left', async () => {
    const { id: organization_id } = await make.organization({ name: 'Acme' })
    const [loyal, moved] = [await make.person({ organization_id }), await make.person({ organization_id })]
    const path = `/contacts/organizations/${organization_id}`
    const drop = () => server.admin.delete(path)
    const back = () => server.admin.post(`${path}/restore`)
    await drop()
    await server.admin.put(`/contacts/persons/${loyal.id}`, { job_title: 'Engineer' })
    await back()
    await server.admin.put(`/contacts/persons/${moved.id}`, { organization_id: null })
    await drop()
    const acme = { id: organization_id, name: 'Acme' }
    const changed = { key: 'organization_id', label: 'Organization' }
    const lost = { name: 'contacts.organization.delete.after', changes: [{ ...changed, old: acme, new: null }] }
    const found = {
      name: 'contacts.organization.create.after',
      restored: false,
      changes: [{ ...changed, old: null, new: acme }],
    }
    const update = { name: 'contacts.person.update.after' }
    const create = { name: 'contacts.person.create.after' }
    expect(await historyOf(`/contacts/persons/${loyal.id}`)).toMatchObject([lost, found, update, lost, create])
    expect(await historyOf(`/contacts/persons/${moved.id}`)).toMatchObject([update, found, lost, create])
    expect((await server.admin.get(`/contacts/persons/${loyal.id}/history?per_page=2&page=2`)).body).toMatchObject({
      data: [update, lost],
      meta: { total: 5 },
    })
  })

  it('tells of an organization that was deleted and restored after the person', async () => {
    const { id: organization_id } = await make.organization({ name: 'Acme' })
    const { id } = await make.person({ organization_id })
    const [person, organization] = [`/contacts/persons/${id}`, `/contacts/organizations/${organization_id}`]
    await server.admin.delete(person)
    await server.admin.delete(organization)
    await server.admin.post(`${person}/restore`)
    await server.admin.post(`${organization}/restore`)
    expect((await server.admin.get(person)).body.data.organization_id).toBe(organization_id)
    expect((await historyOf(person)).map(({ name }) => name)).toEqual([
      'contacts.organization.create.after',
      'contacts.person.create.after',
      'contacts.person.delete.after',
      'contacts.person.create.after',
    ])
  })
})

describe('listLeadHistory', () => {
  it('says who changed which field from what to what, newest first', async () => {
    const { id } = await make.lead({ title: 'Deal', lead_value: 10 })
    server.clock.advanceMs(1000)
    await server.admin.put(`/leads/${id}`, { title: 'Big deal', lead_value: 10, lead_pipeline_stage_id: 2 })
    const [update, create] = await historyOf(`/leads/${id}`)
    expect(update).toEqual({
      id: expect.any(Number),
      name: 'lead.update.after',
      actor: { type: 'user', id: 1, name: 'Example Admin' },
      token: { id: expect.any(Number), name: 'test' },
      workflow: null,
      origin: 'api',
      restored: false,
      occurred_at: '2026-03-01T09:30:01.000Z',
      changes: [
        { key: 'title', label: 'Title', old: 'Deal', new: 'Big deal' },
        {
          key: 'stage_changed_at',
          label: 'Stage Changed At',
          old: '2026-03-01T09:30:00.000Z',
          new: '2026-03-01T09:30:01.000Z',
        },
        {
          key: 'lead_pipeline_stage_id',
          label: 'Stage',
          old: { id: 1, code: 'new', name: 'New', probability: 10, sort_order: 1 },
          new: { id: 2, code: 'follow-up', name: 'Follow Up', probability: 25, sort_order: 2 },
        },
      ],
    })
    expect(create).toMatchObject({ name: 'lead.create.after', occurred_at: '2026-03-01T09:30:00.000Z' })
    expect(create?.changes).toContainEqual({ key: 'lead_value', label: 'Lead Value', old: null, new: 10 })
  })

  it('tells of a new lead the fields that are set, a reference once, and no bookkeeping', async () => {
    const person = await make.person({ name: 'Ann', emails: [{ value: 'ann@example.com' }] })
    const { id } = await make.lead({ person_id: person.id })
    const [create] = await historyOf(`/leads/${id}`)
    const keys = create?.changes.map(({ key }: Json) => key)
    for (const key of ['id', 'version', 'created_at', 'lost_reason', 'tags', 'person', 'stage', 'activities_count'])
      expect(keys).not.toContain(key)
    expect(create?.changes).toContainEqual({
      key: 'person_id',
      label: 'Person',
      old: null,
      new: { id: person.id, name: 'Ann', email: 'ann@example.com' },
    })
    expect(create?.changes.every((each: Json) => each.old === null && each.new !== null)).toBe(true)
  })

  it('calls fields by the names the installation gave them, and shows custom values one by one', async () => {
    const { db } = server.store
    await db.updateTable('attributes').set({ name: 'Worth' }).where('code', '=', 'lead_value').execute()
    const { id } = await make.lead({ lead_value: 1 })
    const event = {
      name: 'lead.update.after',
      entity_type: 'leads',
      entity_id: id,
      actor_type: 'system',
      origin: 'import',
      before: JSON.stringify({ id, lead_value: 1, custom_attributes: { sector: null, size: 3 } }),
      after: JSON.stringify({ id, lead_value: 2, custom_attributes: { sector: 'retail', size: 3 } }),
      changed: JSON.stringify(['lead_value', 'custom_attributes.sector']),
      created_at: '2026-03-01T09:30:00.000Z',
    }
    await db.insertInto('events').values(event).execute()
    const [update] = await historyOf(`/leads/${id}`)
    expect(update).toMatchObject({ actor: { type: 'system', id: null, name: null }, token: null, origin: 'import' })
    expect(update?.changes).toEqual([
      { key: 'lead_value', label: 'Worth', old: 1, new: 2 },
      { key: 'custom_attributes.sector', label: 'Sector', old: null, new: 'retail' },
    ])
  })

  it('has tags and product lines that were added and taken away', async () => {
    const [lead, tag, product] = [await make.lead(), await make.tag({ name: 'VIP' }), await make.product()]
    await server.admin.post(`/leads/${lead.id}/tags`, { tag_id: tag.id })
    await server.admin.delete(`/leads/${lead.id}/tags/${tag.id}`)
    await server.admin.post(`/leads/${lead.id}/products`, { product_id: product.id, quantity: 1 })
    await server.admin.put(`/leads/${lead.id}/products/${product.id}`, { quantity: 2 })
    const entries = await historyOf(`/leads/${lead.id}`)
    const ref = { id: tag.id, name: 'VIP', color: tag.color }
    expect(entries.map(({ name }) => name)).toEqual([
      'leads.product.update.after',
      'leads.product.create.after',
      'leads.tag.delete.after',
      'leads.tag.create.after',
      'lead.create.after',
    ])
    expect(entries[0]?.changes).toContainEqual({ key: 'quantity', label: 'Quantity', old: 1, new: 2 })
    expect(entries[1]?.changes[0]).toMatchObject({ key: 'product_id', new: { id: product.id, sku: product.sku } })
    expect(entries[2]?.changes).toEqual([{ key: 'tag_id', label: 'Tag', old: ref, new: null }])
    expect(entries[3]?.changes).toEqual([{ key: 'tag_id', label: 'Tag', old: null, new: ref }])
  })

  it('comes in pages, by number and by cursor, and unchanged with 304', async () => {
    const { id } = await make.lead()
    for (const title of ['a', 'b', 'c', 'd']) await server.admin.put(`/leads/${id}`, { title })
    const all = await historyOf(`/leads/${id}`)
    const first = await server.admin.get(`/leads/${id}/history?per_page=2`)
    expect(first.body.meta).toMatchObject({ total: 5, last_page: 3 })
    const pages = []
    for (let path: string | null = `/leads/${id}/history?per_page=2&cursor=`; path !== null; ) {
      const { body }: { body: Json } = await server.admin.get(path)
      pages.push(...body.data)
      path = body.links.next?.replace(/^.*\/api\/admin/, '') ?? null
    }
    expect(pages).toEqual(all)
    const headers = { 'if-none-match': String(first.headers.etag) }
    expect((await server.admin.get(`/leads/${id}/history?per_page=2`, { headers })).status).toBe(304)
    await server.admin.put(`/leads/${id}`, { title: 'e' })
    expect((await server.admin.get(`/leads/${id}/history?per_page=2`, { headers })).status).toBe(200)
  })

  it('leaves out changes without effect, dry runs, and other records with that id', async () => {
    const lead = await make.lead()
    await make.tag()
    await server.admin.put(`/leads/${lead.id}`, { title: lead.title })
    await server.admin.put(`/leads/${lead.id}`, { title: 'x' }, { headers: { 'accord-dry-run': 'true' } })
    expect((await historyOf(`/leads/${lead.id}`)).map(({ name }) => name)).toEqual(['lead.create.after'])
  })

  it('goes on when the lead is deleted and restored', async () => {
    const { id } = await make.lead({ title: 'Deal' })
    await server.admin.delete(`/leads/${id}`)
    const [deletion] = await historyOf(`/leads/${id}`)
    expect(deletion).toMatchObject({ name: 'lead.delete.after', restored: false })
    expect(deletion?.changes).toContainEqual({ key: 'title', label: 'Title', old: 'Deal', new: null })
    await server.admin.post(`/leads/${id}/restore`)
    expect((await historyOf(`/leads/${id}`)).map(({ name, restored }) => [name, restored])).toEqual([
      ['lead.create.after', true],
      ['lead.delete.after', false],
      ['lead.create.after', false],
    ])
  })

  it('keeps what a token was called only as long as there is one', async () => {
    const { id } = await make.lead()
    const [token] = await server.store.db.deleteFrom('tokens').returning('id').execute()
    const other = await server.as(1)
    const { body } = await other.get(`/leads/${id}/history`)
    expect(body.data[0].token).toEqual({ id: token?.id, name: null })
  })
})

describe('who sees a history', () => {
  it('sees the record: its owner, the group of the owner, every user with a global view', async () => {
    const [bob, ann, eve] = [
      await addUser(server, 'Bob', { view: 'individual', group: 'Sales' }),
      await addUser(server, 'Ann', { view: 'group', group: 'Sales' }),
      await addUser(server, 'Eve', { view: 'individual' }),
    ]
    const { id } = await make.lead({ user_id: bob.id })
    const statuses = async () =>
      [
        await bob.get(`/leads/${id}/history`),
        await ann.get(`/leads/${id}/history`),
        await eve.get(`/leads/${id}/history`),
        await server.admin.get(`/leads/${id}/history`),
      ].map(({ status }) => status)
    expect(await statuses()).toEqual([200, 200, 404, 200])
    // After the deletion, the last owner determines the visibility.
    await server.admin.delete(`/leads/${id}`)
    expect(await statuses()).toEqual([200, 200, 404, 200])
    await server.admin.post(`/leads/${id}/restore`)
    await server.admin.put(`/leads/${id}`, { user_id: eve.id })
    expect(await statuses()).toEqual([404, 404, 200, 200])
    await server.admin.delete(`/leads/${id}`)
    expect(await statuses()).toEqual([404, 404, 200, 200])
  })

  it('sees that of a deleted record without owner only with a global view, and that of shared records always', async () => {
    const bob = await addUser(server, 'Bob', { view: 'individual' })
    const [lead, product] = [await make.lead({ user_id: null }), await make.product()]
    await server.admin.delete(`/leads/${lead.id}`)
    await server.admin.delete(`/products/${product.id}`)
    expect((await bob.get(`/leads/${lead.id}/history`)).status).toBe(404)
    expect((await server.admin.get(`/leads/${lead.id}/history`)).status).toBe(200)
    expect((await bob.get(`/products/${product.id}/history`)).status).toBe(200)
  })

  it('finds none of a record that never was', async () => {
    for (const path of ['/leads/7', '/products/7', '/settings/users/7'])
      expect((await server.admin.get(`${path}/history`)).status).toBe(404)
  })

  it('learns no more of a related record than its reference shows, no matter which user made the change', async () => {
    const bob = await addUser(server, 'Bob', { view: 'individual' })
    const organization = await make.organization({ name: 'Secret Ltd', address: { city: 'Paris' } })
    const { id } = await make.person({ organization_id: organization.id, user_id: bob.id })
    const { body } = await bob.get(`/contacts/persons/${id}/history`)
    expect(body.data[0].changes).toContainEqual({
      key: 'organization_id',
      label: 'Organization',
      old: null,
      new: { id: organization.id, name: 'Secret Ltd' },
    })
    expect(JSON.stringify(body)).not.toContain('Paris')
  })
})

describe('listUserHistory', () => {
  it('tells that a password changed, and neither the old nor the new one', async () => {
    const bob = await make.user({ password: 'a password to guess', password_confirmation: 'a password to guess' })
    const sent = { password: 'another one to guess', password_confirmation: 'another one to guess' }
    await server.admin.put(`/settings/users/${bob.id}`, sent)
    const { body, text } = await server.admin.get(`/settings/users/${bob.id}/history`)
    expect(body.data[0].changes).toEqual([{ key: 'password', label: 'Password', old: null, new: null }])
    expect(text).not.toMatch(/to guess|argon2/)
  })
})

describe('listAttributeHistory', () => {
  it('tells of an attribute, also when it is deleted', async () => {
    const attribute = { code: 'sector', name: 'Sector', type: 'text', entity_type: 'leads' }
    const { id } = (await server.admin.post('/settings/attributes', attribute)).body.data
    const path = `/settings/attributes/${id}`
    await server.admin.put(path, { name: 'Branch' })
    await server.admin.delete(path)
    const [gone, renamed, made] = await historyOf(path)
    expect([gone?.name, made?.name]).toEqual(['settings.attribute.delete.after', 'settings.attribute.create.after'])
    expect(renamed?.changes).toEqual([{ key: 'name', label: 'Name', old: 'Sector', new: 'Branch' }])
  })
})

describe('the change log of a record, for timelines', () => {
  const leads = {
    entity: 'leads',
    events: { create: 'lead.create', update: 'lead.update', delete: 'lead.delete' },
  } as const

  it('is one line for the creation and one per changed field, pageable by the caller', async () => {
    const person = await make.person()
    const { id } = await make.lead({ title: 'Deal' })
    server.clock.advanceMs(1000)
    await server.admin.put(`/leads/${id}`, { title: 'Big deal', person_id: person.id, lead_value: 7 })
    const services = server.app.services
    const ctx = { services, db: services.store.db } as unknown as Context
    const query = changeLog(ctx, leads, id)
    const lines = await query.orderBy('created_at', 'desc').orderBy('id', 'desc').execute()
    expect(lines.map(({ key }) => key).sort()).toEqual(['lead_value', null, 'person_id', 'title'].sort())
    expect(new Set(lines.map((line) => line.id)).size).toBe(4)
    const second = await query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(2).offset(2).execute()
    expect(second).toEqual(lines.slice(2))
    const described = await describeLines(ctx, 'leads', lines)
    expect(lines.map((line) => described.get(line.id)?.change?.label ?? 'Created').sort()).toEqual([
      'Created',
      'Lead Value',
      'Person',
      'Title',
    ])
    const title = [...described.values()].find(({ key }) => key === 'title')
    expect(title).toMatchObject({
      actor: { id: 1, name: 'Example Admin' },
      change: { old: 'Deal', new: 'Big deal' },
      created_at: '2026-03-01T09:30:01.000Z',
    })
  })
})
