// Processes with different clocks: leases, locks and schedules use the clock of the database
// server, so a process with a wrong clock does not take jobs or locks of other processes.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { openStore, type Store } from '../../db/store.ts'
import { claim, releaseExpired } from '../../src/jobs/leases.ts'
import { acquireLock } from '../../src/jobs/locks.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { type Clock, sharedClock } from '../../src/kernel/runtime/clock.ts'
import { seededImage } from '../support/app.ts'
import { openImage } from '../support/engine.ts'
import { useNewServers } from '../support/using.ts'

let others: Store[] = []
const server = useNewServers({ open: async () => openImage(await seededImage()) })
afterEach(async () => {
  vi.restoreAllMocks()
  for (const store of others) await store.close()
  others = []
})

const realNow = Date.now

/** Runs the work while the clock of this process is `ms` milliseconds ahead. */
async function ahead<T>(ms: number, work: () => Promise<T> | T): Promise<T> {
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + ms)
  try {
    return await work()
  } finally {
    vi.restoreAllMocks()
  }
}

async function process(
  ms: number,
  isSynchronized = true,
): Promise<{ clock: Clock; context: () => ReturnType<typeof systemContext> }> {
  const store = await ahead(ms, () => openStore(server.store.url, { postgres: { max: 2 } }))
  others.push(store)
  store.beforeGroupCommit(async () => undefined)
  if (isSynchronized) await ahead(ms, () => store.synchronizeClock())
  const clock = sharedClock(store)
  return { clock, context: () => systemContext({ ...server.app.services, store, clock }, 'api') }
}

async function addJob(): Promise<void> {
  const at = '2026-01-01T00:00:00.000Z'
  const job = { kind: 'test', payload: '{}', state: 'waiting', run_at: at, created_at: at, updated_at: at } as const
  await server.store.db.insertInto('jobs').values(job).execute()
}

const stateOf = async (): Promise<string | undefined> =>
  (await server.store.db.selectFrom('jobs').select('state').executeTakeFirst())?.state

describe('a process whose clock is wrong', () => {
  it.each([-90_000, 61_000, 3_600_000])('by %s ms has the time of the database server', async (ms) => {
    const { clock } = await process(ms)
    const [there, here] = [await ahead(ms, () => clock.now().getTime()), realNow()]
    expect(Math.abs(there - here)).toBeLessThan(10_000)
  })

  it.each([-90_000, 90_000])('keeps that time when its own clock is set by %s ms', async (ms) => {
    const { clock } = await process(0)
    const [there, here] = [await ahead(ms, () => clock.now().getTime()), realNow()]
    expect(Math.abs(there - here)).toBeLessThan(10_000)
  })

  it('leaves a job that another process runs, and a lock that it holds', async () => {
    const [right, wrong] = [await process(0), await process(90_000)]
    await addJob()
    const claimed = await claim(right.context(), 'right', new Map([['test', 1]]), 1)
    expect(claimed).toHaveLength(1)
    expect(await acquireLock(right.context(), 'one', 'right', 60_000)).toBe(true)
    await ahead(90_000, async () => {
      await releaseExpired(wrong.context())
      expect(await stateOf()).toBe('running')
      expect(await acquireLock(wrong.context(), 'one', 'wrong', 60_000)).toBe(false)
    })
  })

  it('would take both by its own clock', async () => {
    const [right, wrong] = [await process(0), await process(90_000, false)]
    await addJob()
    await claim(right.context(), 'right', new Map([['test', 1]]), 1)
    await acquireLock(right.context(), 'one', 'right', 60_000)
    await ahead(90_000, async () => {
      await releaseExpired(wrong.context())
      expect(await stateOf()).toBe('waiting')
      expect(await acquireLock(wrong.context(), 'one', 'wrong', 60_000)).toBe(true)
    })
  })
})
