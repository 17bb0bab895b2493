// The timelines of records: activities, e-mails and changes in one sorted list with exact pages.
// Each caller sees only permitted entries.

import { describe, expect, it } from 'vitest'
import type { EmailFoldersTable } from '../../db/tables.gen.ts'
import type { Schema } from '../../src/contract/types.ts'
import type { Caller } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { statementsOf } from '../support/statements.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

type Entry = Schema<'TimelineEntry'>

const server = useServer()
const { admin } = server
const make = given(admin)

const note = { type: 'note', comment: 'Prefers mornings.' } as const
const minute = () => server.clock.advanceMs(60_000)

const timeline = async (path: string, query = '', caller = admin): Promise<Entry[]> => {
  const { status, body, text } = await caller.get(`${path}/activities?per_page=100&${query}`)
  expect(status, text).toBe(200)
  expect(body.meta.total).toBe(body.data.length)
  return body.data
}
/** Returns the source and the title of each entry. */
const named = (entries: readonly Entry[]): string[] =>
  entries.map(({ source, title, comment }) => `${source} ${title ?? comment}`)

interface Mail {
  subject: string
  folder?: EmailFoldersTable['folder']
  thread_id?: number
  lead_id?: number
  person_id?: number
  user_id?: number | null
}

/** Inserts a mail directly into the database. */
async function mail({ folder = 'inbox', subject, thread_id, ...about }: Mail): Promise<number> {
  const { db } = server.store
  const at = server.clock.now().toISOString()
  const { id } = await db
    .insertInto('emails')
    .values({
      subject,
      html: `<p>${subject}</p>`,
      to: '["sales@example.com"]',
      from: '["grace@example.com"]',
      source: 'email',
      sender_type: 'person',
      status: 'received',
      message_id: `${subject}@example.com`,
      message_id_key: `${subject}@example.com`.toLowerCase(),
      thread_id: thread_id ?? null,
      created_at: at,
      updated_at: at,
      ...about,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  if (thread_id === undefined) await db.updateTable('emails').set({ thread_id: id }).where('id', '=', id).execute()
  await db.insertInto('email_folders').values({ email_id: id, folder }).execute()
  return id
}

describe('listLeadActivities', () => {
  it('shows activities, mails and changes as one list, the newest first', async () => {
    const lead = await make.lead({ title: '40 seats' })
    minute()
    const email = await mail({ subject: 'Question', lead_id: lead.id })
    minute()
    const activity = await make.activity({ ...note, lead_ids: [lead.id], participants: { users: [1] } })
    minute()
    await admin.put(`/leads/${lead.id}`, { title: '50 seats' })
    const entries = await timeline(`/leads/${lead.id}`)
    expect(named(entries)).toEqual([
      'event Updated Title',
      'activity Prefers mornings.',
      'email Question',
      'event Created',
    ])
    const [changed, about, mailed, created] = entries
    const admin1 = { id: 1, name: 'Example Admin', email: 'admin@example.com', image_url: null }
    expect(changed).toMatchObject({
      type: 'system',
      is_done: true,
      user_id: 1,
      user: admin1,
      additional: {
        attribute: 'title',
        new: { value: '50 seats', label: '50 seats' },
        old: { value: '40 seats', label: '40 seats' },
      },
      files: [],
      lead_ids: [],
      created_at: '2026-03-01T09:33:00.000Z',
    })
    expect(about).toEqual({ source: 'activity', ...(await admin.get(`/activities/${activity.id}`)).body.data })
    expect(mailed).toMatchObject({
      id: email,
      type: 'email',
      title: 'Question',
      comment: '<p>Question</p>',
      is_done: true,
      user: null,
      lead_ids: [lead.id],
      leads: [{ id: lead.id, title: '50 seats' }],
      files: [],
      additional: { folders: ['inbox'], from: ['grace@example.com'], to: ['sales@example.com'], cc: [], bcc: [] },
    })
    expect(created).toMatchObject({ type: 'system', additional: null, user: admin1 })
    expect(new Set(entries.filter(({ source }) => source === 'event').map(({ id }) => id)).size).toBe(2)
  })

  it('tells of each changed field once, by its id and as people call it', async () => {
    const lead = await make.lead()
    const person = await make.person({ name: 'Grace' })
    minute()
    const before = (await admin.get(`/leads/${lead.id}`)).body.data
    await admin.put(`/leads/${lead.id}`, { person_id: person.id, lead_value: 12.5, description: null })
    const changes = (await timeline(`/leads/${lead.id}`, 'source=event')).flatMap(({ title, additional }) =>
      additional ? [{ title, additional }] : [],
    )
    const titles = changes.map(({ title }) => title)
    expect(new Set(titles).size).toBe(titles.length)
    const of = (key: string) =>
      changes.find(({ additional }) => 'attribute' in additional && additional.attribute === key)
    expect(of('person_id')?.additional).toMatchObject({ new: { value: person.id, label: 'Grace' } })
    expect(of('lead_value')?.additional).toEqual({
      attribute: 'lead_value',
      new: { value: 12.5, label: '12.5' },
      old: { value: before.lead_value, label: String(before.lead_value) },
    })
    expect(of('person')).toBeUndefined()
  })

  it('says that a deleted lead was restored', async () => {
    const lead = await make.lead()
    minute()
    await make.activity({ ...note, lead_ids: [lead.id] })
    await admin.delete(`/leads/${lead.id}`)
    minute()
    expect((await admin.post(`/leads/${lead.id}/restore`)).status).toBe(200)
    expect(named(await timeline(`/leads/${lead.id}`))).toEqual([
      'event Restored',
      'activity Prefers mornings.',
      'event Created',
    ])
  })

  it('filters by source, by type and by being done', async () => {
    const lead = await make.lead()
    const nine = { schedule_from: '2026-03-02T09:00:00Z', schedule_to: '2026-03-02T09:30:00Z' }
    await make.activity({ ...note, lead_ids: [lead.id] })
    await make.activity({ type: 'call', title: 'Call', comment: null, ...nine, lead_ids: [lead.id] })
    await mail({ subject: 'Question', lead_id: lead.id })
    const shown = async (query: string) => named(await timeline(`/leads/${lead.id}`, query)).sort()
    expect(await shown('source=activity')).toEqual(['activity Call', 'activity Prefers mornings.'])
    expect(await shown('source=email,event')).toEqual(['email Question', 'event Created'])
    expect(await shown('type=call,email')).toEqual(['activity Call', 'email Question'])
    expect(await shown('type=system')).toEqual(['event Created'])
    expect(await shown('is_done=false')).toEqual(['activity Call'])
    expect(await shown('is_done=true&source=activity')).toEqual(['activity Prefers mornings.'])
    expect(await shown('type=meeting')).toEqual([])
    expect((await admin.get(`/leads/${lead.id}/activities?source=mail`)).status).toBe(422)
  })

  it('takes the same order by page and by cursor, also of what happened at the same time', async () => {
    const lead = await make.lead()
    for (let index = 0; index < 4; index++) {
      await make.activity({ type: 'note', comment: `Note ${index}`, lead_ids: [lead.id] })
      await mail({ subject: `Mail ${index}`, lead_id: lead.id })
    }
    minute()
    await make.activity({ type: 'note', comment: 'Last', lead_ids: [lead.id] })
    const path = `/leads/${lead.id}/activities`
    const whole = named(await timeline(`/leads/${lead.id}`))
    expect([whole.length, whole[0]]).toEqual([10, 'activity Last'])
    const byPage: Entry[] = []
    for (const number of [1, 2, 3, 4]) {
      const { body } = await admin.get(`${path}?per_page=3&page=${number}`)
      expect(body.meta).toMatchObject({ total: 10, last_page: 4 })
      byPage.push(...body.data)
    }
    expect(named(byPage)).toEqual(whole)
    const byCursor: Entry[] = []
    let next: string | null = `${path}?per_page=3&cursor=`
    let last = ''
    while (next !== null) {
      const { body }: { body: Schema<'TimelinePage'> } = await admin.get(next)
      byCursor.push(...body.data)
      last = next
      next = body.links.next && `/leads${body.links.next.split('/leads')[1]}`
    }
    expect(named(byCursor)).toEqual(whole)
    const { body } = await admin.get(last)
    const previous = await admin.get(`/leads${body.links.prev.split('/leads')[1]}`)
    expect(named(previous.body.data)).toEqual(whole.slice(6, 9))
    expect((await admin.get(`${path}?cursor=&page=1`)).status).toBe(422)
  })

  it('shows the whole thread of a linked mail, and no other', async () => {
    const [lead, other] = [await make.lead(), await make.lead()]
    const root = await mail({ subject: 'Root' })
    await mail({ subject: 'Reply', thread_id: root, lead_id: lead.id, folder: 'sent' })
    await mail({ subject: 'Other', lead_id: other.id })
    await mail({ subject: 'Nadia' })
    expect(named(await timeline(`/leads/${lead.id}`, 'source=email')).sort()).toEqual(['email Reply', 'email Root'])
  })

  it('shows the attachments of a mail, each where it can be had', async () => {
    const lead = await make.lead()
    const { body: sent, headers } = await form({ file: file('plan.txt') })
    const { id } = (await admin.post('/files', sent, { headers })).body.data
    const draft = { is_draft: true, subject: 'Plan', lead_id: lead.id, attachment_ids: [id] }
    expect((await admin.post('/emails', draft)).status).toBe(201)
    const [entry] = await timeline(`/leads/${lead.id}`, 'source=email')
    expect(entry).toMatchObject({
      title: 'Plan',
      user_id: 1,
      files: [{ name: 'plan.txt', content_type: 'text/plain' }],
    })
    expect((await admin.get(`/${entry?.files[0]?.path}`)).text).toBe('Quarterly figures')
  })

  it('leaves out what role and token may not read', async () => {
    const lead = await make.lead()
    await make.activity({ ...note, lead_ids: [lead.id] })
    await mail({ subject: 'In', lead_id: lead.id })
    await mail({ subject: 'Out', lead_id: lead.id, folder: 'sent' })
    const sources = async (caller: Caller) => named(await timeline(`/leads/${lead.id}`, '', caller)).sort()
    const [a, b, c] = ['activity Prefers mornings.', 'email In', 'email Out']
    const created = 'event Created'
    const who = (name: string, ...keys: string[]) => addUser(server, name, { permissions: ['leads.view', ...keys] })
    expect(await sources(await who('Ada'))).toEqual([created])
    expect(await sources(await who('Bob', 'activities'))).toEqual([a, created])
    expect(await sources(await who('Cleo', 'mail.inbox', 'mail.sent'))).toEqual([created])
    expect(await sources(await who('Dan', 'mail.view', 'mail.inbox'))).toEqual([b, created])
    expect(await sources(await who('Eve', 'mail.view', 'mail.sent'))).toEqual([c, created])
    expect(await sources(await server.as(1, ['leads:read', 'activities:read']))).toEqual([a, created])
    expect(await sources(await server.as(1, ['leads:read', 'emails:read']))).toEqual([b, c, created])
    expect((await (await who('Fay')).get(`/activities`)).status).toBe(403)
    expect(
      (await (await addUser(server, 'Gus', { permissions: ['activities'] })).get(`/leads/${lead.id}/activities`))
        .status,
    ).toBe(403)
  })

  it('is not there for those who do not see the lead', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const lead = await make.lead()
    expect((await ada.get(`/leads/${lead.id}/activities`)).status).toBe(404)
    expect((await admin.get('/leads/999/activities')).status).toBe(404)
  })

  it('names who made a change also when that user is gone', async () => {
    const ada = await addUser(server, 'Ada')
    const { body } = await ada.post('/leads', { title: 'Hers', user_id: 1, lead_value: 1 })
    await admin.delete(`/settings/users/${ada.id}`)
    expect(await timeline(`/leads/${body.data.id}`)).toMatchObject([{ user_id: ada.id, user: null }])
  })

  it('asks as often for many entries as for a few', async () => {
    const lead = await make.lead()
    const path = `/leads/${lead.id}/activities?per_page=100`
    const more = async (count: number) => {
      for (let index = 0; index < count; index++) {
        await make.activity({ ...note, lead_ids: [lead.id], participants: { users: [1] } })
        await mail({ subject: `Mail ${index} of ${count}`, lead_id: lead.id })
        await admin.put(`/leads/${lead.id}`, { title: `Title ${index} of ${count}` })
      }
    }
    await more(1)
    await admin.get(path)
    const few = await statementsOf(() => admin.get(path))
    await more(15)
    // Fills the caches again after the changes.
    await admin.get(path)
    const many = await statementsOf(() => admin.get(path))
    expect((await admin.get(path)).body.data).toHaveLength(49)
    expect(many.length).toBe(few.length)
  })
})

describe('the other timelines', () => {
  it.each([
    ['persons', '/contacts/persons', () => make.person(), 'person_ids'],
    ['organizations', '/contacts/organizations', () => make.organization(), 'organization_ids'],
    ['products', '/products', () => make.product(), 'product_ids'],
    ['quotes', '/quotes', () => make.quote(), 'quote_ids'],
  ] as const)('of %s show linked activities and changes', async (_kind, path, maker, key) => {
    const { id } = await maker()
    minute()
    await make.activity({ ...note, [key]: [id] })
    await make.activity({ type: 'note', comment: 'About nothing' })
    expect(named(await timeline(`${path}/${id}`))).toEqual(['activity Prefers mornings.', 'event Created'])
  })

  it('of warehouses too', async () => {
    const { body } = await admin.post('/settings/warehouses', {
      name: 'London',
      contact_name: 'Ada',
      contact_emails: [{ value: 'ada@example.com' }],
      contact_address: { address: '1 Quay', country: 'GB', city: 'London', postcode: 'E1' },
    })
    await make.activity({ ...note, warehouse_id: body.data.id })
    const entries = await timeline(`/settings/warehouses/${body.data.id}`, 'source=activity')
    expect(entries).toMatchObject([{ warehouses: [{ id: body.data.id, name: 'London' }] }])
  })

  it('of persons show mails, those of products and organizations none', async () => {
    const [person, product] = [await make.person(), await make.product()]
    await mail({ subject: 'Question', person_id: person.id })
    expect(named(await timeline(`/contacts/persons/${person.id}`, 'source=email'))).toEqual(['email Question'])
    expect(await timeline(`/products/${product.id}`, 'source=email')).toEqual([])
  })

  it('show only the activities the caller sees, even of a record that all users see', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const product = await make.product()
    await make.activity({ ...note, product_ids: [product.id] })
    await make.activity({ type: 'note', comment: 'Hers', product_ids: [product.id], user_id: ada.id })
    expect(named(await timeline(`/products/${product.id}`, 'source=activity', ada))).toEqual(['activity Hers'])
    expect(await timeline(`/products/${product.id}`, 'source=activity')).toHaveLength(2)
  })

  it('read a chosen option by its name', async () => {
    const attribute = await admin.post('/settings/attributes', {
      code: 'industry',
      name: 'Industry',
      type: 'select',
      entity_type: 'organizations',
      options: [{ name: 'Ships' }, { name: 'Rails' }],
    })
    expect(attribute.status, attribute.text).toBe(201)
    const [ships, rails] = attribute.body.data.options
    const { id } = await make.organization({ custom_attributes: { industry: ships.id } as never })
    minute()
    await admin.put(`/contacts/organizations/${id}`, { custom_attributes: { industry: rails.id } })
    const [changed] = await timeline(`/contacts/organizations/${id}`)
    expect(changed).toMatchObject({
      title: 'Updated Industry',
      additional: {
        attribute: 'custom_attributes.industry',
        new: { value: rails.id, label: 'Rails' },
        old: { value: ships.id, label: 'Ships' },
      },
    })
  })

  it('read an address and a list of contact points as people do', async () => {
    const organization = await make.organization({ address: null })
    const person = await make.person({ emails: [{ value: 'a@example.com' }] })
    minute()
    await admin.put(`/contacts/organizations/${organization.id}`, { address: { city: 'London', country: 'GB' } })
    await admin.put(`/contacts/persons/${person.id}`, {
      emails: [{ value: 'a@example.com' }, { value: 'b@example.com' }],
    })
    const [address] = await timeline(`/contacts/organizations/${organization.id}`)
    expect(address).toMatchObject({
      title: 'Updated Address',
      additional: { old: { value: null, label: null }, new: { value: { city: 'London' } } },
    })
    expect(address?.additional).toMatchObject({ new: { label: expect.stringMatching(/London/) } })
    const [emails] = await timeline(`/contacts/persons/${person.id}`)
    expect(emails).toMatchObject({
      title: 'Updated Emails',
      additional: { new: { label: 'a@example.com, b@example.com' } },
    })
  })
})
