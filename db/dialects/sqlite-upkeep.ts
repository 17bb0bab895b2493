// What SQLite leaves for later while it writes, and would do in the middle of somebody's commit: its log of changes goes into the file,
// and the words of full text are put together. A thread does it, with a connection of its own, while this one goes on reading.

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { LOG_PAGES, LONGEST_LOG } from './sqlite-connection.ts'
import { threadOf } from './sqlite-thread.ts'
import type { Exclusive } from './sqlite-turns.ts'

export interface Upkeep {
  /** To be called after a commit, outside of transactions: asks whether much was written, and lets what is due go on by itself. */
  look(): void
  /** Waits for what is under way, and does what is left. Never rejects: what cannot be done now is done next time. */
  tend(): Promise<void>
  /** Waits for what is under way; no more is begun. */
  close(): Promise<void>
}

interface Wanted {
  /** Nobody else writes until it is given back. Rejects once the database is being closed. */
  alone: () => Promise<Exclusive>
  /** Ends what is read, so that the log can begin anew. */
  refresh: () => void
  /** Statements that each put together a little, and change at least two rows unless nothing is left to do. */
  merges: readonly string[]
}

/** After so many commits there is something to put together: each leaves a piece, and full text takes sixteen at once (sqlite-fulltext.ts). */
const fewestCommits = 16
/** A log that long begins anew only when all of it is in the file, for which those who write have to wait. */
const mostPages = 3 * LOG_PAGES

const sizeOf = (file: string): number => statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0

const checkpoint = 'pragma wal_checkpoint(passive)'

export function upkeepOf(connection: Database.Database, file: string, { alone, refresh, merges }: Wanted): Upkeep {
  const log = connection.prepare<[], [number, number, number]>('pragma wal_checkpoint(noop)').raw()
  const thread = threadOf(file)
  let underWay: Promise<void> | null = null
  let isClosed = false
  let commits = 0
  /** Pages that stay in the log for now, because somebody reads an old state. */
  let left = 0

  function openPages(): number {
    try {
      const [, pages, done] = log.get() ?? [0, 0, 0]
      return pages - done
    } catch {
      // The disk fails, which whoever writes will meet.
      return 0
    }
  }

  async function held<T>(work: () => Promise<T>): Promise<T> {
    const { giveBack } = await alone()
    try {
      refresh()
      return await work()
    } finally {
      giveBack()
    }
  }

  const empty = async (): Promise<{ pages: number; open: number }> => {
    const [, pages = 0, done = 0] = (await thread.run(checkpoint)).row
    return { pages, open: pages - done }
  }

  async function round(isAsked: boolean): Promise<void> {
    // Those who write need not wait for this.
    let state = await empty()
    if (isAsked || commits >= fewestCommits) {
      commits = 0
      for (const merge of merges) while (!isClosed && (await held(() => thread.run(merge))).changed >= 2);
      state = await empty()
    }
    if (state.pages >= mostPages) state = await held(empty)
    if (sizeOf(file) > LONGEST_LOG && state.open === 0) await held(() => thread.run('pragma wal_checkpoint(truncate)'))
    left = state.open
  }

  function begin(isAsked: boolean): Promise<void> {
    underWay = round(isAsked)
      // Somebody else has the database, or the disk is full: whoever writes will meet it.
      .catch(() => {
        // Not with every commit from now on.
        left = Number.POSITIVE_INFINITY
      })
      .finally(() => {
        underWay = null
      })
    return underWay
  }

  return {
    look() {
      commits++
      if (isClosed || underWay) return
      const open = openPages()
      left = Math.min(left, open)
      if (open - left >= LOG_PAGES) void begin(false)
    },
    async tend() {
      while (underWay) await underWay
      if (!isClosed && (commits >= fewestCommits || left > 0 || sizeOf(file) > LONGEST_LOG)) await begin(true)
    },
    async close() {
      isClosed = true
      while (underWay) await underWay
      await thread.end()
    },
  }
}
