// Durable jobs: enqueued in a transaction, run at least once, in order within a sequence, retried,
// given up, and never run by two workers at once. Uses test jobs on a whole server.
import { describe, expect, it } from 'vitest'
import { BuryJob, enqueue, expedite, releaseDedupeKey } from '../../src/jobs/queue.ts'
import { type Context, systemContext } from '../../src/kernel/context.ts'
import { transaction } from '../../src/kernel/write/write.ts'
import { countTurns } from '../support/turns.ts'
import { useNewServers } from '../support/using.ts'
import { acting, buried, note, ran, useNotes } from './notes.ts'

const server = useNewServers()
const worker = useNotes(server)

const ctx = (): Context => systemContext(server.app.services, 'api')
const jobs = () => server.store.db.selectFrom('jobs').selectAll().orderBy('id').execute()
const states = async () => (await jobs()).map(({ state }) => state)

describe('a job', () => {
  it('exists when the write that needs it does, and not otherwise', async () => {
    await expect(
      transaction(ctx(), async (ctx) => {
        await enqueue(ctx, note, { name: 'a' })
        throw new Error('the write fails')
      }),
    ).rejects.toThrow('the write fails')
    expect(await jobs()).toEqual([])
    await transaction({ ...ctx(), dryRun: true }, (ctx) => enqueue(ctx, note, { name: 'b' }))
    expect(await jobs()).toEqual([])
    await transaction(ctx(), (ctx) => enqueue(ctx, note, { name: 'c' }))
    await worker.drain()
    expect(ran).toEqual(['c'])
    expect(await jobs()).toEqual([])
  })

  it('waits for its time', async () => {
    await enqueue(ctx(), note, { name: 'a' }, { runAt: new Date(server.clock.now().getTime() + 1000) })
    await worker.drain()
    expect(ran).toEqual([])
    server.clock.advanceMs(1000)
    await worker.drain()
    expect(ran).toEqual(['a'])
  })

  it('is not made twice while one with its key is unfinished, and is afterwards', async () => {
    expect(await enqueue(ctx(), note, { name: 'a' }, { key: 'k' })).toEqual(expect.any(Number))
    expect(await enqueue(ctx(), note, { name: 'b' }, { key: 'k' })).toBeNull()
    await worker.drain()
    expect(await enqueue(ctx(), note, { name: 'c' }, { key: 'k' })).toEqual(expect.any(Number))
    await worker.drain()
    expect(ran).toEqual(['a', 'c'])
  })

  it('is tried again when it fails, later each time and varied by a tenth, and then buried with a reason', async () => {
    acting.behave = async () => {
      throw new Error('The mail\nserver is away.')
    }
    await enqueue(ctx(), note, { name: 'a' })
    const delays: number[] = []
    for (let attempt = 1; attempt <= 2; attempt++) {
      await worker.drain()
      const [job] = await jobs()
      expect(job).toMatchObject({ state: 'waiting', attempts: attempt, last_error: 'The mail server is away.' })
      delays.push((Date.parse(job?.run_at ?? '') - server.clock.now().getTime()) / 1000)
      await worker.drain()
      expect(ran.length).toBe(attempt)
      server.clock.set(job?.run_at ?? '')
    }
    expect(delays[0]).toBeGreaterThanOrEqual(54)
    expect(delays[0]).toBeLessThanOrEqual(66)
    expect(delays[1]).toBeGreaterThanOrEqual(270)
    expect(delays[1]).toBeLessThanOrEqual(330)
    await worker.drain()
    expect(await states()).toEqual(['buried'])
    expect(buried).toEqual(['a: The mail server is away.'])
    server.clock.advanceMs(86_400_000)
    await worker.drain()
    expect(ran.length).toBe(3)
  })

  it('is buried at once when it says that it can never succeed', async () => {
    acting.behave = async () => {
      throw new BuryJob('No such person.')
    }
    await enqueue(ctx(), note, { name: 'a' }, { key: 'k' })
    await worker.drain()
    expect(await states()).toEqual(['buried'])
    expect(ran).toEqual(['a'])
    expect(await enqueue(ctx(), note, { name: 'b' }, { key: 'k' })).not.toBeNull()
  })

  it('may ask to run again without having failed', async () => {
    acting.behave = async (_payload, job) => {
      expect(job).toMatchObject({ attempt: 1, isLast: false })
      return ran.length < 4 ? { runAgainAt: new Date(server.clock.now().getTime() + 1000) } : undefined
    }
    await enqueue(ctx(), note, { name: 'a' })
    for (let times = 0; times < 5; times++) {
      await worker.drain()
      server.clock.advanceMs(1000)
    }
    expect(ran.length).toBe(4)
    expect(await jobs()).toEqual([])
  })
})

describe('a job that asks to run again', () => {
  it('begins its tries anew: failures before are forgotten', async () => {
    const attempts: number[] = []
    acting.behave = async (_payload, job) => {
      attempts.push(job.attempt)
      if (attempts.length === 2) return { runAgainAt: server.clock.now() }
      throw new Error('away')
    }
    await enqueue(ctx(), note, { name: 'a' })
    for (let times = 0; times < 4; times++) {
      await worker.drain()
      server.clock.advanceMs(3_600_000)
    }
    expect(attempts).toEqual([1, 2, 1, 2, 3])
    expect(await states()).toEqual(['buried'])
  })
})

describe('jobs that wait for a time', () => {
  it('can be hurried by their keys, and no others', async () => {
    const runAt = new Date(server.clock.now().getTime() + 60_000)
    for (const key of ['a', 'b']) await enqueue(ctx(), note, { name: key }, { key, runAt })
    await expedite(ctx(), ['a', 'unknown'])
    await worker.drain()
    expect(ran).toEqual(['a'])
    await expedite(ctx(), ['b'], new Date(runAt.getTime() + 60_000))
    expect(await jobs()).toMatchObject([{ run_at: runAt.toISOString() }])
  })

  it('let their key go when they want to be followed by another', async () => {
    const id = await enqueue(ctx(), note, { name: 'a' }, { key: 'k' })
    await releaseDedupeKey(ctx(), id ?? 0)
    expect(await enqueue(ctx(), note, { name: 'b' }, { key: 'k' })).not.toBeNull()
  })
})

describe('a backlog', () => {
  it('lets others have their turn between its jobs', async () => {
    await transaction(ctx(), async (ctx) => {
      for (let count = 0; count < 60; count++) await enqueue(ctx, note, { name: `${count}` })
    })
    const turns = countTurns()
    await worker.drain()
    turns.stop()
    expect(ran.length).toBe(60)
    // Three jobs run concurrently.
    expect(turns.count).toBeGreaterThanOrEqual(20)
  })
})

describe('a sequence', () => {
  it('runs strictly one after another, in the order of enqueuing, also past a failure; others do not wait', async () => {
    let fails = 1
    let atOnce = 0
    acting.behave = async ({ name }) => {
      expect(++atOnce).toBe(1)
      await new Promise((resolve) => setImmediate(resolve))
      atOnce--
      if (name === 'a' && fails-- > 0) throw new Error('not yet')
      return undefined
    }
    for (const name of ['a', 'b', 'c']) await enqueue(ctx(), note, { name }, { sequence: 's' })
    await worker.drain()
    expect(ran).toEqual(['a'])
    await enqueue(ctx(), note, { name: 'x' }, { sequence: 'other' })
    await worker.drain()
    expect(ran).toEqual(['a', 'x'])
    server.clock.advanceMs(70_000)
    await worker.drain()
    expect(ran).toEqual(['a', 'x', 'a', 'b', 'c'])
  })

  it('goes on behind one that is buried', async () => {
    acting.behave = async ({ name }) => {
      if (name === 'a') throw new BuryJob('never')
      return undefined
    }
    for (const name of ['a', 'b']) await enqueue(ctx(), note, { name }, { sequence: 's' })
    await worker.drain()
    expect(ran).toEqual(['a', 'b'])
    expect(await states()).toEqual(['buried'])
  })
})
