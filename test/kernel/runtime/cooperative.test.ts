// Cooperative work runs in short slices, one per turn of the event loop for all callers together,
// and other requests have precedence.
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { adaptiveBatches, yieldIfDue, yieldToEventLoop } from '../../../src/kernel/runtime/cooperative.ts'
import { countTurns } from '../../support/turns.ts'

/** The tests control the clock. */
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

describe('long work', () => {
  it('takes one piece in a turn of the event loop, however much of it there is', async () => {
    const seen: string[] = []
    let isOver = false
    const others = (async () => {
      while (!isOver) {
        seen.push('turn')
        await turn()
      }
    })()
    const work = async (name: string): Promise<void> => {
      for (let count = 0; count < 4; count++) {
        await yieldToEventLoop()
        seen.push(name)
      }
    }
    await Promise.all(['export', 'import', 'reader'].map(work))
    isOver = true
    await others
    expect(seen.filter((name) => name !== 'turn')).toHaveLength(12)
    expect(seen.filter((name, index) => name !== 'turn' && seen[index - 1] !== 'turn')).toEqual([])
    // The slices of different callers alternate.
    const first = seen.filter((name) => name !== 'turn').slice(0, 3)
    expect(new Set(first).size).toBe(3)
  })

  it('lets what was read between two pieces begin before the next', async () => {
    const seen: string[] = []
    const next = yieldToEventLoop().then(() => seen.push('piece'))
    await turn()
    // The request arrives in the turn in which the slice waits, and begins in the next turn.
    setImmediate(() => seen.push('request'))
    await next
    expect(seen).toEqual(['request', 'piece'])
  })

  it('goes on in its turn as long as the piece is short', async () => {
    const turns = countTurns()
    try {
      await yieldToEventLoop()
      const before = turns.count
      for (let step = 0; step < 100; step++) await yieldIfDue()
      expect(turns.count).toBe(before)
      vi.advanceTimersByTime(5)
      await yieldIfDue()
      expect(turns.count).toBeGreaterThan(before)
    } finally {
      turns.stop()
    }
  })
})

describe('portions', () => {
  const sizeAfter = async (some: ReturnType<typeof adaptiveBatches>, msEach: number): Promise<number> => {
    for (let step = 0; step < 40; step++) {
      const size = some.size()
      await some.run(size, async () => void vi.advanceTimersByTime(size * msEach))
    }
    return some.size()
  }

  it('become as large as fits into a piece, within their bounds, whichever way the work changes', async () => {
    const some = adaptiveBatches(10, 200, 50)
    expect(await sizeAfter(some, 1)).toBe(10)
    expect(await sizeAfter(some, 0.04)).toBeGreaterThan(40)
    expect(await sizeAfter(some, 0)).toBe(200)
    expect(await sizeAfter(some, 0.1)).toBeLessThan(30)
  })

  it('answer what the work answers, and fail as it fails', async () => {
    const some = adaptiveBatches(1, 2, 1)
    expect(await some.run(1, async () => 'done')).toBe('done')
    await expect(some.run(1, () => Promise.reject(new Error('No.')))).rejects.toThrow('No.')
  })
})
