// Group commit: writes that arrive together share a commit and resolve after it is on the disk.
// Other uses of the connection wait.
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { migrate } from '../../db/migrate.ts'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { type Db, openStore } from '../../db/store.ts'
import {
  add,
  alone,
  closeAll,
  commits,
  failure,
  file,
  folder,
  groupMs,
  openAnew,
  store,
  stored,
  turn,
  write,
} from './grouped.ts'

beforeEach(async () => {
  await openAnew()
  // The test controls the clock and thus the age of a group.
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(async () => {
  vi.useRealTimers()
  await closeAll()
})

describe('writes that come together', () => {
  it('share commits, and each is on the disk when it is answered', async () => {
    const names = Array.from({ length: 64 }, (_, index) => `Source ${index}`)
    const answered: string[] = []
    const one = async (name: string, index: number) => {
      if (index % 4 === 0) await add(name)
      else
        await write(async (db) => {
          await add(name, db)
          await db.selectFrom('lead_sources').selectAll().execute()
        })
      expect(stored()).toContain(name)
      answered.push(name)
    }
    await Promise.all(names.map(one))
    expect([stored().sort(), answered.sort()]).toEqual([[...names].sort(), [...names].sort()])
    expect(commits()).toBeLessThan(names.length / 4)
  })

  it('have a commit each where groups last no time', async () => {
    const alone = openStore(`sqlite:${file}`, { groupMs: 0 })
    try {
      const before = commits()
      await Promise.all(Array.from({ length: 16 }, (_, index) => add(`Source ${index}`, alone.db)))
      expect(commits() - before).toBe(16)
      expect(stored().length).toBe(16)
    } finally {
      await alone.close()
    }
  })

  it('commit one by one when they come one by one, after a turn of the event loop', async () => {
    for (const name of ['a', 'b', 'c']) {
      const writing = write((db) => add(name, db))
      for (let turns = 0; turns < 2; turns++) await turn()
      expect(stored()).toContain(name)
      await writing
    }
    expect(commits()).toBe(3)
  })

  it('see each other in their order', async () => {
    const seen = await Promise.all(
      ['a', 'b', 'c'].map((name) =>
        write(async (db) => {
          await add(name, db)
          return (await db.selectFrom('lead_sources').select('name').orderBy('id').execute()).map((row) => row.name)
        }),
      ),
    )
    expect(seen).toEqual([['a'], ['a', 'b'], ['a', 'b', 'c']])
    expect(commits()).toBe(1)
  })

  it('do not wait for a long one, which begins after their commit and shares it with no other', async () => {
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const long = () =>
      alone(async (db) => {
        expect(stored()).toEqual(['a'])
        await add('long', db)
        await held
      })
    const writing = [write((db) => add('a', db)), long(), write((db) => add('b', db))]
    await writing[0]
    release()
    await Promise.all(writing)
    expect([stored(), commits()]).toEqual([['a', 'long', 'b'], 3])
  })

  it('keep in memory what it takes to undo one of them, and in a file what may be nearly all of the database', async () => {
    const placeIn = async (db: Db) =>
      (await sql<{ temp_store: number }>`pragma temp_store`.execute(db)).rows[0]?.temp_store
    const places = ['default', 'file', 'memory']
    for (const place of [await alone(placeIn), await alone(placeIn)])
      expect(['default', 'file']).toContain(places[place ?? 2])
    expect(places[(await write(placeIn)) ?? 0]).toBe('memory')
    expect(places[(await alone(placeIn)) ?? 2]).toBe('file')
    expect(places[(await write(placeIn)) ?? 0]).toBe('memory')
  })

  it('wait for those who are about to come, for as long as a group may last', async () => {
    let left = 5
    store.onGroupCommit(() => left > 0)
    const answered: number[] = []
    const writing: Promise<unknown>[] = []
    for (; left > 0; left--) {
      const number = left
      writing.push(write((db) => add(`Source ${number}`, db)).then(() => answered.push(number)))
      for (let turns = 0; turns < 3; turns++) await turn()
      expect(answered).toEqual([])
    }
    await Promise.all(writing)
    expect([stored().length, commits()]).toEqual([5, 1])
    // The group expects a write that does not arrive.
    store.onGroupCommit(() => true)
    const last = write((db) => add('Last', db)).then(() => answered.push(0))
    for (let turns = 0; turns < 20; turns++) await turn()
    expect(answered).not.toContain(0)
    vi.advanceTimersByTime(groupMs)
    await last
    expect([stored().length, commits()]).toEqual([6, 2])
  })

  it('do not wait for those who come long after the first of them', async () => {
    const busy = (): void => void vi.advanceTimersByTime(groupMs)
    await Promise.all(['a', 'b', 'c'].map((name) => write((db) => add(name, db).then(busy))))
    expect([stored(), commits()]).toEqual([['a', 'b', 'c'], 3])
  })
})

describe('reading while something is written', () => {
  it('does not wait and shows committed data; in memory, where it cannot, it waits', async () => {
    for (const where of [store, openStore('sqlite::memory:')]) {
      if (where !== store) await migrate(where)
      const names = async () =>
        (await where.db.selectFrom('lead_sources').select('name').execute()).map(({ name }) => name)
      let meanwhile: string[] | undefined
      let reading: Promise<unknown> | undefined
      await where.transaction(async (db) => {
        await add('a', db as Db)
        reading = names().then((found) => {
          meanwhile = found
        })
        for (let turns = 0; turns < 3; turns++) await turn()
        expect(meanwhile).toEqual(where === store ? [] : undefined)
        await add('b', db as Db)
      })
      await reading
      expect(meanwhile).toEqual(where === store ? [] : ['a', 'b'])
      expect(await names()).toEqual(['a', 'b'])
      if (where !== store) await where.close()
    }
  })
})

describe('what stands in no transaction', () => {
  it('is done between groups: a copy, a change of tables, what has the connection for itself', async () => {
    const copy = join(folder, 'copy.db')
    await Promise.all([
      add('a'),
      sql`vacuum into ${copy}`.execute(store.db),
      write((db) => add('b', db)),
      sql`create table more (id integer) strict`.execute(store.db),
      store.tryWrite(),
      add('c'),
      write((db) => add('d', db)),
      store.dialect.updateStatistics(store.db),
    ])
    expect(stored().sort()).toEqual(['a', 'b', 'c', 'd'])
    const copied = new Sqlite(copy, { readonly: true })
    expect(copied.prepare('select name from lead_sources').pluck().all()).toEqual(['a'])
    copied.close()
    expect((await sql`select * from more`.execute(store.db)).rows).toEqual([])
  })
})

describe('closing', () => {
  it('keeps members that wait for their commit, and nothing of unfinished or waiting ones', async () => {
    const half = async (db: Db) => {
      await add('half', db)
      await turn()
      await add('whole', db)
    }
    const writing = [
      () => add('a'),
      () => write((db) => add('b', db)),
      () => write(half),
      () => write((db) => add('c', db)),
    ]
    const reasons = Promise.all(writing.map((work) => failure(work())))
    for (let ticks = 0; ticks < 100; ticks++) await undefined
    await store.close()
    expect((await reasons).map((reason) => reason instanceof Error)).toEqual([false, false, true, true])
    expect(stored()).toEqual(['a', 'b'])
    expect(await failure(add('d'))).toBeInstanceOf(Error)
  })
})
