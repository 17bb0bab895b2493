// Creates records of all types that have questions, through the API. Moments that no client can set
// are written to the tables.
import { expect } from 'vitest'
import type { Caller, TestServer } from '../app.ts'
import { file, form } from '../form.ts'
import { addUser } from '../viewers.ts'
import {
  amounts,
  counts,
  days,
  type Json,
  moments,
  paths,
  type Random,
  randomFrom,
  type Type,
  titles,
  types,
} from './random.ts'

/** All records of each type, as an administrator sees them. */
export interface World {
  records: Record<Type, Json[]>
  /** The types of custom attributes and the ids of their options, by entity. */
  options: Record<string, Record<string, number[]>>
}

/** The types whose records have custom attributes of each kind. */
export const attributed: readonly Type[] = ['leads', 'persons', 'quotes', 'products']
const attributeTypes = ['text', 'price', 'number', 'boolean', 'select', 'multiselect', 'date', 'datetime']

export async function make(server: TestServer, path: string, body: Json): Promise<Json> {
  const reply = await server.admin.post(path, body)
  expect(reply.status, `${path} ${reply.text}`).toBe(201)
  return reply.body.data
}

/** Returns all records of a list; none when the caller may not list them. */
export async function all(path: string, caller: Caller): Promise<Json[]> {
  const found: Json[] = []
  for (let page = 1; ; page++) {
    const include = path === paths.products ? '&include=inventories' : ''
    const { body, text, status } = await caller.get(`${path}?per_page=100&page=${page}&sort=id${include}`)
    if (status === 403) return []
    expect(status, text).toBe(200)
    found.push(...body.data)
    if (!body.links.next) return found
  }
}

export async function addWorld(server: TestServer): Promise<World> {
  const random = randomFrom(36)
  const options = await addAttributes(server)
  const custom = (entity: string): Json => valuesOf(random, options[entity] ?? {})
  for (const name of ['North', 'South']) await make(server, '/tags', { name })
  const users = [1, (await addUser(server, 'Ann', { view: 'individual' })).id, (await addUser(server, 'Bob')).id]
  await addContacts(server, random, users, custom)
  await addProducts(server, random, custom)
  await addLeads(server, random, users, custom)
  await addQuotes(server, random, users, custom)
  await addActivities(server, random, users)
  await addEmails(server, random)
  await writeMoments(server, random, users)
  const records = {} as World['records']
  for (const type of types) records[type] = await all(paths[type], server.admin)
  return { records, options }
}

async function addAttributes(server: TestServer): Promise<World['options']> {
  const options: World['options'] = {}
  for (const entity_type of attributed) {
    const own: Record<string, number[]> = {}
    for (const type of attributeTypes) {
      const hasOptions = type.endsWith('select')
      const added = await make(server, '/settings/attributes', {
        entity_type,
        code: `c_${type}`,
        name: type,
        type,
        ...(hasOptions && { options: [{ name: 'One' }, { name: 'Two' }, { name: 'Three' }] }),
      })
      if (hasOptions) own[type] = added.options.map((each: Json) => each.id)
    }
    options[entity_type] = own
  }
  return options
}

function valuesOf(random: Random, { select = [], multiselect = [] }: Record<string, number[]>): Json {
  const values: Json = {
    c_text: random.maybe(random.of(titles)),
    c_price: random.maybe(random.of(amounts)),
    c_number: random.maybe(random.of(counts)),
    c_boolean: random.maybe(random.chance(0.5)),
    c_select: random.maybe(random.of(select)),
    c_multiselect: random.maybe(random.some(multiselect, 0.5)),
    c_date: random.maybe(random.of(days)),
    c_datetime: random.maybe(random.of(moments)),
  }
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
}

const idsTo = (most: number): number[] => Array.from({ length: most }, (_, n) => n + 1)
const tagged = (random: Random): number[] => random.some([1, 2], 0.3)
const known = (random: Random, n: number): Json => (random.chance(0.3) ? { external_ids: { erp: `X-${n}` } } : {})

async function addContacts(
  server: TestServer,
  random: Random,
  users: readonly number[],
  custom: (entity: string) => Json,
): Promise<void> {
  for (let n = 0; n < 12; n++)
    await make(server, paths.organizations, {
      name: `${random.of(titles)} ${n}`,
      user_id: random.of([null, ...users]),
      tag_ids: tagged(random),
      ...known(random, n),
      ...(random.chance(0.6) && { address: { country: random.of(['GB', 'DE']) } }),
    })
  for (let n = 0; n < 30; n++)
    await make(server, paths.persons, {
      name: `${random.of(titles)} ${n % 20}`,
      emails: [{ value: `p${n}@example.com`, label: 'work' }],
      contact_numbers: random.some([{ value: `+49 30 12345${n % 5}`, label: 'work' }], 0.5),
      job_title: random.maybe(random.of(titles)) ?? null,
      language: random.of([null, 'de', 'en-GB']),
      organization_id: random.maybe(1 + random.below(12)) ?? null,
      user_id: random.of([null, ...users]),
      subscribed: random.of([true, false, null]),
      tag_ids: tagged(random),
      ...known(random, n),
      custom_attributes: custom('persons'),
    })
}

async function addProducts(server: TestServer, random: Random, custom: (entity: string) => Json): Promise<void> {
  const contact = {
    contact_name: 'Kim',
    contact_address: { address: '1 Way', country: 'GB', city: 'London', postcode: 'W1' },
  }
  for (const id of [1, 2]) {
    const contact_emails = [{ value: `w${id}@example.com`, label: 'work' }]
    await make(server, '/settings/warehouses', { name: `W${id}`, ...contact, contact_emails })
    await make(server, '/settings/locations', { name: 'A-1', warehouse_id: id })
  }
  for (let n = 0; n < 40; n++) {
    const { id } = await make(server, paths.products, {
      sku: `S-${random.of(['ä', 'b', 'C'])}-${n}`,
      name: random.of(titles),
      price: random.of(amounts),
      quantity: random.of(amounts),
      tag_ids: tagged(random),
      ...known(random, n),
      custom_attributes: custom('products'),
    })
    const inventories = random.some([1, 2], 0.5).map((at) => ({
      warehouse_location_id: at,
      ...random.of([
        { in_stock: 0 },
        { in_stock: 1, allocated: 1 },
        { in_stock: 7, allocated: 6 },
        { in_stock: 40, allocated: 33 },
      ]),
    }))
    const reply = await server.admin.put(`/products/${id}/inventories`, { inventories })
    expect(reply.status, reply.text).toBe(200)
  }
}

async function addLeads(
  server: TestServer,
  random: Random,
  users: readonly number[],
  custom: (entity: string) => Json,
): Promise<void> {
  for (let n = 0; n < 90; n++)
    await make(server, paths.leads, {
      title: random.of(titles),
      lead_value: random.of(amounts),
      expected_close_date: random.maybe(random.of(days)) ?? null,
      person_id: 1 + random.below(30),
      user_id: random.of([null, ...users]),
      lead_pipeline_stage_id: 1 + random.below(6),
      lead_source_id: 1 + random.below(2),
      products: random.some([1, 2], 0.2).map((product_id) => ({ product_id, quantity: 1 })),
      tag_ids: tagged(random),
      ...known(random, n),
      custom_attributes: custom('leads'),
    })
}

async function addQuotes(
  server: TestServer,
  random: Random,
  users: readonly number[],
  custom: (entity: string) => Json,
): Promise<void> {
  for (let n = 0; n < 70; n++) {
    const isSent = random.chance(0.4)
    const { id } = await make(server, paths.quotes, {
      subject: random.of(titles),
      person_id: 1 + random.below(30),
      user_id: random.of(users),
      billing_address: { address: '1 Way', country: 'GB', city: 'London', postcode: 'W1' },
      expiry_date: '2027-01-01',
      status: isSent ? 'sent' : 'draft',
      discount_percent: random.of([0, 10]),
      items: [
        { product_id: 1 + random.below(4), quantity: 1, price: random.of(amounts), tax_percent: random.of([0, 20]) },
      ],
      ...(random.chance(0.5) && { lead_id: 1 + random.below(20) }),
      tag_ids: tagged(random),
      ...known(random, n),
      custom_attributes: custom('quotes'),
    })
    if (random.chance(0.3)) await server.admin.post(`/quotes/${id}/leads`, { lead_id: 21 + random.below(5) })
    if (isSent && random.chance(0.4)) expect((await server.admin.post(`/quotes/${id}/revise`)).status).toBe(201)
  }
}

async function addActivities(server: TestServer, random: Random, users: readonly number[]): Promise<void> {
  for (let n = 0; n < 80; n++) {
    const type = random.of(['call', 'meeting', 'lunch', 'task', 'note'])
    await make(server, paths.activities, {
      type,
      ...(type === 'note' ? { comment: 'Noted' } : { title: random.of(titles) }),
      ...(type === 'task' && { due_at: random.of([null, ...moments]) }),
      ...(!['note', 'task'].includes(type) && { schedule_from: moments[0], schedule_to: moments[2] }),
      ...(type !== 'note' && { is_done: random.chance(0.4) }),
      allow_overlap: true,
      user_id: random.of(users),
      participants: {
        users: random.some(users, 0.2),
        persons: random.some([1, 2, 3], 0.2),
      },
      lead_ids: random.some(idsTo(12), 0.1),
      person_ids: random.some(idsTo(12), 0.1),
      organization_ids: random.some(idsTo(6), 0.15),
      product_ids: random.some([1, 2], 0.2),
      warehouse_ids: random.some([1, 2], 0.2),
      quote_ids: random.some([1, 2, 3], 0.2),
      ...known(random, n),
    })
  }
}

async function addEmails(server: TestServer, random: Random): Promise<void> {
  for (let n = 0; n < 60; n++) {
    const { body, headers } = await form({ file: file('one.txt') })
    const upload = random.chance(0.2) ? (await server.admin.post('/files', body, { headers })).body.data.id : undefined
    await make(server, paths.emails, {
      subject: random.of(titles),
      html: '<p>Hello</p>',
      to: ['ada@example.com'],
      is_draft: true,
      is_read: random.chance(0.5),
      folders: random.some(['inbox', 'starred', 'important'], 0.3),
      person_id: random.of([null, 1 + random.below(30)]),
      lead_id: random.of([null, 1 + random.below(30)]),
      parent_id: n > 5 && random.chance(0.4) ? 1 + random.below(n) : null,
      tag_ids: tagged(random),
      ...known(random, n),
      ...(upload !== undefined && { attachment_ids: [upload] }),
    })
  }
}

/** Writes values that clients cannot set, such as moments on both sides of a change of clocks. */
async function writeMoments(server: TestServer, random: Random, users: readonly number[]): Promise<void> {
  const { db } = server.store
  const moment = (): string | null => (random.chance(0.3) ? null : random.of(moments))
  const set = async (type: Type, columnsOf: () => Json): Promise<void> => {
    for (const { id } of await db.selectFrom(type).select('id').orderBy('id').execute()) {
      const stamps = { created_at: random.of(moments), updated_at: random.of(moments) }
      await db
        .updateTable(type)
        .set({ ...stamps, ...columnsOf() } as never)
        .where('id', '=', id)
        .execute()
    }
  }
  await set('leads', () => ({ closed_at: moment(), stage_changed_at: random.of(moments) }))
  await set('quotes', () => ({ sent_at: moment(), expiry_date: random.of([...days, '2026-02-28']) }))
  await set('products', () => ({ discontinued: Number(random.chance(0.3)) }))
  for (const type of ['persons', 'organizations'] as const) await set(type, () => ({}))
  await set('activities', () => ({}))
  await db
    .updateTable('activities')
    .set({ due_at: '2026-02-01T00:00:00.000Z' })
    .where('type', '=', 'task')
    .where('id', '<', 30)
    .execute()
  await db
    .updateTable('activities')
    .set(({ ref }) => ({ schedule_from: ref('created_at'), schedule_to: ref('updated_at') }))
    .where('schedule_from', 'is not', null)
    .execute()
  await set('emails', () => {
    const isReceived = random.chance(0.4)
    const status = isReceived ? 'received' : random.of(['draft', 'queued', 'sent', 'failed'])
    return {
      status,
      source: isReceived ? 'email' : 'web',
      sender_type: isReceived ? 'person' : 'user',
      user_id: random.of([null, ...users]),
      sent_at: status === 'sent' || isReceived ? moment() : null,
      bounced_at: status === 'sent' && random.chance(0.4) ? moments[0] : null,
    }
  })
}
