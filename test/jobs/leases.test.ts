// Who does the work: one worker a job, whoever is left when another is gone, and one scheduler among all processes. The jobs here are
// the test's own, on a whole server.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { claim, isDead, ownName, renew } from '../../src/jobs/claims.ts'
import { hold } from '../../src/jobs/lock.ts'
import { defineJob, enqueue, type Later, type Running } from '../../src/jobs/queue.ts'
import { createScheduler } from '../../src/jobs/scheduler.ts'
import { createWorker, type Worker } from '../../src/jobs/worker.ts'
import { type Context, systemContext } from '../../src/kernel/context.ts'
import { transaction } from '../../src/kernel/write.ts'
import { startServer, type TestServer } from '../support/app.ts'

interface Payload {
  name: string
}

let server: TestServer
let worker: Worker
let ran: string[]
let behave: (payload: Payload, job: Running, ctx: Context) => Promise<Later | undefined>
let buried: string[]

const note = defineJob<Payload>({
  kind: 'test.note',
  atOnce: 3,
  retryAfter: [60, 300],
  run: async (ctx, payload, job) => {
    ran.push(payload.name)
    return behave(payload, job, ctx)
  },
  buried: async (_ctx, { name }, cause) => void buried.push(`${name}: ${cause}`),
})

beforeEach(async () => {
  server = await startServer()
  worker = createWorker(server.app.services, [note], [])
  ran = []
  buried = []
  behave = async () => undefined
})
afterEach(() => server.close())

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
    behave = async (_payload, job) => {
      expect(job.attempt).toBe(2)
      return undefined
    }
    await worker.drain()
    expect(ran).toEqual(['a'])
    expect(mine && (await renew(ctx(), mine))).toBe(false)
  })

  it('of a process of this machine that is gone is taken over at once', async () => {
    const [host] = ownName().split(':')
    await enqueue(ctx(), note, { name: 'a' })
    await claim(ctx(), `${host}:999999999:gone`, free, 10)
    await worker.drain()
    expect(ran).toEqual(['a'])
    expect(isDead(`${host}:${process.ppid}:alive`, 'x')).toBe(false)
    expect(isDead('elsewhere:999999999:x', 'x')).toBe(false)
  })

  it('lost again and again buries the job rather than run it for ever', async () => {
    await enqueue(ctx(), note, { name: 'a' })
    for (let crash = 0; crash < 3; crash++) {
      expect(await claim(ctx(), 'elsewhere:1:x', free, 10)).toHaveLength(1)
      server.clock.advanceMs(61_000)
      await server.store.db
        .updateTable('jobs')
        .set({ state: 'waiting', locked_by: null, last_error: 'The worker ended while it ran.' })
        .execute()
    }
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
    behave = (_payload, job) =>
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

describe('the scheduler', () => {
  const daily = defineJob<{ due: string }>({ kind: 'test.daily', run: async (_ctx, { due }) => void ran.push(due) })
  const schedules = [{ name: 'daily', at: '00:05', job: daily }]
  const scheduler = () => createScheduler(server.app.services, schedules)
  const work = () => createWorker(server.app.services, [daily], []).drain()

  it('does not run what was due before the installation, and then each day once', async () => {
    const one = scheduler()
    await one.tick()
    await work()
    expect(ran).toEqual([])
    for (const time of [
      '2026-03-02T00:04:00Z',
      '2026-03-02T00:05:00Z',
      '2026-03-02T00:06:00Z',
      '2026-03-02T12:00:00Z',
    ]) {
      server.clock.set(time)
      await one.tick()
      await work()
    }
    expect(ran).toEqual(['2026-03-02T00:05:00.000Z'])
  })

  it('catches up once what was missed for days', async () => {
    await scheduler().tick()
    server.clock.set('2026-03-09T10:00:00Z')
    const restarted = scheduler()
    await restarted.tick()
    await restarted.tick()
    await work()
    expect(ran).toEqual(['2026-03-09T00:05:00.000Z'])
  })

  it('is one of several processes; another takes over when it is gone', async () => {
    await hold(ctx(), 'scheduler', 'elsewhere:1:x', 90_000)
    expect(await scheduler().tick()).toBe(false)
    server.clock.advanceMs(91_000)
    expect(await scheduler().tick()).toBe(true)
    expect(await createScheduler(server.app.services, schedules).tick()).toBe(true)
  })
})
