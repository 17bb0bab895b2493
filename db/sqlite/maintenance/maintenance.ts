// Runs the work that SQLite would otherwise do inside a commit: WAL checkpoints and merges of
// full-text segments. A thread does it on its own connection, so it does not block the event loop.

import { setTimeout as sleep } from 'node:timers/promises'
import type Database from 'better-sqlite3'
import { checkpointPages, maxWalBytes, walBytes } from '../connection.ts'
import { Sqlite } from '../driver.ts'
import type { ExclusiveConnection } from '../group-commit/types.ts'
import type { MaintenanceThread } from './maintenance-thread.ts'

export interface Maintenance {
  /**
   * Must be called after each commit, with the number of full-text segments that it added. Begins a
   * round of maintenance in the background when work is due.
   */
  afterCommit(segments: number): void
  /**
   * Waits for the running round, then runs another round if work is left. Never rejects. A failed
   * round is repeated later.
   */
  run(): Promise<void>
  /** Ends maintenance after the current step. */
  close(): Promise<void>
}

export interface MaintenanceOptions {
  readonly thread: MaintenanceThread
  /**
   * Makes the writes of this process wait until `release`. Rejects when the database is closing.
   */
  readonly exclusive: () => Promise<ExclusiveConnection>
  /**
   * The merge statements, one for each full-text index. Each run merges a few segments. A run that
   * changes at most one row means that nothing is left to merge.
   */
  readonly merges: readonly string[]
  /** Runs after each round, with null or with the error of the round. */
  readonly onRound: (error: unknown) => void
}

/**
 * The minimum number of segments for a merge. FTS5 merges sixteen segments of one level at once
 * (full-text-tables.ts).
 */
const minSegments = 16
/** The number of segments that starts a round, even if the log is short. */
const maxSegments = 64
/** The number of commits after a failed round before another commit can begin a round. */
const commitsAfterFailure = 64
/**
 * The maximum number of merge steps in a round. Under constant writes, merging would never end, and
 * the checkpoint after it would never run.
 */
const maxMergeSteps = 50
/**
 * When the log has this many pages, writes of this process wait during the checkpoint. The
 * checkpoint can then copy all pages, and the log restarts.
 */
const maxPages = 3 * checkpointPages
/**
 * The pause between two merge steps in milliseconds. A process that waits for the write lock tries
 * at least every 10 ms, so it gets the lock in this pause.
 */
const pauseMs = 120

/** Returns the length of the log without a checkpoint. */
const logStatus = 'pragma wal_checkpoint(noop)'

interface LogStatus {
  pages: number
  /** The number of log pages that are not in the database file yet. */
  open: number
}

function logStatusOf([busy, pages = 0, done = 0]: number[]): LogStatus {
  // `busy` is 1 while another connection runs a checkpoint.
  if (busy === 1) throw new Sqlite.SqliteError('The log is being emptied.', 'SQLITE_BUSY')
  return { pages, open: pages - done }
}

export const createMaintenance = (
  connection: Database.Database,
  file: string,
  options: MaintenanceOptions,
): Maintenance => new ThreadedMaintenance(connection, file, options)

class ThreadedMaintenance implements Maintenance {
  readonly #file: string
  readonly #options: MaintenanceOptions
  readonly #thread: MaintenanceThread
  readonly #ownStatus: Database.Statement<[], number[]>
  readonly #closing = new AbortController()
  #round: Promise<void> | null = null
  #isRoundScheduled = false
  /** The number of segments that were added since the last complete merge. */
  #segments = 0
  /**
   * The number of log pages that the last checkpoint could not copy, because a reader uses older
   * data.
   */
  #leftPages = 0
  #commits = 0
  /** The value of `#commits` at which `afterCommit` may begin the next round. */
  #notBefore = 0
  #hasFailed = false

  constructor(connection: Database.Database, file: string, options: MaintenanceOptions) {
    this.#file = file
    this.#options = options
    this.#thread = options.thread
    this.#ownStatus = connection.prepare<[], number[]>(logStatus).raw()
  }

  afterCommit(segments: number): void {
    this.#commits++
    this.#segments += segments
    if (this.#isFree() && !this.#isRoundScheduled && this.#commits >= this.#notBefore && this.#isDue())
      this.#scheduleRound()
  }

  async run(): Promise<void> {
    while (this.#round) await this.#round
    const isWorkLeft = this.#hasFailed || this.#segments >= minSegments || this.#leftPages > 0
    if (this.#isFree() && (isWorkLeft || this.#isTooLong() || this.#isDue())) await this.#beginRound()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    while (this.#round) await this.#round
  }

  #isFree(): boolean {
    return this.#round === null && !this.#closing.signal.aborted
  }

  #isTooLong(): boolean {
    return walBytes(this.#file) > maxWalBytes
  }

  #isDue(): boolean {
    const open = this.#openPages()
    if (open !== null) this.#leftPages = Math.min(this.#leftPages, open)
    return (open !== null && open - this.#leftPages >= checkpointPages) || this.#segments >= maxSegments
  }

  /**
   * Returns the number of log pages that are not in the database file yet, or null inside a
   * transaction and on a disk error, which the next write reports.
   */
  #openPages(): number | null {
    try {
      return logStatusOf(this.#ownStatus.get() ?? []).open
    } catch {
      return null
    }
  }

  /**
   * Begins a round in the next turn of the event loop, after the callers of the commit have
   * continued.
   */
  #scheduleRound(): void {
    this.#isRoundScheduled = true
    setImmediate(() => {
      this.#isRoundScheduled = false
      if (this.#isFree()) void this.#beginRound()
    })
  }

  #beginRound(): Promise<void> {
    this.#round = this.#checkpointAndMerge()
      .then(
        () => {
          this.#hasFailed = false
          this.#options.onRound(null)
        },
        (error: unknown) => {
          // Another process has the lock, the disk fails or is full, or the thread has died.
          this.#notBefore = this.#commits + commitsAfterFailure
          this.#hasFailed = true
          if (!this.#closing.signal.aborted) this.#options.onRound(error)
        },
      )
      .finally(() => {
        this.#round = null
        this.#thread.idle()
      })
    return this.#round
  }

  async #checkpointAndMerge(): Promise<void> {
    this.#leftPages = (await this.#emptyLog()).open
    if (this.#segments >= minSegments) {
      await this.#mergeSegments()
      this.#leftPages = (await this.#emptyLog()).open
    }
    if (this.#isTooLong() && this.#leftPages === 0)
      await this.#whileExclusive(() => this.#thread.run('pragma wal_checkpoint(truncate)'))
  }

  async #logStatusAfter(pragma: string): Promise<LogStatus> {
    return logStatusOf((await this.#thread.run(pragma)).row)
  }

  #checkpoint(): Promise<LogStatus> {
    return this.#logStatusAfter('pragma wal_checkpoint(passive)')
  }

  /** Runs a checkpoint. When the log is long, runs it again while writes of this process wait. */
  async #emptyLog(): Promise<LogStatus> {
    const log = await this.#checkpoint()
    return log.pages < maxPages ? log : this.#whileExclusive(() => this.#checkpoint())
  }

  /**
   * Merges the full-text segments in steps. Merging also writes to the log, so the log is emptied
   * between steps.
   */
  async #mergeSegments(): Promise<void> {
    const counted = this.#segments
    let unfinished = this.#options.merges
    for (let steps = 0; unfinished.length > 0 && steps < maxMergeSteps; steps++) {
      const changing: string[] = []
      for (const merge of unfinished) {
        const { changed } = await this.#whileExclusive(() => this.#thread.run(merge))
        this.#closing.signal.throwIfAborted()
        if (changed >= 2) changing.push(merge)
      }
      unfinished = changing
      if (unfinished.length === 0) break
      if ((await this.#logStatusAfter(logStatus)).open >= checkpointPages) await this.#emptyLog()
      await sleep(pauseMs, undefined, { signal: this.#closing.signal, ref: false })
    }
    if (unfinished.length === 0) this.#segments -= counted
  }

  async #whileExclusive<T>(work: () => Promise<T>): Promise<T> {
    const { release } = await this.#options.exclusive()
    try {
      return await work()
    } finally {
      release()
    }
  }
}

/**
 * Returns the maintenance of a database in memory, which has no log and only one connection. Merges
 * after the commit that reaches `maxSegments`.
 */
export function createInMemoryMaintenance(connection: Database.Database, merges: readonly string[]): Maintenance {
  const totalChanges = connection.prepare<[], number>('select total_changes()').pluck()
  let segments = 0

  function changesOf(merge: string): number {
    const before = totalChanges.get() ?? 0
    connection.prepare(merge).run()
    return (totalChanges.get() ?? 0) - before
  }

  return {
    afterCommit(added) {
      segments += added
      if (segments < maxSegments) return
      segments = 0
      for (const merge of merges) while (changesOf(merge) >= 2);
    },
    run: async () => undefined,
    close: async () => undefined,
  }
}
