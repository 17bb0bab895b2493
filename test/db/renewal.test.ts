// `accord search rebuild` while others write: in short transactions, and whatever was wrong before is right after.
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type Db, openStore } from '../../db/open.ts'
import { finding, rebuildAll, refresh } from '../../db/search.ts'
import { alone, closeAll, file, openAnew, store } from './grouped.ts'

const count = 2_000
const organization = (name: string) => ({ name, name_key: name, created_at: 'now', updated_at: 'now' })
beforeEach(async () => {
  await openAnew()
  await alone(async (db) => {
    for (let from = 0; from < count; from += 500) {
      const rows = Array.from({ length: 500 }, (_each, index) => organization(`organization ${from + index} of many`))
      await db.insertInto('organizations').values(rows).execute()
    }
  })
})
afterEach(closeAll)

const schema = async () =>
  (await sql<{ name: string }>`select name from sqlite_schema order by name`.execute(store.db)).rows.map(
    ({ name }) => name,
  )

it('leaves others time to write, and has what they write', async () => {
  expect(await rebuildAll(store)).toBe(count)
  const before = await schema()
  // Words that are missing, rows that are missing, and rows that say something else.
  await sql`insert into search_index_pieces (search_index_pieces) values ('delete-all')`.execute(store.db)
  await sql`delete from search_index where entity_id % 7 = 0`.execute(store.db)
  await sql`update search_index set title = 'strange' where entity_id % 11 = 0`.execute(store.db)
  await sql`insert into search_index (entity_type, entity_id, title, subtitle, body) values ('leads', 7, 'gone', '', '')`.execute(
    store.db,
  )
  await sql`insert into search_index (entity_type, entity_id, title, subtitle, body) values ('nothing', 7, 'strange', '', '')`.execute(
    store.db,
  )
  expect(await finding(store.db, store.dialect)).not.toBeNull()

  const other = openStore(`sqlite:${file}`)
  let isDone = false
  let written = 0
  const writing = (async () => {
    // Bounded: a writer without a pause may keep a rebuild from its end.
    while (!isDone && written < 400) {
      await other.db.transaction().execute(async (inside) => {
        const db = inside as Db
        const { insertId } = await db
          .insertInto('organizations')
          .values(organization(`late ${written}`))
          .executeTakeFirstOrThrow()
        const changed = 1 + ((written * 13) % count)
        await db
          .updateTable('organizations')
          .set({ name: `changed ${written}` })
          .where('id', '=', changed)
          .execute()
        const gone = 1 + ((written * 29 + 5) % count)
        await db.deleteFrom('organizations').where('id', '=', gone).execute()
        await refresh(
          db,
          [Number(insertId), changed, gone].map((id) => ({ entity: 'organizations', id })),
        )
      })
      written++
    }
  })()
  const found = new Set<number>()
  const { transaction } = store.db
  vi.spyOn(store.db, 'transaction').mockImplementation(function (this: Db) {
    found.add(written)
    return transaction.call(this) as never
  })
  await rebuildAll(store)
  isDone = true
  await writing
  await other.close()
  // So many of its steps saw that others had gone on.
  expect(found.size).toBeGreaterThan(5)
  expect(await finding(store.db, store.dialect)).toBeNull()
  expect(await schema()).toEqual(before)
}, 60_000)

it('goes on after one that was cut off', async () => {
  const before = await schema()
  const { renewal } = store.dialect.fullText
  const [index = ''] = renewal.indexes('search_index')
  await alone((db) => renewal.begin(db as never, 'search_index', index))
  expect(await schema()).not.toEqual(before)
  expect(await rebuildAll(store)).toBe(count)
  expect(await schema()).toEqual(before)
  expect(await finding(store.db, store.dialect)).toBeNull()
})
