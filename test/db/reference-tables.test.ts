// The number of the vocabulary (`Store.vocabulary`): another one as soon as what a transaction sees of those tables may be other than
// before, also when it is undone, and the same as long as nobody names them. What follows from it: test/kernel/query/reference-data-cache.test.ts.
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { migrate } from '../../db/migrate.ts'
import { vocabulary } from '../../db/reference-tables.ts'
import { type Db, openStore } from '../../db/store.ts'
import { closeAll, failure, file, openAnew, store, strayMember, write } from './grouped.ts'

const times = { created_at: 'now', updated_at: 'now' }
const named = { name: 'New', name_key: 'new' }
/** A row of each, where the attribute and the pipeline 1 are there. */
const rows: Record<(typeof vocabulary)[number], object> = {
  attribute_options: { attribute_id: 1, ...named, sort_order: 1 },
  attributes: { code: 'new', ...named, type: 'select', entity_type: 'leads', sort_order: 1, ...times },
  lead_pipeline_stages: { lead_pipeline_id: 1, code: 'new', ...named, probability: 50, sort_order: 1, ...times },
  lead_pipelines: { ...named, ...times },
  lead_sources: { ...named, ...times },
  lead_types: { ...named, ...times },
  tags: { ...named, color: '#000000', ...times },
}

beforeEach(async () => {
  await openAnew()
  const old = { id: 1, name: 'Old', name_key: 'old' }
  await store.db
    .insertInto('attributes')
    .values({ ...rows.attributes, ...old, code: 'old' } as never)
    .execute()
  await store.db
    .insertInto('lead_pipelines')
    .values({ ...rows.lead_pipelines, ...old } as never)
    .execute()
})
afterEach(closeAll)

const number = (): number => store.referenceDataGeneration()
const addTag = (name: string, db: Db = store.db) =>
  db
    .insertInto('tags')
    .values({ name, name_key: name, color: '#000000', ...times })
    .execute()
const addOrganization = (name: string, db: Db = store.db) =>
  db
    .insertInto('organizations')
    .values({ name, name_key: name, ...times })
    .execute()

/** As a transaction sees it that does nothing. */
const seen = (): Promise<number> => write(async () => number())

/** The numbers are another one each. */
const areDistinct = (numbers: readonly (number | undefined)[]): void => {
  expect(numbers).not.toContain(undefined)
  expect(new Set(numbers).size, String(numbers)).toBe(numbers.length)
}

describe('the number of the vocabulary', () => {
  it('stays with writes of other tables, with reading, and with a rollback of those', async () => {
    const before = number()
    await addOrganization('tags')
    await write(async (db) => {
      await addOrganization('tags of lead_sources', db)
      await db.deleteFrom('events').execute()
      await db.deleteFrom('lead_tags').execute()
      await db.updateTable('persons').set({ name: 'attributes' }).execute()
      for (const table of vocabulary) await db.selectFrom(table).selectAll().execute()
    })
    await failure(write((db) => addOrganization('Gone', db).then(() => Promise.reject(new Error('no')))))
    expect([number(), await seen()]).toEqual([before, before])
  })

  it.each(vocabulary)('is another one when %s is written to, before the commit', async (table) => {
    const numbers = [number()]
    await write(async (db) => {
      expect(number()).toBe(numbers[0])
      await db
        .insertInto(table)
        .values(rows[table] as never)
        .execute()
      numbers.push(number())
      await db
        .updateTable(table)
        .set({ name: 'Other' } as never)
        .where('name_key', '=', 'new')
        .execute()
      numbers.push(number())
      await db.deleteFrom(table).where('name_key', '=', 'new').execute()
      numbers.push(number())
    })
    areDistinct(numbers)
    expect(await seen()).toBe(numbers.at(-1))
    await store.db
      .insertInto(table)
      .values(rows[table] as never)
      .execute()
    areDistinct([...numbers, number()])
  })

  it.each([
    'INSERT INTO Tags (name, name_key, color, created_at, updated_at) VALUES (1, 1, 1, 1, 1)',
    'replace into main.tags (name, name_key, color, created_at, updated_at) values (1, 1, 1, 1, 1)',
    'with one(n) as (select 1) update tags set name = (select n from one)',
    'delete from [tags]',
    'update organizations set name = (select name from tags)',
  ])('is another one after %s', async (text) => {
    const numbers = [number()]
    await write(async (db) => {
      await sql.raw(text.replaceAll('1, 1, 1, 1, 1', "'1', '1', '1', '1', '1'")).execute(db)
      numbers.push(number())
    })
    areDistinct(numbers)
  })
})

describe('what is undone', () => {
  it.each([0, 1, 2])('makes another one again when it was done by number %i of a group', async (place) => {
    const numbers = [number()]
    let isSeen = false
    const outcomes = await Promise.allSettled(
      [0, 1, 2, 3].map((index) =>
        write(async (db) => {
          if (index === place) {
            await addTag('new', db)
            numbers.push(number())
            throw new Error('no')
          }
          if (index === place + 1) {
            isSeen = true
            numbers.push(number())
            expect(await db.selectFrom('tags').select('id').execute()).toEqual([])
          }
          await addOrganization(`${index}`, db)
        }),
      ),
    )
    expect(outcomes.map(({ status }) => status === 'rejected')).toEqual([0, 1, 2, 3].map((index) => index === place))
    expect(isSeen).toBe(true)
    areDistinct(numbers)
    expect(await seen()).toBe(numbers.at(-1))
  })

  it('makes another one again when the commit fails, or what was put off', async () => {
    const numbers = [number()]
    const adding = (db: Db) => addTag('new', db).then(() => numbers.push(number()))
    const spoil = async (db: Db) => {
      await sql`pragma defer_foreign_keys = 1`.execute(db)
      await strayMember(db)
    }
    await Promise.all([write(adding), write(spoil)].map(failure))
    numbers.push(await seen())
    await sql`create trigger refused before insert on search_index begin select raise(abort, 'no'); end`.execute(
      store.db,
    )
    numbers.push(number())
    const put = async (db: Db) => {
      await addOrganization('a', db)
      const { id } = await db.selectFrom('organizations').select('id').executeTakeFirstOrThrow()
      store.deferToCommit([{ entity: 'organizations', id }])
    }
    await Promise.all([write(adding), write(put)].map(failure))
    numbers.push(await seen())
    areDistinct(numbers)
    expect(numbers).toHaveLength(6)
    expect(await store.db.selectFrom('tags').selectAll().execute()).toEqual([])
  })

  it('makes another one again when it is a part of a transaction that goes on', async () => {
    const numbers = [number()]
    await write(async (db) => {
      await sql`savepoint part`.execute(db)
      await addTag('new', db)
      numbers.push(number())
      await sql`rollback to savepoint part`.execute(db)
      await sql`release savepoint part`.execute(db)
      expect(await db.selectFrom('tags').select('id').execute()).toEqual([])
      numbers.push(number())
    })
    areDistinct(numbers)
  })
})

describe('what is not of this connection', () => {
  it('makes another one for the first transaction after it, and no other', async () => {
    const other = openStore(`sqlite:${file}`)
    try {
      const numbers = [await seen()]
      expect(await seen()).toBe(numbers[0])
      await addTag('theirs', other.db)
      const [first, second] = await Promise.all([seen(), seen()])
      numbers.push(first)
      expect([second, await seen()]).toEqual([first, first])
      await sql`create table theirs (id integer) strict`.execute(other.db)
      numbers.push(await store.db.connection().execute((one) => one.transaction().execute(async () => number())))
      await addTag('theirs too', other.db)
      await addTag('ours')
      numbers.push(number())
      areDistinct(numbers)
    } finally {
      await other.close()
    }
  })

  it('shares no number with another store of this process', async () => {
    const stores = [store, openStore(`sqlite:${file}`), openStore('sqlite::memory:')]
    const numbers: number[] = []
    for (const each of stores) {
      await migrate(each)
      for (const name of ['a', 'b', 'c']) {
        await addTag(`${name} ${stores.indexOf(each)}`, each.db)
        numbers.push(each.referenceDataGeneration())
      }
    }
    areDistinct(numbers)
    for (const each of stores.slice(1)) await each.close()
  })
})

describe('a change of the schema', () => {
  it('makes another one, in a transaction and out of one, and again when it is undone', async () => {
    const numbers = [number()]
    await sql`create table more (id integer) strict`.execute(store.db)
    numbers.push(number())
    await failure(
      write(async (db) => {
        await sql`alter table more add column name text`.execute(db)
        numbers.push(number())
        throw new Error('no')
      }),
    )
    numbers.push(await seen())
    await sql`drop table more`.execute(store.db)
    areDistinct([...numbers, number()])
  })
})
