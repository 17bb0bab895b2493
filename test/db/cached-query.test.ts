// A cached query: compiled once for each length of its lists, and run with the values of each call.
import fc from 'fast-check'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { type Bound, cachedQuery } from '../../db/cached-query.ts'
import type { Db } from '../../db/store.ts'
import { statementsOf } from '../support/statements.ts'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()

let built = 0
const sources = cachedQuery((db: Db, ids: Bound<number[]>) => {
  built++
  return db.selectFrom('lead_sources').select('id').where('id', 'in', ids).orderBy('id')
})
const found = async (ids: readonly number[]) => (await sources(server.store.db, ids)).map(({ id }) => id)

describe('a list of a cached query', () => {
  it('finds the rows that it would find in a query of its own, whatever its length', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.integer({ min: 1, max: 3_000 }), { maxLength: 1_500 }), async (ids) => {
        const plain = server.store.db.selectFrom('lead_sources').select('id').where('id', 'in', ids).orderBy('id')
        expect(await found(ids)).toEqual((await plain.execute()).map(({ id }) => id))
      }),
      { numRuns: 50 },
    )
  })

  it('compiles few statements for many lengths, and runs none for an empty list', async () => {
    built = 0
    for (let length = 1; length <= 200; length++) await found(Array.from({ length }, (_none, index) => index + 1))
    expect(built).toBeLessThan(12)
    expect(await statementsOf(() => found([]))).toEqual([])
  })
})

describe('the values of a cached query', () => {
  it('are those of the call, in whatever order the SQL binds them and between its constants', async () => {
    const counted = cachedQuery((db: Db, first: Bound<string>, ids: Bound<number[]>, last: Bound<string>) =>
      db
        .selectFrom('lead_sources')
        .select([
          sql<string>`cast(${last} as text)`.as('last'),
          sql<string>`'constant'`.as('constant'),
          sql<string>`cast(${first} as text)`.as('first'),
        ])
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('name', '<>', 'No such source')
        .where('id', 'in', ids),
    )
    const rowOf = async (first: string, ids: number[], last: string) => {
      const [row] = await counted(server.store.db, first, ids, last)
      return { ...row, count: Number(row?.count) }
    }
    const expected = { constant: 'constant', first: 'a', last: 'b', count: 2 }
    expect(await rowOf('a', [1, 2], 'b')).toEqual(expected)
    expect(await rowOf('c', [1, 99], 'd')).toEqual({ ...expected, first: 'c', last: 'd', count: 1 })
    expect(await rowOf('a', [2, 1], 'b')).toEqual(expected)
  })

  it('stay out of the SQL: the query is built without them', async () => {
    const seen: unknown[] = []
    const query = cachedQuery((db: Db, name: Bound<string>) => {
      seen.push(name)
      return db.selectFrom('lead_sources').select('id').where('name', '=', name)
    })
    await query(server.store.db, 'Direct')
    await query(server.store.db, 'Phone')
    expect(seen).toHaveLength(1)
    expect(typeof seen[0]).toBe('object')
  })
})
