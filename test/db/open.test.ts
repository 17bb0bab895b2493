// Opening a database: independent copies, pragmas, and bindable values. migrations.test.ts tests
// migrations.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, describe, expect, it } from 'vitest'
import { migrate } from '../../db/migrate.ts'
import { type DatabaseSnapshot, openImage, openStore, type Store } from '../../db/store.ts'

const stores: Store[] = []
const folders: string[] = []

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function keep(store: Store): Store {
  stores.push(store)
  return store
}

function fileUrl(): string {
  const folder = mkdtempSync(join(tmpdir(), 'accord-db-'))
  folders.push(folder)
  return `sqlite:${join(folder, 'data', 'accord.db')}`
}

async function migrated(url = 'sqlite::memory:'): Promise<Store> {
  const store = keep(openStore(url))
  await migrate(store)
  return store
}

const source = (name: string) => ({ name, name_key: name.toLowerCase(), created_at: 'now', updated_at: 'now' })
const names = async (store: Store) =>
  (await store.db.selectFrom('lead_sources').select('name').execute()).map((r) => r.name)

describe('openStore', () => {
  it('creates the folder of the file and opens it durable, with foreign keys', async () => {
    const { db } = keep(openStore(fileUrl()))
    const settings = await sql<Record<string, unknown>>`
      select * from pragma_journal_mode, pragma_synchronous, pragma_foreign_keys, pragma_busy_timeout
    `.execute(db)
    expect(settings.rows).toEqual([{ journal_mode: 'wal', synchronous: 2, foreign_keys: 1, timeout: 0 }])
  })

  it('refuses an engine it does not know with a sentence that says what to write', () => {
    expect(() => openStore('mysql://localhost/crm')).toThrow('mysql:')
    expect(() => openStore('data/accord.db')).toThrow('write sqlite:<path>')
    expect(() => openStore('sqlite:')).toThrow('names no file')
  })

  it('can be closed twice, and before anything was asked', async () => {
    const store = openStore('sqlite::memory:')
    await store.close()
    await expect(store.close()).resolves.toBeUndefined()
  })
})

describe('openImage', () => {
  it('makes copies that do not see each other', async () => {
    const original = await migrated()
    const image = await original.image()
    const [left, right] = [keep(openImage(image)), keep(openImage(image))]
    await left.db.insertInto('lead_sources').values(source('Left')).execute()
    await original.db.insertInto('lead_sources').values(source('Original')).execute()
    expect([await names(left), await names(right), await names(original)]).toEqual([['Left'], [], ['Original']])
  })

  it('opens the image of a WAL file, with foreign keys on', async () => {
    const copy = keep(openImage(await (await migrated(fileUrl())).image()))
    const failure = await copy.db
      .insertInto('user_groups')
      .values({ user_id: 1, group_id: 1 })
      .execute()
      .catch((e) => e)
    expect(copy.dialect.isForeignKeyViolation(failure)).toBe(true)
  })
})

describe('a snapshot', () => {
  it.each(['a file', 'memory'])('of %s shows one moment, while others write', async (place) => {
    const store = await migrated(place === 'memory' ? undefined : fileUrl())
    await store.db
      .insertInto('lead_sources')
      .values([source('A'), source('B')])
      .execute()
    const snapshot = await store.snapshot()
    await store.db.insertInto('lead_sources').values(source('C')).execute()
    await store.db.deleteFrom('lead_sources').where('name', '=', 'A').execute()
    const seen: string[] = []
    for await (const { name } of snapshot.each(snapshot.db.selectFrom('lead_sources').select('name').orderBy('id'))) {
      // A second query runs during the first.
      const { total } = await snapshot.db
        .selectFrom('lead_sources')
        .select(({ fn }) => fn.countAll<number>().as('total'))
        .executeTakeFirstOrThrow()
      seen.push(`${name} of ${total}`)
    }
    expect(seen).toEqual(['A of 2', 'B of 2'])
    expect(await names(store)).toEqual(['B', 'C'])
    await snapshot.close()
    await expect(snapshot.close()).resolves.toBeUndefined()
  })

  it('holds nothing of a transaction that is still going on', async () => {
    for (const store of [await migrated(), await migrated(fileUrl())]) {
      let snapshot: Promise<DatabaseSnapshot> | undefined
      await store.transaction(async (db) => {
        await db.insertInto('lead_sources').values(source('Half')).execute()
        snapshot = store.snapshot()
        await new Promise((resolve) => setImmediate(resolve))
        await db.deleteFrom('lead_sources').execute()
        await db.insertInto('lead_sources').values(source('Whole')).execute()
      })
      const opened = await snapshot
      const found = await opened?.db.selectFrom('lead_sources').select('name').execute()
      expect(found?.map(({ name }) => name)).not.toContain('Half')
      await opened?.close()
    }
  })

  it('that is closed while it is read says so, rather than to look complete', async () => {
    const store = await migrated()
    await store.db
      .insertInto('lead_sources')
      .values([source('A'), source('B')])
      .execute()
    const snapshot = await store.snapshot()
    const rows = snapshot.each(snapshot.db.selectFrom('lead_sources').select('name'))[Symbol.asyncIterator]()
    expect((await rows.next()).value).toEqual({ name: 'A' })
    await snapshot.close()
    await expect(rows.next()).rejects.toThrow('closed while it was read')
  })
})

describe('the sqlite dialect', () => {
  const values = { text: null, yes: true, big: 999_999_999_999_999, bytes: Buffer.from('é') }

  it('folds letters beyond ASCII and composes them', async () => {
    const { db, dialect } = keep(openStore('sqlite::memory:'))
    const folded = await sql<{ a: string; b: string; c: null }>`
      select ${dialect.fold(sql`'ÄÖ'`)} as a, ${dialect.fold(sql.val('A\u0308'))} as b, ${dialect.fold(sql`null`)} as c
    `.execute(db)
    expect(folded.rows).toEqual([{ a: 'äö', b: 'ä', c: null }])
  })

  it('binds booleans as 0 and 1 and large integers exactly as integers', async () => {
    const { db } = keep(openStore('sqlite::memory:'))
    const bound = await sql`
      select ${values.yes} as yes, ${!values.yes} as no, ${values.big} as big, typeof(${values.big}) as kind
    `.execute(db)
    expect(bound.rows).toEqual([{ yes: 1, no: 0, big: values.big, kind: 'integer' }])
  })

  it.each([
    ['a Date', new Date(0)],
    ['an object', {}],
    ['an array', []],
    ['undefined', undefined],
    ['NaN', Number.NaN],
  ])('refuses to bind %s, naming the parameter', async (what, value) => {
    const { db } = keep(openStore('sqlite::memory:'))
    await expect(sql`select ${1}, ${sql.val(value)}`.execute(db)).rejects.toThrow(`Parameter 2 is ${what};`)
  })

  it('searches contact points and reads parts of JSON columns', async () => {
    const { db, dialect } = await migrated()
    const stamps = { created_at: 'now', updated_at: 'now' }
    const emails = JSON.stringify([{ value: 'Ödön@Example.com', label: 'work' }])
    await db
      .insertInto('persons')
      .values({ name: 'Ö', name_key: 'ö', emails, ...stamps })
      .execute()
    await db
      .insertInto('organizations')
      .values({ name: 'A', name_key: 'a', address: '{"city":"Paris","postcode":75001}', ...stamps })
      .execute()
    const found = async (mode: 'equals' | 'contains', needle: string) =>
      (
        await db
          .selectFrom('persons')
          .select('id')
          .where(dialect.jsonPointMatches('persons.emails', mode, needle))
          .execute()
      ).length
    expect(await found('equals', 'öDÖN@example.com')).toBe(1)
    expect(await found('equals', 'example.com')).toBe(0)
    expect(await found('contains', 'EXAMPLE')).toBe(1)
    expect(await found('contains', 'work')).toBe(0)
    expect(await found('contains', '%')).toBe(0)
    const parts = await db
      .selectFrom('organizations')
      .select([
        dialect.jsonText('organizations.address', 'city').as('city'),
        dialect.jsonText('address', 'postcode').as('postcode'),
        dialect.jsonText('address', 'state').as('state'),
      ])
      .execute()
    expect(parts).toEqual([{ city: 'Paris', postcode: '75001', state: null }])
    expect(() => dialect.jsonText('address', "city' or 1")).toThrow('plain keys')
  })

  it('tells unique, foreign key and other failures apart, also for restricted deletes', async () => {
    const { db, dialect } = await migrated()
    const stamps = { created_at: 'now', updated_at: 'now' }
    const fails = (work: { execute(): Promise<unknown> }) =>
      work.execute().then(
        () => 'did not fail',
        (e: unknown) => e,
      )
    const verdict = (e: unknown) => [
      dialect.isUniqueViolation(e),
      dialect.isForeignKeyViolation(e),
      dialect.storageFault(e),
    ]

    await db
      .insertInto('roles')
      .values({ name: 'A', name_key: 'a', permission_type: 'all', ...stamps })
      .execute()
    const user = { name: 'U', name_key: 'u', email: 'U@x', email_key: 'u@x', role_id: 1, ...stamps }
    await db.insertInto('users').values(user).execute()
    expect(verdict(await fails(db.insertInto('users').values(user)))).toEqual([true, false, null])
    expect(verdict(await fails(db.insertInto('users').values({ ...user, email_key: 'v', role_id: 9 })))).toEqual([
      false,
      true,
      null,
    ])
    expect(verdict(await fails(db.deleteFrom('roles')))).toEqual([false, true, null])
    expect(verdict(await fails(db.updateTable('users').set({ view_permission: sql`'none'` })))).toEqual([
      false,
      false,
      null,
    ])
    expect(verdict(await fails(db.updateTable('users').set({ is_active: 2 })))).toEqual([false, false, null])
  })

  it('says busy when another connection holds the write lock', async () => {
    const url = fileUrl()
    const [first, second] = [await migrated(url), keep(openStore(url, { waitMs: 0 }))]
    await first.transaction(async () => {
      const failure = await second.transaction(async () => 'began').catch((e: unknown) => e)
      expect(second.dialect.storageFault(failure)).toBe('busy')
    })
    expect(await names(second)).toEqual([])
  })
})
