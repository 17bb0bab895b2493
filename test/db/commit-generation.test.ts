// `Store.commitGeneration`, which caches depend on: it changes with every commit of any process,
// and only then.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Sqlite, sqliteLibrary } from '../../db/sqlite/driver.ts'
import { openStore } from '../../db/store.ts'
import { add, begin, changes, end, folder, keep, opened, source, url } from './commit-generation.ts'

beforeEach(begin)
afterEach(end)

describe.each(['a file', 'memory', 'an image'])('the generation of %s', (place) => {
  it('is another one once a commit is answered, and never one that was before', async () => {
    const store = await opened(place)
    const seen = [store.commitGeneration()]
    const note = () => seen.push(store.commitGeneration())
    await add('a', store).then(note)
    await store.transaction(async (db) => {
      await add('b', { db })
      await add('c', { db })
    })
    note()
    await store.db.insertInto('lead_sources').values(source('d')).returning('id').execute().then(note)
    await store.db.updateTable('lead_sources').set({ name: 'e' }).where('name', '=', 'a').execute().then(note)
    await store.db.deleteFrom('lead_sources').where('name', '=', 'e').execute().then(note)
    await sql`alter table lead_sources add column more text`.execute(store.db).then(note)
    await store.transaction((db) => sql`create table more (id integer) strict`.execute(db)).then(note)
    expect(new Set(seen).size).toBe(8)
  })

  it('stays for reads, rollbacks and statements that change no row', async () => {
    const store = await opened(place)
    await add('a', store)
    const { db } = store
    const nowhere = db.updateTable('lead_sources').set({ name: 'x' }).where('name', '=', 'nowhere')
    const attempts: (() => Promise<unknown>)[] = [
      () => db.selectFrom('lead_sources').selectAll().execute(),
      () => store.transaction((inside) => inside.selectFrom('lead_sources').selectAll().execute()),
      () =>
        store
          .transaction(async (inside) => {
            await add('b', { db: inside })
            throw new Error('no')
          })
          .catch(() => undefined),
      () =>
        db
          .insertInto('user_groups')
          .values({ user_id: 1, group_id: 1 })
          .execute()
          .catch(() => undefined),
      () => nowhere.execute(),
      () => nowhere.returning('id').execute(),
      () => sql`pragma page_count`.execute(db),
    ]
    const found = []
    for (const work of attempts) found.push(await changes(store, work))
    expect(found).toEqual(attempts.map(() => false))
  })
})

describe('the generation of a file', () => {
  it('changes when another connection or process has committed', async () => {
    const store = await opened('a file')
    const other = keep(openStore(url))
    expect(await changes(store, () => add('a', other))).toBe(true)
    const program = `
      const { default: Sqlite } = await import(${JSON.stringify(sqliteLibrary)})
      new Sqlite(${JSON.stringify(join(folder, 'accord.db'))})
        .prepare("insert into lead_sources (name, name_key, created_at, updated_at) values ('b', 'b', 'now', 'now')").run()`
    const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
    expect(await changes(store, run)).toBe(true)
    expect(await changes(store, () => other.db.selectFrom('lead_sources').select('id').execute())).toBe(false)
  })

  it('stays while another connection has written and not committed', async () => {
    const store = await opened('a file')
    const other = keep(openStore(url))
    const before = store.commitGeneration()
    await other.transaction(async (db) => {
      await add('a', { db })
      expect(store.commitGeneration()).toBe(before)
    })
    store.renewReadTransaction()
    expect(store.commitGeneration()).not.toBe(before)
  })

  it('is that of one moment for all that is read in a turn of the event loop, and a new one after it, `refresh` or a commit', async () => {
    const store = await opened('a file')
    const other = new Sqlite(join(folder, 'accord.db'))
    const added = other.prepare(
      "insert into lead_sources (name, name_key, created_at, updated_at) values (?, ?, 'now', 'now')",
    )
    const add = (name: string) => added.run(name, name)
    const count = async () => (await store.db.selectFrom('lead_sources').select('id').execute()).length
    const earlier = performance.now()
    const first = { rows: await count(), generation: store.commitGeneration() }
    add('a')
    expect([await count(), store.commitGeneration()]).toEqual([first.rows, first.generation])
    // A transaction that began earlier may still be used and see the old state.
    store.renewReadTransaction(performance.now() - earlier)
    expect(await count()).toBe(first.rows)
    store.renewReadTransaction()
    expect(await count()).toBe(first.rows + 1)
    expect(store.commitGeneration()).not.toBe(first.generation)
    add('b')
    expect(await count()).toBe(first.rows + 1)
    await new Promise((resolve) => setImmediate(resolve))
    expect(await count()).toBe(first.rows + 2)
    const before = store.commitGeneration()
    await store.db.deleteFrom('lead_sources').where('name', '=', 'a').execute()
    expect(await count()).toBe(first.rows + 1)
    expect(store.commitGeneration()).not.toBe(before)
    other.close()
  })

  it('shows columns by the names they have by now, when another process has renamed them', async () => {
    const store = await opened('a file')
    await store.db
      .insertInto('tags')
      .values({ ...source('a'), color: '#123456' })
      .execute()
    const all = async () => (await store.db.selectFrom('tags').selectAll().executeTakeFirstOrThrow()) as object
    expect(await all()).toMatchObject({ color: '#123456' })
    const other = new Sqlite(join(folder, 'accord.db'))
    other.exec('alter table tags rename column color to shade')
    other.close()
    store.renewReadTransaction()
    expect(await all()).toMatchObject({ shade: '#123456' })
  })
})
