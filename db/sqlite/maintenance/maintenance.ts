// Runs the work that SQLite would otherwise do inside a commit: WAL checkpoints and merges of
// full-text segments. A thread with its own connection does it, while the process goes on reading.

import { setTimeout as sleep } from 'node:timers/promises'
import type Database from 'better-sqlite3'
import { checkpointPages, maxWalBytes, walBytes } from '../connection.ts'
import { Sqlite } from '../driver.ts'
import type { ExclusiveConnection } from '../group-commit/types.ts'
import { createMaintenanceThread, type MaintenanceThread } from './maintenance-thread.ts'

export interface Maintenance {
  /**
   * To be called after each commit, with the number of segments it added. Begins a round in the
   * background when one is due.
   */
  afterCommit(segments: number): void
  /**
   * Waits for the round that runs, and runs another one if work is left. Never rejects; a failed
   * round is repeated later.
   */
  run(): Promise<void>
  /** Waits for the current step. No further step begins. */
  close(): Promise<void>
}

export interface MaintenanceOptions {
  /**
   * Keeps the writes of this process waiting until `release`. Rejects once the database is being
   * closed.
   */
  readonly exclusive: () => Promise<ExclusiveConnection>
  /**
   * One statement for each index that merges a little; it changes at least two rows unless nothing
   * is left to merge.
   */
  readonly merges: readonly string[]
  /** Receives null after a successful round, or the error. */
  readonly onRound: (error: unknown) => void
}

/** Fewer segments are not merged: FTS5 takes sixteen of one level at once (full-text-tables.ts). */
const minSegments = 16
/** This many segments start a round, however short the log is. */
const maxSegments = 64
/** After a failed round, commits wait this long for the next one. */
const commitsAfterFailure = 64
/** Under constant writes merging never ends, and the log must not wait for it. */
const maxMergeSteps = 50
/**
 * A log this long can restart only when all of it is in the file, so writes wait for the
 * checkpoint.
 */
const maxPages = 3 * checkpointPages
/**
 * Between two merges. A process that waits for the write lock tries for it at least ten times a
 * second.
 */
const pauseMs = 120

/** Reports the length of the log and checkpoints nothing. */
const logStatus = 'pragma wal_checkpoint(noop)'

interface LogStatus {
  pages: number
  /** Pages that are not in the database file yet. */
  open: number
}

function logStatusOf([busy, pages = 0, done = 0]: number[]): LogStatus {
  // Another connection is running a checkpoint.
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
  /** Segments added since the indexes were last merged completely. */
  #segments = 0
  /** Pages that the last checkpoint had to leave in the log, because a reader still needs them. */
  #leftPages = 0
  #commits = 0
  /** No round begins before this many commits. */
  #notBefore = 0
  #hasFailed = false

  constructor(connection: Database.Database, file: string, options: MaintenanceOptions) {
    this.#file = file
    this.#options = options
    this.#thread = createMaintenanceThread(file)
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
    await this.#thread.end()
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
   * Null inside a transaction, or when the disk fails; the next write then meets the same error.
   */
  #openPages(): number | null {
    try {
      return logStatusOf(this.#ownStatus.get() ?? []).open
    } catch {
      return null
    }
  }

  /**
   * In the next turn of the event loop, so that the callers who wait for the commit are answered
   * first.
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

  /** Writes go on during the checkpoint unless the log is long. */
  async #emptyLog(): Promise<LogStatus> {
    const log = await this.#checkpoint()
    return log.pages < maxPages ? log : this.#whileExclusive(() => this.#checkpoint())
  }

  /** Merging writes to the log too, so the log is emptied in between. */
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
 * For a database in memory, which has no log and one connection: merges inside the commit that adds
 * the last segment.
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
