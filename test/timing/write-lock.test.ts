// Another process holds the write lock: the event loop is not blocked, reads work, and writes wait
// or are refused in time.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type Database from 'better-sqlite3'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { storageFaultOf } from '../../db/storage-errors.ts'
import { openStore, type Store } from '../../db/store.ts'
import { add, closeAll, failure, file, openAnew, store, stored, write } from '../db/grouped.ts'

let holding: Database.Database
beforeEach(async () => {
  await openAnew()
  holding = new Sqlite(file)
  holding.exec('begin immediate')
})
afterEach(async () => {
  holding.close()
  await closeAll()
})

const letGo = () => holding.exec('rollback')
const waitMs = 300

/** Returns the longest time without a turn of the event loop during the work. */
async function silence(work: () => Promise<unknown>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 5 })
  // Excludes earlier work of this process.
  await pause(20)
  delay.enable()
  await work()
  delay.disable()
  return delay.max / 1e6
}

async function inOther<T>(work: (other: Store) => Promise<T>): Promise<T> {
  const other = openStore(`sqlite:${file}`, { waitMs })
  try {
    return await work(other)
  } finally {
    await other.close()
  }
}

describe('a write lock of another process', () => {
  it('lets the event loop turn and reads be answered while writes wait for it', async () => {
    const quiet = await silence(async () => {
      const writes = [add('a'), write((db) => add('b', db)), sql`create table extra (id integer)`.execute(store.db)]
      for (let count = 0; count < 20; count++) {
        await pause(20)
        const since = performance.now()
        await store.db.selectFrom('lead_sources').select('id').execute()
        expect(performance.now() - since).toBeLessThan(100)
      }
      expect(stored()).toEqual([])
      letGo()
      await Promise.all(writes)
    })
    expect(quiet).toBeLessThan(200)
    expect(stored()).toEqual(['a', 'b'])
  })

  it('delays each request no longer than its limit, and later requests not at all', () =>
    inOther(async (other) => {
      const since = performance.now()
      const first = failure(add('a', other.db)).then((reason) => ({ reason, ms: performance.now() - since }))
      await pause(waitMs / 2)
      const second = failure(add('b', other.db)).then((reason) => ({ reason, ms: performance.now() - since }))
      const found = await Promise.all([first, second])
      expect(found.map(({ reason }) => storageFaultOf(reason))).toEqual(['busy', 'busy'])
      expect(found[0]?.ms).toBeGreaterThanOrEqual(waitMs - 5)
      expect((found[1]?.ms ?? 0) - (found[0]?.ms ?? 0)).toBeGreaterThan(waitMs / 4)
      expect(other.health()).toBeNull()
      const waiting = add('c', other.db)
      letGo()
      await waiting
      expect(stored()).toEqual(['c'])
    }))

  it('lets only so many wait when it lasts, so that there is room for those who read', async () => {
    const first = Array.from({ length: 100 }, (_each, index) => add(`${index}`))
    await pause(400)
    const since = performance.now()
    expect(storageFaultOf(await failure(add('one more')))).toBe('busy')
    expect(performance.now() - since).toBeLessThan(100)
    letGo()
    await Promise.all(first)
    expect(stored()).toHaveLength(100)
  })

  it('does not keep the database from closing', async () => {
    await inOther(async (other) => {
      const writing = failure(add('a', other.db))
      await other.close()
      expect(String(await writing)).toContain('closed')
    })
    letGo()
  })

  it('is not waited for by those who only ask whether the disk can be written', () =>
    inOther(async (other) => {
      const since = performance.now()
      expect(storageFaultOf(await failure(other.tryWrite()))).toBe('busy')
      expect(performance.now() - since).toBeLessThan(waitMs / 2)
    }))
})
