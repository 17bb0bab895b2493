// Writes that come together share one commit. Whoever is answered is on the disk; whoever fails leaves nothing and harms nobody; and
// when the commit fails, none of them has happened.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { migrate } from '../../db/migrate.ts'
import { type Db, openStore, type Store } from '../../db/open.ts'
import { troubleOf } from '../../db/trouble.ts'

let folder: string
let file: string
let store: Store
/** What another process would see. */
let other: Database.Database
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'accord-groups-'))
  file = join(folder, 'accord.db')
  store = openStore(`sqlite:${file}`)
  await migrate(store)
  await sql`pragma wal_checkpoint(truncate)`.execute(store.db)
  other = new Database(file, { readonly: true })
})
afterEach(async () => {
  other.close()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

const source = (name: string) => ({ name, name_key: name.toLowerCase(), created_at: 'now', updated_at: 'now' })
const add = (name: string, db: Db = store.db) => db.insertInto('lead_sources').values(source(name)).execute()
const write = <T>(work: (db: Db) => Promise<T>): Promise<T> => store.db.transaction().execute((db) => work(db as Db))
const strayMember = (db: Db) => db.insertInto('user_groups').values({ user_id: 1, group_id: 1 }).execute()
const stored = (): string[] => other.prepare<[], string>('select name from lead_sources order by id').pluck().all()
const turn = () => new Promise((resolve) => setImmediate(resolve))
const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'did not fail',
    (error: unknown) => error,
  )

/** In the log of changes: the frames that end a transaction say how many pages there are then. */
function commits(): number {
  if (!existsSync(`${file}-wal`)) return 0
  const log = readFileSync(`${file}-wal`)
  const frame = 24 + 4096
  let count = 0
  for (let at = 32; at + frame <= log.length; at += frame) {
    const isOfNow = log.subarray(at + 8, at + 16).equals(log.subarray(16, 24))
    if (isOfNow && log.readUInt32BE(at + 4) > 0) count++
  }
  return count
}

/** No page more than there are. */
async function fill(): Promise<void> {
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(store.db)
  await sql`pragma max_page_count = ${sql.lit(rows[0]?.page_count ?? 1)}`.execute(store.db)
}

/** Something SQLite looks at only when it commits. */
async function spoil(db: Db): Promise<void> {
  await sql`pragma defer_foreign_keys = 1`.execute(db)
  await strayMember(db)
}

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

  it('commit one by one when they come one by one, after a turn of the event loop', async () => {
    for (const name of ['a', 'b', 'c']) {
      let isAnswered = false
      const writing = write((db) => add(name, db)).then(() => {
        isAnswered = true
      })
      for (let turns = 0; turns < 2; turns++) await turn()
      expect(isAnswered).toBe(true)
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

  it('do not wait for one that lasts long, which begins after their commit and sees nobody else in it', async () => {
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const long = () =>
      store.db
        .transaction()
        .setIsolationLevel('serializable')
        .execute(async (db) => {
          expect(stored()).toEqual(['a'])
          await add('long', db as Db)
          await held
        })
    const writing = [write((db) => add('a', db)), long(), write((db) => add('b', db))]
    await writing[0]
    release()
    await Promise.all(writing)
    expect([stored(), commits()]).toEqual([['a', 'long', 'b'], 3])
  })

  it('do not wait for those who come long after the first of them', async () => {
    const busy = (): void => {
      for (const until = performance.now() + 60; performance.now() < until; );
    }
    await Promise.all(['a', 'b', 'c'].map((name) => write((db) => add(name, db).then(busy))))
    expect([stored(), commits()]).toEqual([['a', 'b', 'c'], 3])
  })
})

describe('one that fails', () => {
  it.each([0, 1, 3])('leaves nothing and harms nobody, as number %i', async (place) => {
    const outcomes = await Promise.allSettled(
      ['a', 'b', 'c', 'd'].map((name, index) =>
        write(async (db) => {
          await add(name, db)
          await sql`savepoint part`.execute(db)
          await add(`${name} again`, db)
          if (index === place) throw new Error(`not ${name}`)
          await sql`release savepoint part`.execute(db)
        }),
      ),
    )
    const kept = ['a', 'b', 'c', 'd'].filter((_, index) => index !== place)
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual([0, 1, 2, 3].map((index) => index !== place))
    expect(String((outcomes[place] as PromiseRejectedResult).reason)).toContain('not ')
    expect(stored()).toEqual(kept.flatMap((name) => [name, `${name} again`]))
  })

  it('can be a single statement', async () => {
    const writing = [add('a'), strayMember(store.db), add('b'), add('a'), add('c')].map(failure)
    const [, stray, , double] = await Promise.all(writing)
    expect(store.dialect.isForeignKeyViolation(stray)).toBe(true)
    expect(store.dialect.isUniqueViolation(double)).toBe(true)
    expect(stored()).toEqual(['a', 'b', 'c'])
  })

  it('because of another one does not say so before that one is certain', async () => {
    const writing = [() => add('a'), () => write((db) => add('a', db)), () => add('a'), () => write(spoil)]
    const reasons = await Promise.all(writing.map((work) => failure(work())))
    // There is no such name: whoever tries it again can have it.
    expect(reasons.map((reason) => store.dialect.isUniqueViolation(reason))).toEqual([false, false, false, false])
    expect(stored()).toEqual([])
  })

  it('cannot go on writing after its end', async () => {
    let late: Promise<unknown> | undefined
    await write(async (db) => {
      late = turn().then(() => failure(add('late', db)))
      await add('a', db)
    })
    expect(await late).toBeInstanceOf(Error)
    expect(stored()).toEqual(['a'])
  })
})

describe('a commit that fails', () => {
  it('fails for all of them, and the next one is none the worse', async () => {
    const generation = store.generation()
    const reasons = await Promise.all(
      [() => add('a'), () => write((db) => add('b', db)), () => write(spoil), () => add('c')].map((work) =>
        failure(work()),
      ),
    )
    expect(reasons.map((reason) => store.dialect.isForeignKeyViolation(reason))).toEqual([true, true, true, true])
    expect([stored(), commits(), store.generation()]).toEqual([[], 0, generation])
    await add('d')
    expect(stored()).toEqual(['d'])
  })

  it('because the disk is full leaves nothing of any of them', async () => {
    await fill()
    const small = () => write((db) => add('small', db))
    const large = () =>
      write(async (db) => {
        await failure(add('large'.padEnd(200_000, '.'), db))
        // Whoever goes on all the same has nothing of it stored either.
        await failure(add('later', db))
      })
    const reasons = await Promise.all([small, large].map((work) => failure(work())))
    expect(reasons.map(troubleOf)).toEqual(['full', 'full'])
    expect([stored(), store.health()]).toEqual([[], 'full'])
    await sql`pragma max_page_count = 1000000`.execute(store.db)
    await Promise.all([add('a'), small()])
    expect([stored(), store.health()]).toEqual([['a', 'small'], null])
  })
})

describe('a database that another process writes to', () => {
  it('is busy for all that wait, and not for the next', async () => {
    await sql`pragma busy_timeout = 0`.execute(store.db)
    const holding = new Database(file)
    holding.exec('begin immediate')
    const reasons = await Promise.all([add('a'), write((db) => add('b', db)), add('c')].map(failure))
    expect(reasons.map(troubleOf)).toEqual(['busy', 'busy', 'busy'])
    expect(store.health()).toBeNull()
    holding.close()
    await add('d')
    expect(stored()).toEqual(['d'])
  })
})

describe('reading while something is written', () => {
  it('waits for nobody and shows what is committed; in memory, where it cannot, it waits', async () => {
    for (const where of [store, openStore('sqlite::memory:')]) {
      if (where !== store) await migrate(where)
      const names = async () =>
        (await where.db.selectFrom('lead_sources').select('name').execute()).map(({ name }) => name)
      let meanwhile: string[] | undefined
      let reading: Promise<unknown> | undefined
      await where.db.transaction().execute(async (db) => {
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
      store.db.connection().execute(async (one) => {
        await add('c', one as Db)
        const before = stored()
        for (let turns = 0; turns < 3; turns++) await turn()
        expect(before).toContain('c')
        expect(stored()).toEqual(before)
      }),
      write((db) => add('d', db)),
      store.dialect.optimise(store.db),
    ])
    expect(stored().sort()).toEqual(['a', 'b', 'c', 'd'])
    const copied = new Database(copy, { readonly: true })
    expect(copied.prepare('select name from lead_sources').pluck().all()).toEqual(['a'])
    copied.close()
    expect((await sql`select * from more`.execute(store.db)).rows).toEqual([])
  })
})

describe('closing', () => {
  it('keeps what waits for its commit, and nothing of what is half-way or waits for its turn', async () => {
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
