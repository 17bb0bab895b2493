// The admission queue alone: order, limits, and its estimate. test/timing/overload.test.ts tests a
// server under overload.
import { describe, expect, it } from 'vitest'
import { createAdmissionQueue, defaultLimits } from '../../../src/http/load-shedding/admission-queue.ts'

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** Returns a queue whose clock advances only by the durations of started requests. */
function queueOf(limits: Partial<typeof defaultLimits> = {}) {
  let nowMs = 0
  const stopwatch = () => {
    const start = nowMs
    return () => nowMs - start
  }
  const queue = createAdmissionQueue({ limits: { ...defaultLimits, ...limits }, stopwatch })
  let started = 0
  /** Admits a request whose handler takes this long. Returns false when it is refused. */
  const admit = (tookMs: number): boolean => {
    const release = queue.admit(() => {
      started++
      nowMs += tookMs
      if (release) release()
    })
    return release !== false
  }
  const drain = async (): Promise<number> => {
    let turns = 0
    for (let before = -1; before !== started; turns++) {
      before = started
      await nextTurn()
    }
    return turns - 1
  }
  const spend = (ms: number): void => {
    nowMs += ms
  }
  return { queue, admit, drain, spend, started: () => started }
}

describe('the admission queue', () => {
  it('starts requests in their order, so many at once, and the next when one is released', async () => {
    const queue = createAdmissionQueue({ limits: { ...defaultLimits, inFlight: 1 } })
    const started: string[] = []
    const admit = (name: string) => queue.admit(() => void started.push(name))
    const releases = ['first', 'second', 'third'].map(admit)
    const release = (index: number): void => {
      const each = releases[index]
      if (each) each()
    }
    expect(started).toEqual([])
    await nextTurn()
    await nextTurn()
    expect(started).toEqual(['first'])
    // A queued request may be released before its start. Repeated releases count once.
    release(1)
    release(0)
    release(0)
    await nextTurn()
    await nextTurn()
    expect(started).toEqual(['first', 'third'])
  })

  it('knows whether a queued request writes', async () => {
    const queue = createAdmissionQueue()
    queue.admit(() => undefined)
    expect(queue.hasQueuedWrites()).toBe(false)
    queue.admit(() => undefined, true)
    const release = queue.admit(() => undefined, true)
    expect(queue.hasQueuedWrites()).toBe(true)
    if (release) release()
    await nextTurn()
    await nextTurn()
    expect(queue.hasQueuedWrites()).toBe(false)
  })

  it('leaves places to requests that read, however long those take that write', async () => {
    const queue = createAdmissionQueue({ limits: { ...defaultLimits, writes: 2, inFlight: 3 } })
    const releases = [1, 2, 3].map(() => queue.admit(() => undefined, true))
    expect(releases.map((each) => each !== false)).toEqual([true, true, false])
    let hasRead = false
    queue.admit(() => {
      hasRead = true
    })
    await nextTurn()
    await nextTurn()
    expect(hasRead).toBe(true)
    if (releases[0]) releases[0]()
    expect(queue.admit(() => undefined, true)).not.toBe(false)
  })

  it('refuses a client that fills the queue, and none of the others', async () => {
    const { queue, admit, drain } = queueOf({ burstWaitMs: 25, waitMs: 25, alwaysQueued: 4, queued: 40 })
    for (let round = 0; round < 100; round++) {
      for (let count = 0; count < 4; count++) admit(20)
      await drain()
    }
    const ask = (client: string): boolean => queue.admit(() => undefined, false, client) !== false
    let admitted = 0
    while (admitted < 1000 && ask('one')) admitted++
    expect(admitted).toBeLessThan(10)
    expect([queue.isFull('one'), queue.isFull('other'), queue.hasQueued('one')]).toEqual([true, false, true])
    expect([ask('other'), ask('other'), ask('other'), ask('third')]).toEqual([true, true, false, true])
    // The bound of memory is for all clients together.
    expect(Array.from({ length: 100 }, (_, at) => ask(`client ${at}`)).filter(Boolean).length).toBeLessThan(40)
  })

  it('admits as many as it can start within the wait: many quick ones, few slow ones', async () => {
    for (const [tookMs, fewest, most] of [
      [0.2, 120, 130],
      [1, 25, 30],
      [20, 4, 4],
    ] as const) {
      const { admit, drain } = queueOf({ burstWaitMs: 25, waitMs: 25, alwaysQueued: 4 })
      // The estimate of the time per request converges.
      for (let round = 0; round < 100; round++) {
        for (let count = 0; count < 20; count++) admit(tookMs)
        await drain()
      }
      let admitted = 0
      while (admitted < 1000 && admit(tookMs)) admitted++
      expect([tookMs, admitted >= fewest, admitted <= most]).toEqual([tookMs, true, true])
    }
  })

  it('lets a burst wait longer than requests under overload, which lasts until a second without a refusal', async () => {
    const { admit, drain, spend } = queueOf({ burstWaitMs: 100, waitMs: 25, alwaysQueued: 4 })
    const admitAll = async (): Promise<number> => {
      let admitted = 0
      while (admitted < 1000 && admit(1)) admitted++
      await drain()
      return admitted
    }
    for (let round = 0; round < 100; round++) {
      for (let count = 0; count < 20; count++) admit(1)
      await drain()
    }
    const burst = await admitAll()
    expect([burst >= 90, burst <= 110]).toEqual([true, true])
    // The queue is empty, but the overload continues.
    const overloaded = await admitAll()
    expect([overloaded >= 20, overloaded <= 30]).toEqual([true, true])
    spend(1_001)
    expect(await admitAll()).toBeGreaterThan(60)
  })

  it('counts what else a turn does: refusing and reading are part of the wait', async () => {
    const { admit, spend, started } = queueOf({ burstWaitMs: 25, waitMs: 25, alwaysQueued: 1, inFlight: 1000 })
    for (let turn = 0; turn < 200; turn++) {
      while (admit(1));
      const before = started()
      spend(10)
      while (started() === before) await nextTurn()
    }
    let queued = 0
    while (queued < 100 && admit(1)) queued++
    // Four requests of 1 ms start in a turn of 14 ms, which is 3.5 ms for each. So a wait of 25 ms
    // allows seven or eight requests.
    expect(queued).toBeLessThanOrEqual(8)
  })

  it('forgets a stall: one slow turn closes it for a few requests only', async () => {
    const { admit, drain } = queueOf({ burstWaitMs: 25, waitMs: 25, alwaysQueued: 4 })
    for (let round = 0; round < 50; round++) {
      for (let count = 0; count < 20; count++) admit(0.2)
      await drain()
    }
    admit(500)
    admit(0.2)
    await drain()
    for (let count = 0; count < 4; count++) expect(admit(0.2)).toBe(true)
    await drain()
    for (let round = 0; round < 30; round++) {
      for (let count = 0; count < 4; count++) admit(0.2)
      await drain()
    }
    for (let count = 0; count < 60; count++) expect(admit(0.2)).toBe(true)
  })

  it('holds no more than its bound, however quick they are', () => {
    const { queue, admit } = queueOf()
    for (let count = 0; count < defaultLimits.queued; count++) expect(admit(0)).toBe(true)
    expect([queue.isFull(), admit(0)]).toEqual([true, false])
  })
})
