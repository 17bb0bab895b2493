// A full disk, a read-only database, and long reads of another connection: a transaction is stored
// completely or not at all, the connection stays usable, and the size of the WAL is limited.
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { migrate } from '../../db/migrate.ts'
import { storageFaultOf } from '../../db/storage-errors.ts'
import { openImage, openStore, type Store } from '../../db/store.ts'
import { useNewFolder } from '../support/folders.ts'

const isFull = process.env.ACCORD_TEST_FULL === '1'
const maxLogLength = 16 * 1024 * 1024

const folder = useNewFolder('durability')
let file: string
let store: Store
beforeEach(async () => {
  file = join(folder, 'accord.db')
  store = openStore(`sqlite:${file}`)
  await migrate(store)
})
afterEach(async () => {
  await store.close()
})

const source = (name: string) => ({ name, name_key: name.toLowerCase(), created_at: 'now', updated_at: 'now' })
const add = (name: string, db: Pick<Store['db'], 'insertInto'> = store.db) =>
  db.insertInto('lead_sources').values(source(name)).execute()
const names = async () =>
  (await store.db.selectFrom('lead_sources').select('name').execute()).map(({ name }) => name.slice(0, 10))
const long = (name: string): string => name.padEnd(200_000, '.')
const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'did not fail',
    (error: unknown) => error,
  )

/** Fills the database. Returns a function that frees space. */
async function fill(): Promise<() => Promise<unknown>> {
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(store.db)
  await sql`pragma max_page_count = ${sql.lit(rows[0]?.page_count ?? 1)}`.execute(store.db)
  return () => sql`pragma max_page_count = 1000000`.execute(store.db)
}

describe('a full disk', () => {
  it('takes all of a transaction back, also what its code would have gone on with', async () => {
    const free = await fill()
    const cause = await failure(
      store.transaction(async (db) => {
        await add('small', db)
        await failure(add(long('large'), db))
        // A caller that catches the error and continues must not store half of the transaction.
        await failure(add('later', db))
      }),
    )
    expect(storageFaultOf(cause)).toBe('full')
    expect(await names()).toEqual([])
    await free()
    await store.transaction((db) => add('after', db))
    expect(await names()).toEqual(['after'])
  })

  it('says why, whatever SQLite has undone by itself before', async () => {
    const cause = await failure(
      store.transaction(async (db) => {
        await add('small', db)
        await sql`rollback transaction`.execute(db)
        await add('alone', db)
      }),
    )
    expect(String(cause)).not.toContain('no transaction is active')
    expect(String(cause)).toContain('ended the transaction by itself')
    expect(await names()).toEqual([])
    await add('after')
    expect(await names()).toEqual(['after'])
  })

  it('is remembered until something can be written again, and is no reason not to read', async () => {
    expect(store.health()).toBeNull()
    const free = await fill()
    expect(storageFaultOf(await failure(add(long('large'))))).toBe('full')
    expect(await names()).toEqual([])
    expect(store.health()).toBe('full')
    await free()
    expect(store.health()).toBe('full')
    await add('after')
    expect(store.health()).toBeNull()
  })
})

describe('what was found wrong', () => {
  const readOnly = (isOn: boolean) => sql`pragma query_only = ${sql.lit(isOn ? 1 : 0)}`.execute(store.db)

  it('is not over with what writes nothing', async () => {
    await readOnly(true)
    expect(storageFaultOf(await failure(add('a')))).toBe('readonly')
    await readOnly(false)
    await sql`pragma max_page_count`.execute(store.db)
    await store.db.deleteFrom('lead_sources').where('name', '=', 'nowhere').execute()
    await store.db.deleteFrom('lead_sources').where('name', '=', 'nowhere').returning('id').execute()
    await store.db.updateTable('lead_sources').set({ name: 'b' }).where('name', '=', 'nowhere').execute()
    await store.transaction((db) => db.selectFrom('lead_sources').select('id').execute())
    expect(store.health()).toBe('readonly')
    await store.transaction((db) => add('b', db))
    expect(store.health()).toBeNull()
  })

  it('is tried again when asked, by a write that comes to the disk and changes nothing', async () => {
    await sql`pragma user_version = 7`.execute(store.db)
    await readOnly(true)
    await failure(add('a'))
    expect(await store.retryWrite()).toBe('readonly')
    await readOnly(false)
    const before = statSync(`${file}-wal`).size
    const held = openStore(`sqlite:${file}`)
    await held.transaction(async (db) => {
      await add('other', db)
      // While another connection has the lock, the check does not wait, and the fault stays.
      expect(await store.retryWrite()).toBe('readonly')
    })
    await held.close()
    expect([await store.retryWrite(), store.health()]).toEqual([null, null])
    expect(statSync(`${file}-wal`).size).toBeGreaterThan(before)
    const { rows } = await sql`pragma user_version`.execute(store.db)
    expect(rows).toEqual([{ user_version: 7 }])
  })

  it('during a read is reported to the reader, and does not mean that nothing can be written', async () => {
    await add('a')
    const { rows } = await sql<{
      rootpage: number
    }>`select rootpage from sqlite_schema where name = 'lead_types'`.execute(store.db)
    const image = await store.image()
    const page = 4096 * ((rows[0]?.rootpage ?? 0) - 1)
    image.fill(0xff, page, page + 4096)
    const damaged = openImage(image)
    expect(storageFaultOf(await failure(damaged.db.selectFrom('lead_types').selectAll().execute()))).toBe('damaged')
    expect(damaged.health()).toBeNull()
    await damaged.close()
  })
})

describe('trouble', () => {
  it('is told from what SQLite and files say, and from what caused an error', async () => {
    await sql`pragma query_only = 1`.execute(store.db)
    const readonly = await failure(add('a'))
    await sql`pragma query_only = 0`.execute(store.db)
    const errno = (code: string, path?: string) => Object.assign(new Error(code), { code, ...(path && { path }) })
    expect(
      [
        readonly,
        new Error('outer', { cause: readonly }),
        errno('ENOSPC'),
        errno('EROFS'),
        errno('EIO'),
        errno('EACCES', '/data/files'),
        // An error of a socket, because it has no path.
        errno('EACCES'),
        errno('ENOENT', '/data/files'),
        new Error('other'),
        'text',
      ].map(storageFaultOf),
    ).toEqual(['readonly', 'readonly', 'full', 'readonly', 'failing', 'readonly', null, null, null, null])
    expect(storageFaultOf(await failure(sql`select * from nowhere`.execute(store.db)))).toBeNull()
  })
})

describe('the log of changes', () => {
  const size = (): number => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0
  const [writes, bytes] = isFull ? [20_000, 4_000] : [300, 64_000]

  it('is cut back once the last reader of an old state is gone, and waits for none', async () => {
    const snapshot = await store.snapshot()
    const text = 'x'.repeat(bytes)
    for (let count = 0; count < writes; count++) await add(`${count} ${text}`)
    const longest = size()
    expect(longest).toBeGreaterThan(maxLogLength)
    await store.maintain()
    expect(size()).toBeGreaterThanOrEqual(longest)
    expect((await snapshot.db.selectFrom('lead_sources').select('id').execute()).length).toBe(0)
    await snapshot.close()
    await store.maintain()
    expect(size()).toBeLessThanOrEqual(maxLogLength)
    expect((await names()).length).toBe(writes)
    if (isFull) console.log(`WAL: ${writes} writes with a reader, ${longest} bytes, then ${size()}`)
  }, 300_000)

  it('is gone with the last connection, also when a snapshot was left open', async () => {
    await store.snapshot()
    await add('a')
    expect(existsSync(`${file}-wal`)).toBe(true)
    await store.close()
    expect([existsSync(`${file}-wal`), existsSync(`${file}-shm`)]).toEqual([false, false])
  })

  it('has bounds on every connection that writes, and commits are on the disk', async () => {
    const other = openStore(`sqlite:${file}`)
    for (const { db } of [store, other]) {
      const found = await Promise.all(
        ['synchronous', 'wal_autocheckpoint', 'journal_size_limit'].map(
          async (name) => (await sql<Record<string, number>>`pragma ${sql.raw(name)}`.execute(db)).rows[0],
        ),
      )
      expect(found.map((row) => Object.values(row as object)[0])).toEqual([1, 16_000, maxLogLength])
    }
    await other.close()
  })
})
