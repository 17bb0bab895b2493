// Passes events to their consumers, claims due jobs and runs the jobs. Each kind of
// job limits how many of its jobs run at once. A commit of this process wakes the worker. A poll
// once a second finds the commits of other processes.
import { type Context, type Services, systemContext } from '../kernel/context.ts'
import { newOwnerId } from '../kernel/runtime/process-identity.ts'
import { createEventDispatcher, type EventConsumer, type EventDispatcher } from './event-consumers.ts'
import { createJobRunner, type JobRunner } from './job-runner.ts'
import { claim, type JobRow, type Lanes, releaseExpired } from './leases.ts'
import { acquireLock } from './locks.ts'
import type { AnyJob } from './queue.ts'
import { createStorageRetry, type StorageRetry } from './storage-retry.ts'

export interface Worker {
  start(): void
  /**
   * Claims no more jobs, aborts the running jobs, and waits up to `graceMs` milliseconds for their
   * end. Another worker continues with the remaining jobs.
   */
  stop(graceMs?: number): Promise<void>
  /** Tells the worker that events or jobs may be due. */
  wake(): void
  /**
   * Dispatches events and runs jobs, at most `atOnce` at a time, until nothing is due. For tests
   * and commands.
   */
  drain(atOnce?: number): Promise<void>
}

const pollMs = 1000
const wakeMs = 10
const presenceMs = 20_000
const maxClaimed = 50

export const createWorker = (
  services: Services,
  jobs: readonly AnyJob[],
  consumers: readonly EventConsumer[],
): Worker => new JobWorker(services, jobs, consumers)

class JobWorker implements Worker {
  readonly #services: Services
  readonly #jobs: readonly AnyJob[]
  readonly #ownerId = newOwnerId()
  readonly #retry: StorageRetry
  readonly #dispatcher: EventDispatcher
  readonly #runner: JobRunner
  readonly #running = new Map<number, { row: JobRow; done: Promise<void>; stop: AbortController }>()
  #pollTimer: NodeJS.Timeout | undefined
  #presenceTimer: NodeJS.Timeout | undefined
  #isOn = false
  #isStopping = false
  #isPolling = false
  #isWoken = false
  #isPollScheduled = false
  /** The promise of the running poll, or of the last poll. */
  #polling: Promise<void> = Promise.resolve()

  constructor(services: Services, jobs: readonly AnyJob[], consumers: readonly EventConsumer[]) {
    this.#services = services
    this.#jobs = jobs
    const isStopping = (): boolean => this.#isStopping
    this.#retry = createStorageRetry(services, isStopping)
    this.#dispatcher = createEventDispatcher(services, consumers)
    this.#runner = createJobRunner({ services, jobs, retry: this.#retry, isStopping })
  }

  start(): void {
    this.#isOn = true
    this.#isStopping = false
    void this.#attempt('start', () => this.#releaseExpired(true)).then(() => this.#poll())
    void this.#notePresence()
    this.#presenceTimer = setInterval(() => void this.#notePresence(), presenceMs)
  }

  async stop(graceMs = 5000): Promise<void> {
    this.#isOn = false
    this.#isStopping = true
    clearTimeout(this.#pollTimer)
    clearInterval(this.#presenceTimer)
    for (const { stop } of this.#running.values()) stop.abort()
    const grace = new Promise<void>((resolve) => setTimeout(resolve, graceMs).unref())
    await Promise.race([this.#polling.then(() => this.#allDone()), grace])
  }

  wake(): void {
    this.#isWoken = true
    // The poll starts a little later, so that one poll serves several commits.
    if (!this.#isOn || this.#isPolling || this.#isPollScheduled) return
    this.#isPollScheduled = true
    setTimeout(() => {
      this.#isPollScheduled = false
      void this.#poll()
    }, wakeMs)
  }

  async drain(atOnce = maxClaimed): Promise<void> {
    await this.#releaseExpired(true)
    for (;;) {
      const found = await this.#round(atOnce)
      if (this.#running.size > 0) await this.#allDone()
      else if (!found) return
    }
  }

  #context(): Context {
    return systemContext(this.#services, 'api')
  }

  #runningIds(): ReadonlySet<number> {
    return new Set(this.#running.keys())
  }

  #releaseExpired(isThorough = false): Promise<void> {
    return releaseExpired(this.#context(), { running: this.#runningIds(), isThorough })
  }

  #allDone(): Promise<unknown> {
    return Promise.all([...this.#running.values()].map(({ done }) => done))
  }

  #poll(): Promise<void> {
    if (this.#isOn && !this.#isPolling) this.#polling = this.#pollUntilIdle()
    return this.#polling
  }

  async #pollUntilIdle(): Promise<void> {
    this.#isPolling = true
    clearTimeout(this.#pollTimer)
    try {
      do {
        this.#isWoken = false
        while (this.#isOn && (await this.#round())) this.#isWoken = false
      } while (this.#isOn && this.#isWoken)
    } finally {
      this.#isPolling = false
      if (this.#isOn) this.#pollTimer = setTimeout(() => void this.#poll(), pollMs)
    }
  }

  /** Dispatches events and claims jobs once. Returns whether there was something to do. */
  async #round(most = maxClaimed): Promise<boolean> {
    let found = false
    if (await this.#attempt('events', () => this.#dispatcher.dispatch())) found = true
    const claimed = await this.#attempt('claim', async () => {
      await this.#releaseExpired()
      if (this.#isStopping) return []
      return claim(this.#context(), this.#ownerId, this.#freeSlots(), most, this.#runningIds(), this.#lanes())
    })
    for (const row of claimed || []) this.#launch(row)
    return found || (claimed || []).length > 0
  }

  /** Returns how many more jobs of each kind may run. */
  #freeSlots(): Map<string, number> {
    const running = this.#countRunning(({ kind }) => kind)
    return new Map(
      this.#jobs.map(({ kind, concurrency, isReady }) => [
        kind,
        isReady(this.#services) ? concurrency - (running.get(kind) ?? 0) : 0,
      ]),
    )
  }

  #lanes(): Lanes {
    const running = this.#countRunning((row) => this.#laneOf(row)?.name)
    const lanes = [...this.#running.values()].flatMap(({ row }) => this.#laneOf(row) ?? [])
    const full = lanes.filter(({ name, atOnce }) => (running.get(name) ?? 0) >= atOnce)
    return { of: (row) => this.#laneOf(row), running, full: [...new Set(full.map(({ name }) => name))] }
  }

  #laneOf({ kind, sequence }: Pick<JobRow, 'kind' | 'sequence'>): ReturnType<Lanes['of']> {
    const lanes = this.#jobs.find((job) => job.kind === kind)?.lanes
    return lanes === undefined || sequence === null ? null : { name: lanes.of(sequence), atOnce: lanes.atOnce }
  }

  #countRunning(groupOf: (row: JobRow) => string | undefined): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { row } of this.#running.values()) {
      const group = groupOf(row)
      if (group !== undefined) counts.set(group, (counts.get(group) ?? 0) + 1)
    }
    return counts
  }

  #launch(row: JobRow): void {
    const stop = new AbortController()
    // The worker may have been stopped during the claim.
    if (this.#isStopping) stop.abort()
    const done = this.#runner.run(row, stop).finally(() => {
      this.#running.delete(row.id)
      this.wake()
    })
    this.#running.set(row.id, { row, done, stop })
  }

  async #attempt<T>(what: string, work: () => Promise<T>): Promise<T | false> {
    try {
      return await work()
    } catch (cause) {
      if (!this.#retry.isTransient(cause))
        this.#services.log.error({ err: cause, what }, 'The worker failed to look for work.')
      return false
    }
  }

  /** Renews the shared lock that shows `accord doctor` that a worker is alive. */
  #notePresence(): Promise<unknown> {
    return this.#attempt('presence', () => acquireLock(this.#context(), 'worker', this.#ownerId, 3 * presenceMs, true))
  }
}
