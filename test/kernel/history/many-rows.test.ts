// The deletion and the restore of records to which very many rows refer.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { isPostgres } from '../../support/engine.ts'
import { countTurns } from '../../support/turns.ts'
import { useSharedServer } from '../../support/using.ts'

const many = 30_000

const server = useSharedServer()

/** Copies the row with the id `like`. `changes` are SQL expressions with the number `n`. */
async function copyRow(table: string, like: number, changes: Record<string, string> = {}): Promise<void> {
  const { db } = server.store
  const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(table)} where id = ${like}`.execute(db)
  const columns = Object.keys(rows[0] ?? {}).filter((column) => column !== 'id')
  const values = columns.map((column) => sql.raw(changes[column] ?? `r."${column}"`))
  await sql`insert into ${sql.table(table)} (${sql.join(columns.map((column) => sql.ref(column)))})
    with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${many})
    select ${sql.join(values)} from numbers, ${sql.table(table)} as r where r.id = ${like}`.execute(db)
}

/** Runs a request. Returns the number of turns of the event loop meanwhile. */
async function turnsDuring(request: () => Promise<{ status: number; text: string }>): Promise<number> {
  const turns = countTurns()
  const reply = await request()
  turns.stop()
  expect(reply.status, reply.text).toBe(200)
  return turns.count
}

const count = async (table: string, condition: string): Promise<number> => {
  const found = sql<{ many: number }>`select count(*) as many from ${sql.table(table)} where ${sql.raw(condition)}`
  return Number((await found.execute(server.store.db)).rows[0]?.many)
}

// On PostgreSQL, a statement does not block the event loop.
const fewest = isPostgres ? 0 : 12

describe('a record to which 30,000 rows refer', () => {
  it('is deleted and restored with turns for other requests: e-mails of a person', async () => {
    const { admin } = server
    const person = (
      await admin.post('/contacts/persons', { name: 'Ann', emails: [{ value: 'ann@example.com', label: 'work' }] })
    ).body.data.id
    const draft = { subject: 'Offer', html: 'Hello', to: ['ann@example.com'], person_id: person, is_draft: true }
    const sent = await admin.post('/emails', draft)
    expect(sent.status, sent.text).toBe(201)
    const email = sent.body.data
    expect(email.person_id).toBe(person)
    await copyRow('emails', email.id, { message_id: "'m' || n", message_id_key: "'m' || n" })
    const { version } = email
    expect(await turnsDuring(() => admin.delete(`/contacts/persons/${person}`))).toBeGreaterThan(fewest)
    expect(await count('emails', `person_id is null and version = ${version + 1}`)).toBe(many + 1)
    expect(await turnsDuring(() => admin.post(`/contacts/persons/${person}/restore`))).toBeGreaterThan(fewest)
    expect(await count('emails', `person_id = ${person} and version = ${version + 2}`)).toBe(many + 1)
  })

  it('is deleted and restored with turns for other requests: lines of a product', async () => {
    const { admin } = server
    const product = (await admin.post('/products', { name: 'Chair', sku: 'C-1', price: 10, quantity: 1 })).body.data.id
    const person = (await admin.post('/contacts/persons', { name: 'Bob' })).body.data.id
    const line = { product_id: product, quantity: 2, price: 10 }
    const made = await admin.post('/leads', { title: 'One', lead_value: 20, person: { id: person }, products: [line] })
    expect(made.status, made.text).toBe(201)
    const { id, version } = made.body.data
    await copyRow('leads', id)
    const first = await server.store.db.selectFrom('lead_products').select('id').executeTakeFirstOrThrow()
    const last = await server.store.db
      .selectFrom('leads')
      .select((eb) => eb.fn.max('id').as('id'))
      .executeTakeFirstOrThrow()
    await copyRow('lead_products', first.id, { lead_id: `${Number(last.id) - many} + n` })
    expect(await turnsDuring(() => admin.delete(`/products/${product}`))).toBeGreaterThan(fewest)
    expect(await count('lead_products', 'product_id is null')).toBe(many + 1)
    expect(await count('leads', `version = ${version + 1}`)).toBe(many + 1)
    expect(await turnsDuring(() => admin.post(`/products/${product}/restore`))).toBeGreaterThan(fewest)
    expect(await count('lead_products', `product_id = ${product}`)).toBe(many + 1)
    expect(await count('leads', `version = ${version + 2}`)).toBe(many + 1)
  })

  it('has turns for other requests: an attribute becomes unique, loses an option and its values', async () => {
    const { admin } = server
    const add = async (body: object) => (await admin.post('/settings/attributes', body)).body.data
    const about = { entity_type: 'persons', type: 'text' }
    const code = await add({ ...about, code: 'badge', name: 'Badge' })
    const list = await add({
      ...about,
      type: 'multiselect',
      code: 'sizes',
      name: 'Sizes',
      options: [{ name: 'L' }, { name: 'M' }],
    })
    const custom_attributes = { badge: 'first', sizes: list.options.map((option: { id: number }) => option.id) }
    const made = await admin.post('/contacts/persons', { name: 'Cem', custom_attributes })
    expect(made.status, made.text).toBe(201)
    const next = isPostgres
      ? "replace(r.custom_attributes::text, 'first', 'b' || n)"
      : "replace(r.custom_attributes, 'first', 'b' || n)"
    await copyRow('persons', made.body.data.id, { custom_attributes: isPostgres ? `(${next})::jsonb` : next })
    const change = (id: number, body: object) => () => admin.put(`/settings/attributes/${id}?force=true`, body)
    expect(await turnsDuring(change(code.id, { is_unique: true }))).toBeGreaterThan(fewest)
    expect(await count('unique_values', `attribute_id = ${code.id}`)).toBe(many + 1)
    const [kept] = list.options
    expect(await turnsDuring(change(list.id, { options: [{ id: kept.id }] }))).toBeGreaterThan(fewest)
    const { body } = await admin.get(`/contacts/persons/${made.body.data.id}`)
    expect(body.data.custom_attributes.sizes).toEqual([kept.id])
    expect(await turnsDuring(() => admin.delete(`/settings/attributes/${code.id}`))).toBeGreaterThan(fewest)
    expect(await count('unique_values', `attribute_id = ${code.id}`)).toBe(0)
  })
})
