// Offloaded work: the number, time and memory of subprocesses are limited, callers take turns, and
// no process is left behind.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import {
  createFairPool,
  createOffload,
  type Offload,
  type OffloadLimits,
  programAt,
  type QueueLimits,
} from '../../../src/kernel/runtime/offload.ts'
import { fromSource } from '../../support/measuring.ts'
import type * as Misbehaving from '../../support/misbehaving.entry.ts'

const program = programAt<typeof Misbehaving>(import.meta.url, '../../support/misbehaving.entry')

let offload: Offload
afterEach(() => offload.close())
const begin = (limits: Partial<OffloadLimits> = {}): void => {
  // Long limits, because a busy machine starts processes slowly.
  offload = createOffload({ maxRunMs: 60_000, maxWaitMs: 60_000, ...limits })
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('a job', { timeout: 60_000 }, () => {
  it('runs in another process, which the next job finds ready; bytes come back as they are', async () => {
    begin()
    const { pid } = await offload.run(program, { sleepMs: 0 }, 1)
    expect(pid).not.toBe(process.pid)
    const again = await offload.run(program, { bytes: 300_000 }, 2)
    expect([again.pid, again.bytes?.length, again.bytes?.[299_999]]).toEqual([pid, 300_000, 7])
  })

  it('that throws says why, and the process goes on', async () => {
    begin()
    const { pid } = await offload.run(program, { sleepMs: 0 }, 1)
    await expect(offload.run(program, { fail: 'No such font.' }, 1)).rejects.toThrow('No such font.')
    expect((await offload.run(program, { sleepMs: 0 }, 1)).pid).toBe(pid)
  })

  it('that never ends is killed when its time is over, and the next one is done', async () => {
    begin({ maxRunMs: 3_000 })
    await expect(offload.run(program, { spin: true }, 1)).rejects.toMatchObject({ reason: 'timed_out' })
    await offload.close()
    begin()
    expect((await offload.run(program, { sleepMs: 0 }, 1)).pid).toBeGreaterThan(0)
  })

  it('that takes too much memory ends its process and no other one', async () => {
    begin({ maxHeapMiB: 64 })
    await expect(offload.run(program, { allocate: true }, 1)).rejects.toMatchObject({ reason: 'crashed' })
    expect((await offload.run(program, { sleepMs: 0 }, 1)).pid).toBeGreaterThan(0)
  })

  it('is rejected when all is closed, and no process is left', async () => {
    begin()
    const { pid } = await offload.run(program, { sleepMs: 0 }, 1)
    const ends = [offload.run(program, { spin: true }, 1), offload.run(program, { spin: true }, 1)].map((each) =>
      expect(each).rejects.toMatchObject({ name: 'OffloadError' }),
    )
    await new Promise((resolve) => setTimeout(resolve, 200))
    await offload.close()
    await Promise.all(ends)
    expect(isRunning(pid)).toBe(false)
    await expect(offload.run(program, { sleepMs: 0 }, 1)).rejects.toMatchObject({ reason: 'closed' })
  })
})

describe('a subprocess', { timeout: 60_000 }, () => {
  it('ends after a while without a job', async () => {
    begin({ idleMs: 200 })
    const { pid } = await offload.run(program, { sleepMs: 0 }, 1)
    await expect.poll(() => isRunning(pid)).toBe(false)
    expect((await offload.run(program, { sleepMs: 0 }, 1)).pid).not.toBe(pid)
  })

  it('keeps no process alive and ends with its parent', async () => {
    begin()
    const alone = fileURLToPath(new URL('../../support/offload.alone.ts', import.meta.url))
    const parent = spawn(process.execPath, [...fromSource, alone], { stdio: ['ignore', 'pipe', 'inherit'] })
    let pid = ''
    parent.stdout.on('data', (bytes: Buffer) => {
      pid += bytes
    })
    const code = await new Promise((resolve) => parent.once('close', resolve))
    expect([code, Number(pid) > 0]).toEqual([0, true])
    await expect.poll(() => isRunning(Number(pid))).toBe(false)
  })
})

describe('the queue', { timeout: 60_000 }, () => {
  const usual: QueueLimits = { maxRunning: 2, maxWaiting: 6, maxWaitingPerKey: 4, maxWaitMs: 60_000 }

  function queueOf(limits: Partial<QueueLimits> = {}) {
    const queue = createFairPool({ ...usual, ...limits })
    const begun: string[] = []
    const ends = new Map<string, () => void>()
    const come = (name: string): Promise<void> => {
      const entered = queue.enter(name.charAt(0)).then((leave) => {
        begun.push(name)
        ends.set(name, leave)
      })
      // Most jobs still wait when the test ends.
      entered.catch(() => undefined)
      return entered
    }
    const end = async (name: string): Promise<void> => {
      ends.get(name)?.()
      await new Promise((resolve) => setImmediate(resolve))
    }
    return { queue, begun, come, end }
  }

  it('runs one job of a caller at a time, and serves the callers by turns', async () => {
    begin()
    const { begun, come, end } = queueOf()
    for (const name of ['a1', 'a2', 'a3', 'b1', 'c1']) void come(name)
    await end('')
    expect(begun).toEqual(['a1', 'b1'])
    await end('a1')
    // a2 was queued before c1. The third job of caller a runs after c1.
    expect(begun.slice(2)).toEqual(['a2'])
    await end('a2')
    expect(begun.slice(3)).toEqual(['c1'])
    await end('b1')
    expect(begun.slice(4)).toEqual(['a3'])
  })

  it('refuses the fifth waiting job of one caller, and every job when it is full; a job that ends makes room', async () => {
    begin()
    const { come, begun, end } = queueOf()
    for (const name of ['a1', 'b1', 'a2', 'a3', 'a4', 'a5']) void come(name)
    await expect(come('a6')).rejects.toThrow('caller_busy')
    for (const name of ['c1', 'd1']) void come(name)
    await expect(come('e1')).rejects.toThrow('queue_full')
    await end('')
    await end('b1')
    await Promise.race([come('e1'), end('')])
    expect(begun).toEqual(['a1', 'b1', 'c1'])
  })

  it('lets no caller wait for longer than the limit, and refuses all when it is closed', async () => {
    begin()
    const { queue, come, begun, end } = queueOf({ maxRunning: 1, maxWaitMs: 50 })
    await come('a1')
    await expect(come('b1')).rejects.toThrow('waited_too_long')
    const last = expect(come('c1')).rejects.toThrow('closed')
    queue.close()
    await last
    await end('a1')
    expect(begun).toEqual(['a1'])
  })
})
