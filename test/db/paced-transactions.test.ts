// Long transactions end their turn of the event loop between two statements. Meanwhile reads see
// the committed data, and other writes wait.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { pacedFromNow, yieldToEventLoop } from '../../src/kernel/runtime/cooperative.ts'
import { countTurns } from '../support/turns.ts'
import { add, closeAll, openAnew, store, stored, turn, write } from './grouped.ts'

/** The tests control the clock. */
beforeEach(async () => {
  await openAnew()
  store.paceTransactions(pacedFromNow)
  vi.useFakeTimers({ toFake: ['performance'] })
  // The first slice begins by this clock.
  await yieldToEventLoop()
})
afterEach(async () => {
  vi.useRealTimers()
  await closeAll()
})

const names = async (): Promise<string[]> =>
  (await store.db.selectFrom('lead_sources').select('name').orderBy('id').execute()).map(({ name }) => name)

describe('a transaction', () => {
  it('runs in one turn when it is short, and ends each slice when it is long', async () => {
    const turns = countTurns()
    const counts = await write(async (db) => {
      const seen: number[] = []
      for (let step = 0; step < 20; step++) {
        await add(`Source ${step}`, db)
        seen.push(turns.count)
        if (step >= 9) vi.advanceTimersByTime(step === 9 ? 10 : 3)
      }
      return seen
    })
    turns.stop()
    expect(new Set(counts.slice(0, 10)).size).toBe(1)
    expect(new Set(counts.slice(9)).size).toBe(11)
  })

  it('shows nothing of itself to reads between its statements, and lets no other write in', async () => {
    let other: Promise<unknown> | undefined
    await write(async (db) => {
      await add('First', db)
      vi.advanceTimersByTime(10)
      const next = add('Second', db)
      other = add('Other')
      expect(await names()).toEqual([])
      await next
      for (let count = 0; count < 10; count++) await turn()
      expect(await names()).toEqual([])
    })
    await other
    expect(stored()).toEqual(['First', 'Second', 'Other'])
  })

  it('leaves nothing when it fails after a pause', async () => {
    const failing = write(async (db) => {
      await add('First', db)
      vi.advanceTimersByTime(10)
      await add('Second', db)
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    expect(stored()).toEqual([])
  })
})

describe('the work that a group defers to its commit', () => {
  it('ends each slice when it is long', async () => {
    const turns = countTurns()
    const seen: number[] = []
    store.beforeGroupCommit(async (db) => {
      for (let step = 0; step < 5; step++) {
        await add(`Source ${step}`, db)
        seen.push(turns.count)
        vi.advanceTimersByTime(10)
      }
    })
    await write((db) => store.deferToCommit(db, [{ entity: 'leads', id: 1 }]))
    turns.stop()
    expect(new Set(seen).size).toBe(5)
    expect(stored()).toHaveLength(5)
  })
})
