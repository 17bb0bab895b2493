// Snapshots on PostgreSQL: a snapshot shows one moment, and its connection can run other queries
// while it streams rows.
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Store } from '../../db/store.ts'
import { seededImage, start } from '../support/app.ts'
import { isPostgres, openImage } from '../support/engine.ts'

describe.runIf(isPostgres)('a snapshot', () => {
  let store: Store
  beforeEach(async () => {
    store = await openImage(await seededImage())
    await addTags(1_200)
  })
  afterEach(() => store.close())

  const addTags = (count: number) =>
    sql`insert into tags (name, name_key, color, user_id, created_at, updated_at)
    select 'Tag ' || number, gen_random_uuid()::text, '#112233', 1, ${start}, ${start}
    from generate_series(1, ${count}) as numbers (number)`.execute(store.db)

  it('answers other queries while it streams rows of one moment', async () => {
    const snapshot = await store.snapshot()
    await addTags(5)
    const query = snapshot.db.selectFrom('tags').select('id').where('id', '>', 10).orderBy('id')
    const ids: number[] = []
    const counts: number[] = []
    for await (const { id } of snapshot.each(query)) {
      ids.push(id)
      if (ids.length % 500 !== 0) continue
      // A second stream runs inside the first and ends early.
      for await (const { count } of snapshot.each(
        snapshot.db.selectFrom('tags').select((eb) => eb.fn.countAll<number>().as('count')),
      ))
        counts.push(count)
      for await (const _row of snapshot.each(query)) break
    }
    await snapshot.close()
    expect(ids).toEqual(Array.from({ length: 1_190 }, (_, index) => index + 11))
    expect(counts).toEqual([1_200, 1_200])
  })

  it('ends a stream with an error when it is closed', async () => {
    const snapshot = await store.snapshot()
    const reading = async (): Promise<void> => {
      for await (const _row of snapshot.each(snapshot.db.selectFrom('tags').select('id'))) await snapshot.close()
    }
    await expect(reading()).rejects.toThrow()
  })
})
