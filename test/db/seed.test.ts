// The rows of a new installation. Seeding again changes nothing.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { migrate } from '../../db/migrate.ts'
import { seed } from '../../db/seed.ts'
import { openStore, type Store } from '../../db/store.ts'
import type { DB } from '../../db/tables.gen.ts'

const counts: Partial<Record<keyof DB, number>> = {
  roles: 1,
  users: 1,
  groups: 0,
  lead_pipelines: 1,
  lead_pipeline_stages: 6,
  lead_sources: 5,
  lead_types: 2,
  attributes: 43,
  attribute_options: 0,
  tags: 0,
  products: 0,
  warehouses: 0,
  email_templates: 3,
  workflows: 3,
  leads: 0,
  events: 0,
}

const seeds = {
  adminName: 'Example Admin',
  adminEmail: 'Admin@Example.com',
  adminPasswordHash: 'hash',
  now: '2026-01-01T00:00:00.000Z',
}

let store: Store

beforeEach(async () => {
  store = openStore('sqlite::memory:')
  await migrate(store)
  await seed(store, seeds)
})

afterEach(() => store.close())

async function count(): Promise<typeof counts> {
  const found: typeof counts = {}
  for (const table of Object.keys(counts) as (keyof DB)[]) {
    const row = await store.db
      .selectFrom(table)
      .select(({ fn }) => fn.countAll<number>().as('total'))
      .executeTakeFirst()
    found[table] = row?.total ?? -1
  }
  return found
}

describe('seed', () => {
  it('writes exactly what the installation promises', async () => {
    expect(await count()).toEqual(counts)
  })

  it('changes nothing the second time, and does not bring back what was deleted', async () => {
    await store.db.deleteFrom('lead_sources').where('id', '=', 3).execute()
    const image = await store.image()
    await seed(store, { ...seeds, adminName: 'Another Admin', now: '2027-01-01T00:00:00.000Z' })
    expect((await store.image()).equals(image)).toBe(true)
  })

  it('gives the documented ids to the stages and sources', async () => {
    const stages = await store.db.selectFrom('lead_pipeline_stages').selectAll().orderBy('id').execute()
    expect(stages.map((s) => [s.id, s.code, s.name, s.probability, s.sort_order, s.is_user_defined])).toEqual([
      [1, 'new', 'New', 10, 1, 0],
      [2, 'follow-up', 'Follow Up', 25, 2, 1],
      [3, 'prospect', 'Prospect', 50, 3, 1],
      [4, 'negotiation', 'Negotiation', 75, 4, 1],
      [5, 'won', 'Won', 100, 5, 0],
      [6, 'lost', 'Lost', 0, 6, 0],
    ])
    const sources = await store.db.selectFrom('lead_sources').select(['id', 'name']).orderBy('id').execute()
    expect(sources.map((s) => `${s.id} ${s.name}`)).toEqual(['1 Email', '2 Web', '3 Web Form', '4 Phone', '5 Direct'])
  })

  it('numbers the system attributes of each entity from one', async () => {
    const attributes = await store.db.selectFrom('attributes').selectAll().orderBy('id').execute()
    const perEntity: Record<string, number[]> = {}
    for (const { entity_type, sort_order } of attributes) {
      perEntity[entity_type] = [...(perEntity[entity_type] ?? []), sort_order]
    }
    expect(perEntity).toEqual({
      leads: [1, 2, 3, 4, 5, 6, 7, 8, 9],
      persons: [1, 2, 3, 4, 5, 6, 7],
      organizations: [1, 2, 3],
      products: [1, 2, 3, 4, 5],
      quotes: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
      warehouses: [1, 2, 3, 4, 5, 6],
    })
    expect(attributes.filter((a) => a.is_unique === 1).map((a) => `${a.entity_type}.${a.code}`)).toEqual([
      'persons.emails',
      'organizations.name',
      'products.sku',
      'warehouses.contact_emails',
    ])
  })

  it('lets no second pipeline be the default', async () => {
    const second = { name: 'B', name_key: 'b', is_default: 1, created_at: seeds.now, updated_at: seeds.now }
    const failure = await store.db
      .insertInto('lead_pipelines')
      .values(second)
      .execute()
      .catch((e: unknown) => e)
    expect(store.dialect.isUniqueViolation(failure)).toBe(true)
  })
})
