// Leases of jobs: only one worker runs a job, and another worker takes over after a crash. Uses
// test jobs on a whole server.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { maxCrashes } from '../../src/jobs/job-runner.ts'
import { claim, finish, releaseExpired, renew } from '../../src/jobs/leases.ts'
import { enqueue } from '../../src/jobs/queue.ts'
import { createWorker } from '../../src/jobs/worker.ts'
import { type Context, systemContext } from '../../src/kernel/context.ts'
import { isProcessGone, nameOf, newOwnerId, self } from '../../src/kernel/runtime/process-identity.ts'
import { transaction } from '../../src/kernel/write/write.ts'
import { given } from '../support/given.ts'
import { useNewServers } from '../support/using.ts'
import { acting, buried, note, ran, useNotes } from './notes.ts'

const server = useNewServers()
const worker = useNotes(server)

const ctx = (): Context => systemContext(server.app.services, 'api')
const jobs = () => server.store.db.selectFrom('jobs').selectAll().orderBy('id').execute()

describe('a lease', () => {
  const free = new Map([['test.note', 10]])

  it('keeps a job from every other worker until it ends, and then the other has it', async () => {
    await enqueue(ctx(), note, { name: 'a' })
    const [mine] = await claim(ctx(), 'elsewhere:1:x', free, 10)
    expect(mine).toMatchObject({ state: 'running', attempts: 1 })
    await worker.drain()
    expect(ran).toEqual([])
    server.clock.advanceMs(59_000)
    expect(mine && (await renew(ctx(), mine))).toBe(true)
    server.clock.advanceMs(59_000)
    await worker.drain()
    expect(ran).toEqual([])
    server.clock.advanceMs(2_000)
    acting.behave = async (_payload, job) => {
      // The interrupted attempt does not count as a failure.
      expect(job.attempt).toBe(1)
      return undefined
    }
    await worker.drain()
    expect(ran).toEqual(['a'])
    expect(mine && (await renew(ctx(), mine))).toBe(false)
  })

  it('of a process of this machine that is gone is taken over at once', async () => {
    const killed = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'])
    await once(killed, 'spawn')
    const { pid = 0 } = killed
    const owner = nameOf({ ...self, pid, began: '' }, 'gone')
    await enqueue(ctx(), note, { name: 'a' })
    await claim(ctx(), owner, free, 10)
    await worker.drain()
    expect(ran).toEqual([])
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    await worker.drain()
    expect(ran).toEqual(['a'])
  })

  it('of a process whose number another has by now is taken over as well', () => {
    expect(isProcessGone(newOwnerId())).toBe(false)
    if (process.platform === 'linux') expect(isProcessGone(nameOf({ ...self, began: '1' }, 'x'))).toBe(true)
  })

  it('of a process that cannot be seen from here is left to end by itself', async () => {
    // Processes of another machine, and of another container on the same host, which cannot be
    // checked from here.
    const others = [
      { ...self, host: 'elsewhere', pid: 999_999_999 },
      { ...self, place: 'another boot/4026531836', began: '1' },
      { ...self, place: 'another boot/4026531836', pid: 999_999_999 },
    ]
    for (const owner of others) expect(isProcessGone(nameOf(owner, 'x'))).toBe(false)
    for (const owner of ['', 'x', `${self.host}:1:x`]) expect(isProcessGone(owner)).toBe(false)
    await enqueue(ctx(), note, { name: 'a' })
    await claim(ctx(), nameOf({ ...self, place: 'another', began: '1' }, 'x'), free, 10)
    await worker.drain()
    expect(ran).toEqual([])
  })

  it('that ends under a worker that still runs the job does not let it run a second time there', async () => {
    let end = (): void => undefined
    acting.behave = () =>
      new Promise((resolve) => {
        end = () => resolve(undefined)
      })
    await enqueue(ctx(), note, { name: 'a' })
    const drained = worker.drain()
    while (ran.length === 0) await new Promise((resolve) => setImmediate(resolve))
    acting.behave = async () => undefined
    // Simulates that the machine slept.
    server.clock.advanceMs(61_000)
    worker.start()
    worker.wake()
    await enqueue(ctx(), note, { name: 'b' })
    while (ran.length === 1) await new Promise((resolve) => setImmediate(resolve))
    expect(ran).toEqual(['a', 'b'])
    expect((await jobs())[0]).toMatchObject({ state: 'running', attempts: 1, crashes: 0 })
    end()
    await drained
    await worker.stop()
  })

  it('is of one claim: what the same worker claimed before has no say in it any more', async () => {
    await enqueue(ctx(), note, { name: 'a' })
    const [first] = await claim(ctx(), 'elsewhere:1:x', free, 10)
    server.clock.advanceMs(61_000)
    await releaseExpired(ctx())
    const [second] = await claim(ctx(), 'elsewhere:1:x', free, 10)
    if (!first || !second) throw new Error('not claimed')
    expect([await renew(ctx(), first), await renew(ctx(), second)]).toEqual([false, true])
    await finish(ctx(), first)
    expect(await jobs()).toMatchObject([{ state: 'running' }])
    await finish(ctx(), second)
    expect(await jobs()).toEqual([])
  })

  it('lost again and again buries the job rather than run it for ever, and only then', async () => {
    await enqueue(ctx(), note, { name: 'a' })
    const crash = async (): Promise<void> => {
      expect(await claim(ctx(), 'elsewhere:1:x', free, 10)).toHaveLength(1)
      server.clock.advanceMs(61_000)
      await releaseExpired(ctx())
    }
    for (let crashes = 1; crashes < maxCrashes; crashes++) await crash()
    expect(await jobs()).toMatchObject([{ state: 'waiting', attempts: 0, crashes: maxCrashes - 1 }])
    // A job that ends with an error does not count as a crash.
    acting.behave = async () => {
      throw new Error('away')
    }
    await worker.drain()
    expect(await jobs()).toMatchObject([{ state: 'waiting', attempts: 1, crashes: 0 }])
    server.clock.advanceMs(70_000)
    for (let crashes = 0; crashes < maxCrashes; crashes++) await crash()
    ran.length = 0
    await worker.drain()
    expect(ran).toEqual([])
    expect(buried).toEqual(['a: The worker ended while it ran.'])
  })

  it('is shared by two workers so that each job runs once', async () => {
    const other = createWorker(server.app.services, [note], [])
    const names = Array.from({ length: 40 }, (_, index) => `job ${index}`)
    await transaction(ctx(), async (ctx) => {
      for (const name of names) await enqueue(ctx, note, { name })
    })
    await Promise.all([worker.drain(), other.drain()])
    expect(ran.toSorted()).toEqual(names.toSorted())
  })
})

describe('stopping', () => {
  it('tells what runs, and leaves it for the next worker without counting the try', async () => {
    let began = (): void => undefined
    const isRunning = new Promise<void>((resolve) => {
      began = resolve
    })
    acting.behave = (_payload, job) =>
      new Promise((_resolve, reject) => {
        job.signal.addEventListener('abort', () => reject(new Error('stopped')))
        began()
      })
    await enqueue(ctx(), note, { name: 'a' })
    worker.start()
    await isRunning
    await worker.stop()
    expect(await jobs()).toMatchObject([{ state: 'waiting', attempts: 0, last_error: null }])
  })
})

describe('a worker', () => {
  it('leaves nothing behind on what lasts as long as itself, however many jobs it runs', async () => {
    const signals = new Set<AbortSignal>()
    acting.behave = async (_payload, job) => {
      signals.add(job.signal)
      return undefined
    }
    for (let count = 0; count < 5; count++) await enqueue(ctx(), note, { name: `${count}` })
    await worker.drain()
    await worker.stop()
    // The signals of finished jobs are not aborted.
    expect([signals.size, [...signals].filter(({ aborted }) => aborted).length]).toEqual([5, 0])
  })

  it('that is told to stop waits for the look that is under way, and claims nothing more', async () => {
    await given(server.admin).tag()
    let goOn = (): void => undefined
    let isLooking = false
    const hears = (): Promise<readonly string[] | null> =>
      new Promise((resolve) => {
        isLooking = true
        goOn = () => resolve([])
      })
    const worker = createWorker(
      server.app.services,
      [note],
      [{ name: 'webhooks', entityTypes: hears, consume: async (_, { length }) => length }],
    )
    worker.start()
    while (!isLooking) await new Promise((resolve) => setTimeout(resolve, 1))
    await enqueue(ctx(), note, { name: 'a' })
    let hasStopped = false
    const stopped = worker.stop().then(() => {
      hasStopped = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(hasStopped).toBe(false)
    goOn()
    await stopped
    expect(await jobs()).toMatchObject([{ state: 'waiting', attempts: 0 }])
  })
})
