// Maintenance of the lead totals and lead counts on PostgreSQL, which are sums of inserted
// differences.
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Store } from '../../db/store.ts'
import { seededImage } from '../support/app.ts'
import { openImage } from '../support/engine.ts'

let store: Store
beforeEach(async () => {
  store = await openImage(await seededImage())
})
afterEach(() => store.close())

const addDifferences = (count: number) =>
  sql`insert into lead_total_changes (owner_id, stage_id, status, count, units, parts)
    select 1, 1, 1, 1, 2, 0 from generate_series(1, ${count})`.execute(store.db)

const state = async () => {
  const count = sql<{ count: number; last: number }>`select count(*) as count, max(id) as last from lead_total_changes`
  return (await count.execute(store.db)).rows[0]
}

it('leaves few differences as they are', async () => {
  await addDifferences(1_000)
  const before = await state()
  await store.maintain()
  expect(await state()).toEqual(before)
})

it('replaces many differences by their sums', async () => {
  await addDifferences(1_001)
  await store.maintain()
  expect(await state()).toMatchObject({ count: 1 })
  const totals = await store.db.selectFrom('lead_totals').select(['count', 'units']).execute()
  expect(totals).toEqual([{ count: 1_001, units: 2_002 }])
})

it('leaves as many sums as there are, and only replaces differences', async () => {
  await sql`insert into lead_count_changes (kind, record_id, owner_id, count)
    select 'sources', 1, owner, 1 from generate_series(1, 1200) as owner`.execute(store.db)
  const last = async () =>
    (await sql`select count(*) as count, max(id) as last from lead_count_changes`.execute(store.db)).rows[0]
  const before = await last()
  await store.maintain()
  expect(await last()).toEqual(before)
  await sql`insert into lead_count_changes (kind, record_id, owner_id, count)
    select 'sources', 1, 1, 1 from generate_series(1, 1000)`.execute(store.db)
  await store.maintain()
  expect(await last()).toMatchObject({ count: 1_200 })
  const counts = await store.db.selectFrom('lead_counts').select('count').where('owner_id', '=', 1).execute()
  expect(counts).toEqual([{ count: 1_001 }])
})
