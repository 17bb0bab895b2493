// Migration 0052 with campaigns and attributes of an existing installation.
import { type Kysely, sql } from 'kysely'
import { expect, it } from 'vitest'
import { migrate, migrations } from '../../db/migrate.ts'
import { openStore } from '../../db/store.ts'

const at = { created_at: 'now', updated_at: 'now' }

/**
 * Migrates a database with these attributes of persons, and returns its attributes after the
 * migration.
 */
async function attributesAfter(attributes: readonly { id: number; code: string; is_user_defined: 0 | 1 }[]) {
  const store = openStore('sqlite::memory:')
  const count = migrations.findIndex(({ name }) => name === '0052_campaign_audiences')
  await migrate(store, migrations.slice(0, count))
  const { db } = store
  for (const each of attributes)
    await db
      .insertInto('attributes')
      .values({
        ...{ ...each, name: each.code, name_key: each.code, type: 'text', entity_type: 'persons', sort_order: each.id },
        ...at,
      })
      .execute()
  await sql`insert into marketing_campaigns (name, name_key, subject, is_active, created_at, updated_at)
    values ('Spring', 'spring', 'Hello', 1, 'now', 'now')`.execute(db as unknown as Kysely<unknown>)
  await migrate(store)
  const campaign = await db
    .selectFrom('marketing_campaigns')
    .select(['audience_type', 'audience_filter', 'audience_tag_id', 'audience_import_id'])
    .executeTakeFirstOrThrow()
  const rows = await db
    .selectFrom('attributes')
    .select(['id', 'type', 'sort_order', 'is_user_defined', 'quick_add'])
    .where('code', '=', 'subscribed')
    .execute()
  await store.close()
  return { campaign: Object.values(campaign), rows }
}

it('a campaign from before goes to all persons, and a web form may ask for consent', async () => {
  const { campaign, rows } = await attributesAfter([
    { id: 11, code: 'emails', is_user_defined: 0 },
    { id: 50, code: 'size', is_user_defined: 1 },
  ])
  expect(campaign).toEqual(['all', null, null, null])
  expect(rows).toEqual([{ id: 51, type: 'boolean', sort_order: 51, is_user_defined: 0, quick_add: 1 }])
})

it('an installation with an attribute of the code subscribed keeps its own', async () => {
  const { rows } = await attributesAfter([
    { id: 11, code: 'emails', is_user_defined: 0 },
    { id: 50, code: 'subscribed', is_user_defined: 1 },
  ])
  expect(rows).toEqual([{ id: 50, type: 'text', sort_order: 50, is_user_defined: 1, quick_add: 1 }])
})

it('a new database gets the attribute from its seeds only', async () => {
  expect((await attributesAfter([])).rows).toEqual([])
})
