// Migration 0028 with phone numbers and attributes of an existing installation.
import { type Kysely, sql } from 'kysely'
import { expect, it } from 'vitest'
import { migrate, migrations } from '../../db/migrate.ts'
import { openStore } from '../../db/store.ts'

const at = { created_at: 'now', updated_at: 'now' }

it('numbers of an older database are shared from then on, found by their digits, and an address is not required', async () => {
  const store = openStore('sqlite::memory:')
  const { db } = store
  const count = migrations.findIndex(({ name }) => name === '0028_numbers')
  await migrate(store, migrations.slice(0, count))
  const attribute = (id: number, code: string, entity_type: string, more: object) =>
    db
      .insertInto('attributes')
      .values({
        ...{ id, code, name: code, name_key: code, type: 'phone', entity_type, sort_order: id, is_unique: 1, ...at },
        ...more,
      })
      .execute()
  await attribute(11, 'emails', 'persons', { type: 'email', is_required: 1, is_user_defined: 0 })
  await attribute(12, 'contact_numbers', 'persons', { is_user_defined: 0 })
  await attribute(41, 'contact_numbers', 'warehouses', { is_user_defined: 0 })
  await attribute(42, 'contact_emails', 'warehouses', { type: 'email', is_required: 1, is_user_defined: 0 })
  await attribute(50, 'fax', 'organizations', {})
  for (const id of [1, 2])
    await db
      .insertInto('persons')
      .values({
        id,
        name: 'P',
        name_key: 'p',
        emails: '[]',
        contact_numbers: `[{"value":"+1 (202) ${id}","label":"work"}]`,
        ...at,
      })
      .execute()
  const kept = [
    [12, 'persons', '+12021', 1],
    [41, 'warehouses', '+4', 1],
    [11, 'persons', 'ada@example.com', 1],
    [50, 'organizations', '+49', 1],
    [50, 'organizations', '49', 2],
    [50, 'organizations', '+50', 3],
  ] as const
  for (const [attribute_id, entity_type, value, entity_id] of kept)
    await db.insertInto('unique_values').values({ attribute_id, entity_type, value, entity_id }).execute()
  await migrate(store)
  const rows = async (text: string) =>
    (await sql.raw<Record<string, unknown>>(text).execute(db as Kysely<unknown>)).rows
  expect(await rows('select number, person_id from person_numbers order by 1')).toEqual([
    { number: '12021', person_id: 1 },
    { number: '12022', person_id: 2 },
  ])
  expect((await rows('select value, entity_id from unique_values order by 1')).map(Object.values)).toEqual([
    ['49', 2],
    ['50', 3],
    ['ada@example.com', 1],
  ])
  expect(
    (await rows("select id, is_unique, is_required from attributes where code <> 'subscribed' order by id")).map(
      Object.values,
    ),
  ).toEqual([
    [11, 1, 0],
    [12, 0, 0],
    [41, 0, 0],
    [42, 1, 1],
    [50, 1, 0],
  ])
  await store.close()
})
