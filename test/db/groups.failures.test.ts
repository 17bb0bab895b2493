// Failures in a group commit: a failed transaction leaves nothing and does not affect others. If
// the commit fails, all transactions fail.
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { storageFaultOf } from '../../db/storage-errors.ts'
import type { Db } from '../../db/store.ts'
import { add, closeAll, commits, failure, openAnew, store, stored, strayMember, turn, write } from './grouped.ts'

beforeEach(openAnew)
afterEach(closeAll)

/** Fills the database. */
async function fill(): Promise<void> {
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(store.db)
  await sql`pragma max_page_count = ${sql.lit(rows[0]?.page_count ?? 1)}`.execute(store.db)
}

/** Violates a constraint that SQLite checks at the commit. */
async function spoil(db: Db): Promise<void> {
  await sql`pragma defer_foreign_keys = 1`.execute(db)
  await strayMember(db)
}

describe('one that fails', () => {
  it.each([0, 1, 3])('leaves nothing and does not affect the others, as number %i', async (place) => {
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
    // The errors are not unique violations, because a retry could succeed.
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
    const generation = store.commitGeneration()
    const reasons = await Promise.all(
      [() => add('a'), () => write((db) => add('b', db)), () => write(spoil), () => add('c')].map((work) =>
        failure(work()),
      ),
    )
    expect(reasons.map((reason) => store.dialect.isForeignKeyViolation(reason))).toEqual([true, true, true, true])
    expect([stored(), commits(), store.commitGeneration()]).toEqual([[], 0, generation])
    await add('d')
    expect(stored()).toEqual(['d'])
  })

  it('because the disk is full leaves nothing of any of them', async () => {
    await fill()
    const small = () => write((db) => add('small', db))
    const large = () =>
      write(async (db) => {
        await failure(add('large'.padEnd(200_000, '.'), db))
        // A transaction that continues after the error also stores nothing.
        await failure(add('later', db))
      })
    const reasons = await Promise.all([small, large].map((work) => failure(work())))
    expect(reasons.map(storageFaultOf)).toEqual(['full', 'full'])
    expect([stored(), store.health()]).toEqual([[], 'full'])
    await sql`pragma max_page_count = 1000000`.execute(store.db)
    await Promise.all([add('a'), small()])
    expect([stored(), store.health()]).toEqual([['a', 'small'], null])
  })
})
