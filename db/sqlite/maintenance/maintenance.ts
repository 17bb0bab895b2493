// What SQLite leaves for later while it writes, and would do in the middle of somebody's commit: its log of changes goes into the file,
// and the words of full text are put together. A thread does it, with a connection of its own, while this one goes on reading.

import { setTimeout as sleep } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { checkpointPages, maxWalBytes, walBytes } from '../connection.ts'
import type { ExclusiveConnection } from '../group-commit/types.ts'
import { createMaintenanceThread } from './maintenance-thread.ts'

export interface Maintenance {
  /**
   * To be called after a commit, which has left so many pieces of full text, outside of transactions: asks whether much was written, and
   * lets what is due go on by itself.
   */
  afterCommit(pieces: number): void
  /** Waits for what is under way, and does what is left. Never rejects: what cannot be done now is done next time. */
  run(): Promise<void>
  /** Waits for the step that is under way; no more is begun. */
  close(): Promise<void>
}

interface Wanted {
  /** Nobody else of this process writes until it is given back. Rejects once the database is being closed. */
  alone: () => Promise<ExclusiveConnection>
  /** Statements that each put together a little, and change at least two rows unless nothing is left to do. */
  merges: readonly string[]
  /** A round has ended, with null or with what made it fail. */
  tended: (error: unknown) => void
}

/** Fewer pieces are not worth it: full text takes sixteen of a size at once (full-text.ts). */
const minPieces = 16
/** With so many it is begun, however short the log is. */
const manyPieces = 64
/** After a failure so many commits go by before it is tried again. */
const patience = 64
/** While much is written there may always be more to put together; the log, which is looked at after that, must not wait for ever. */
const maxSteps = 50
/** A log that long begins anew only when all of it is in the file, for which those who write have to wait. */
const maxPages = 3 * checkpointPages
/** Between two steps. Another process that waits for its turn to write looks for it ten times a second. */
const pauseMs = 120

/** It changes nothing. */
const asking = 'pragma wal_checkpoint(noop)'

interface Log {
  pages: number
  /** Those that are not in the file. */
  open: number
}

export function createMaintenance(
  connection: Database.Database,
  file: string,
  { alone, merges, tended }: Wanted,
): Maintenance {
  const own = connection.prepare<[], number[]>(asking).raw()
  const thread = createMaintenanceThread(file)
  const closing = new AbortController()
  let underWay: Promise<void> | null = null
  let isComing = false
  /** Pieces that were left since all were put together. */
  let pieces = 0
  /** Pages that stay in the log for now, because somebody reads an old state. */
  let left = 0
  let commits = 0
  let notBefore = 0
  let hasFailed = false

  const logOf = ([busy, pages = 0, done = 0]: number[]): Log => {
    // Somebody else is doing it.
    if (busy === 1) throw new Database.SqliteError('The log is being emptied.', 'SQLITE_BUSY')
    return { pages, open: pages - done }
  }

  /** Null when it cannot be said: in a transaction, or when the disk fails, which whoever writes will meet. */
  function openPages(): number | null {
    try {
      return logOf(own.get() ?? []).open
    } catch {
      return null
    }
  }

  const isTooLong = (): boolean => walBytes(file) > maxWalBytes

  async function held<T>(work: () => Promise<T>): Promise<T> {
    const { release } = await alone()
    try {
      return await work()
    } finally {
      release()
    }
  }

  const logAfter = async (text: string): Promise<Log> => logOf((await thread.run(text)).row)
  const empty = (): Promise<Log> => logAfter('pragma wal_checkpoint(passive)')

  /** Those who write need not wait for it, unless the log is long. */
  async function emptied(): Promise<Log> {
    const log = await empty()
    return log.pages < maxPages ? log : held(empty)
  }

  /** What it writes goes through the log as well. */
  async function putTogether(): Promise<void> {
    const counted = pieces
    let unfinished = merges
    for (let steps = 0; unfinished.length > 0 && steps < maxSteps; steps++) {
      const changing: string[] = []
      for (const merge of unfinished) {
        const { changed } = await held(() => thread.run(merge))
        closing.signal.throwIfAborted()
        if (changed >= 2) changing.push(merge)
      }
      unfinished = changing
      if (unfinished.length === 0) break
      if ((await logAfter(asking)).open >= checkpointPages) await emptied()
      await sleep(pauseMs, undefined, { signal: closing.signal, ref: false })
    }
    if (unfinished.length === 0) pieces -= counted
  }

  async function round(): Promise<void> {
    left = (await emptied()).open
    if (pieces >= minPieces) {
      await putTogether()
      left = (await emptied()).open
    }
    if (isTooLong() && left === 0) await held(() => thread.run('pragma wal_checkpoint(truncate)'))
  }

  function begin(): Promise<void> {
    underWay = round()
      .then(
        () => {
          hasFailed = false
          tended(null)
        },
        (error: unknown) => {
          // Another process has the database, the disk fails or is full, or the thread has died.
          notBefore = commits + patience
          hasFailed = true
          if (!closing.signal.aborted) tended(error)
        },
      )
      .finally(() => {
        underWay = null
        thread.idle()
      })
    return underWay
  }

  const isFree = (): boolean => underWay === null && !closing.signal.aborted

  function isDue(): boolean {
    const open = openPages()
    if (open !== null) left = Math.min(left, open)
    return (open !== null && open - left >= checkpointPages) || pieces >= manyPieces
  }

  /** Whoever waits for the commit is told first. */
  function beginSoon(): void {
    isComing = true
    setImmediate(() => {
      isComing = false
      if (isFree()) void begin()
    })
  }

  return {
    afterCommit(more) {
      commits++
      pieces += more
      if (isFree() && !isComing && commits >= notBefore && isDue()) beginSoon()
    },
    async run() {
      while (underWay) await underWay
      if (isFree() && (hasFailed || pieces >= minPieces || left > 0 || isTooLong() || isDue())) await begin()
    },
    async close() {
      closing.abort()
      while (underWay) await underWay
      await thread.end()
    },
  }
}

/** Of a database in memory, which has no log and no other connection: at once, by whoever has left many pieces. */
export function createInMemoryMaintenance(connection: Database.Database, merges: readonly string[]): Maintenance {
  const total = connection.prepare<[], number>('select total_changes()').pluck()
  let pieces = 0

  function changedBy(merge: string): number {
    const before = total.get() ?? 0
    connection.prepare(merge).run()
    return (total.get() ?? 0) - before
  }

  return {
    afterCommit(more) {
      pieces += more
      if (pieces < manyPieces) return
      pieces = 0
      for (const merge of merges) while (changedBy(merge) >= 2);
    },
    run: async () => undefined,
    close: async () => undefined,
  }
}
