// What has been answered is let go of at once. An engine looks through what is new again and again, and through all of its memory hardly
// ever: what is still held by anything old when it looks is kept until then, and costs as much as the work itself.
import { GCProfiler } from 'node:v8'
import { describe, expect, it } from 'vitest'
import { together } from '../../src/kernel/together.ts'
import { createTurns } from '../../src/kernel/turns.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Bytes that were still held when the engine looked through what was new, the second time they were looked at. */
async function keptBy(work: () => Promise<void>): Promise<number> {
  const profiler = new GCProfiler()
  profiler.start()
  await work()
  const { statistics } = profiler.stop()
  const usedBy = (heap: (typeof statistics)[number]['beforeGC']): number =>
    heap.heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space')?.spaceUsedSize ?? 0
  const looks = statistics.filter(({ gcType }) => gcType === 'Scavenge')
  expect(looks.length).toBeGreaterThan(2)
  return looks.reduce((sum, { beforeGC, afterGC }) => sum + usedBy(afterGC) - usedBy(beforeGC), 0)
}

const each = 8
const rounds = 10_000
/** 2 KB, and more with what is made of them. */
const payload = (): number[] => Array.from({ length: 250 }, (_, index) => index)
const all = each * rounds * 2_000
/** Of all of it: 1 % was found, and 67 % where the line was a set. */
const share = 1 / 8

/** Eight at a time come, with their payload, and are done with in the same turn of the event loop, or the one after it. */
async function come(take: (done: () => void) => void): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    let left = each
    for (let count = 0; count < each; count++) {
      const held = payload()
      take(() => {
        left -= held.length > 0 ? 1 : 0
      })
    }
    while (left > 0) await turn()
  }
}

describe('in memory', () => {
  it('nobody is kept who has had their turn', async () => {
    const turns = createTurns()
    const kept = await keptBy(() =>
      come((done) => {
        const leave = turns.enter(() => {
          done()
          if (leave) leave()
        })
      }),
    )
    expect(kept).toBeLessThan(all * share)
  })

  it('no answer is kept that was sent', async () => {
    const send = together()
    expect(await keptBy(() => come(send))).toBeLessThan(all * share)
  })
})
