// The scheduler: only one process runs it, and it enqueues a due job once, even if several due
// times were missed.
import { beforeEach, describe, expect, it } from 'vitest'
import { acquireLock } from '../../src/jobs/locks.ts'
import { defineJob, enqueue } from '../../src/jobs/queue.ts'
import { createScheduler } from '../../src/jobs/scheduler.ts'
import { createWorker } from '../../src/jobs/worker.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { useNewServers } from '../support/using.ts'

let ran: string[]
const server = useNewServers()
beforeEach(() => {
  ran = []
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

  it('goes on each day after a clock was ten years ahead and was set back, and so do the jobs of that time', async () => {
    const one = scheduler()
    await one.tick()
    server.clock.set('2036-03-01T09:30:00Z')
    await one.tick()
    await work()
    expect(ran.splice(0)).toEqual(['2036-03-01T00:05:00.000Z'])
    const ctx = systemContext(server.app.services, 'api')
    await enqueue(ctx, daily, { due: 'left from then' })
    await enqueue(ctx, daily, { due: 'an hour later' }, { runAt: new Date('2036-03-01T10:30:00Z') })

    server.clock.set('2026-03-01T09:40:00Z')
    await one.tick()
    await work()
    expect(ran.splice(0)).toEqual(['left from then'])
    server.clock.set('2026-03-01T10:41:00Z')
    await work()
    expect(ran.splice(0)).toEqual(['an hour later'])
    server.clock.set('2026-03-02T00:05:00Z')
    await one.tick()
    await work()
    expect(ran).toEqual(['2026-03-02T00:05:00.000Z'])
  })

  it('ends the lease that a dead worker holds until the year to which the clock was set', async () => {
    const one = scheduler()
    await one.tick()
    const ctx = systemContext(server.app.services, 'api')
    const id = await enqueue(ctx, daily, { due: 'of a dead worker' })
    const held = { state: 'running' as const, locked_by: 'elsewhere:1:x', locked_until: '2036-03-01T09:31:00.000Z' }
    await server.store.db.updateTable('jobs').set(held).where('id', '=', id).execute()
    server.clock.advanceMs(-1_000)
    await one.tick()
    server.clock.advanceMs(62_000)
    await work()
    expect(ran).toEqual(['of a dead worker'])
  })

  it('is one of several processes; another takes over when it is gone', async () => {
    await acquireLock(systemContext(server.app.services, 'api'), 'scheduler', 'elsewhere:1:x', 90_000)
    expect(await scheduler().tick()).toBe(false)
    server.clock.advanceMs(91_000)
    const next = scheduler()
    expect([await next.tick(), await scheduler().tick()]).toEqual([true, false])
    await next.stop()
    expect(await scheduler().tick()).toBe(true)
  })
})
