// What SQLite leaves for later while it writes, and would do in the middle of somebody's commit: its log of changes goes into the file,
// and the words of full text are put together. A thread does it, with a connection of its own, while this one goes on reading.

import { statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type Database from 'better-sqlite3'
import { LOG_PAGES, LONGEST_LOG } from './sqlite-connection.ts'
import { inPlace, threadOf } from './sqlite-thread.ts'
import type { Exclusive } from './sqlite-turns.ts'

export interface Upkeep {
  /** To be called after a commit, outside of transactions: asks whether much was written, and lets what is due go on by itself. */
  look(): void
  /** Waits for what is under way, and does what is left. Never rejects: what cannot be done now is done next time. */
  tend(): Promise<void>
  /** Waits for the step that is under way; no more is begun. */
  close(): Promise<void>
}

interface Wanted {
  /** Nobody else of this process writes until it is given back. Rejects once the database is being closed. */
  alone: () => Promise<Exclusive>
  /** Statements that each put together a little, and change at least two rows unless nothing is left to do. */
  merges: readonly string[]
}

/** Fewer commits have left too little to put together (sqlite-fulltext.ts), … */
const fewestCommits = 16
/** … and so many have left much, however few pages they took. */
const mostCommits = 64
/** A log that long begins anew only when all of it is in the file, for which those who write have to wait. */
const mostPages = 3 * LOG_PAGES
/** Between two steps. Another process that waits for its turn to write looks for it ten times a second. */
const pauseMs = 120

/** It changes nothing. */
const asking = 'pragma wal_checkpoint(noop)'

interface Log {
  pages: number
  /** Those that are not in the file. */
  open: number
}

/** Of a database in memory, which has no `file` and no log, the words are put together in its one connection. */
export function upkeepOf(connection: Database.Database, file: string | null, { alone, merges }: Wanted): Upkeep {
  const own = connection.prepare<[], number[]>(asking).raw()
  const thread = file === null ? inPlace(connection) : threadOf(file)
  const closing = new AbortController()
  let underWay: Promise<void> | null = null
  let commits = 0
  /** Pages that stay in the log for now, because somebody reads an old state. */
  let left = 0

  const logOf = ([busy, pages = 0, done = 0]: number[]): Log => {
    // Somebody else is doing it.
    if (busy === 1) throw new Error('The log is being emptied.')
    return { pages, open: pages - done }
  }

  function openPages(): number {
    try {
      return file === null ? 0 : logOf(own.get() ?? []).open
    } catch {
      // The disk fails, which whoever writes will meet.
      return 0
    }
  }

  function isTooLong(): boolean {
    try {
      return file !== null && (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > LONGEST_LOG
    } catch {
      return false
    }
  }

  async function held<T>(work: () => Promise<T>): Promise<T> {
    const { giveBack } = await alone()
    try {
      return await work()
    } finally {
      giveBack()
    }
  }

  const logAfter = async (text: string): Promise<Log> => logOf((await thread.run(text)).row)
  const empty = (): Promise<Log> => logAfter('pragma wal_checkpoint(passive)')

  /** Those who write need not wait for it, unless the log is long. */
  async function emptied(): Promise<Log> {
    const log = await empty()
    return log.pages < mostPages ? log : held(empty)
  }

  /** What it writes goes through the log as well. */
  async function putTogether(): Promise<void> {
    for (const merge of merges) {
      for (;;) {
        const { changed } = await held(() => thread.run(merge))
        if (changed < 2) break
        if (file === null) continue
        if ((await logAfter(asking)).open >= LOG_PAGES) await emptied()
        await sleep(pauseMs, undefined, { signal: closing.signal, ref: false })
      }
    }
  }

  async function round(): Promise<void> {
    if (file !== null) left = (await emptied()).open
    if (commits >= fewestCommits) {
      commits = 0
      await putTogether()
      if (file !== null) left = (await emptied()).open
    }
    if (isTooLong() && left === 0) await held(() => thread.run('pragma wal_checkpoint(truncate)'))
  }

  function begin(): Promise<void> {
    underWay = round()
      .catch(() => {
        // Another process has the database, or the disk is full, and whoever writes meets it too. Not again with every commit from now on.
        left = Number.POSITIVE_INFINITY
      })
      .finally(() => {
        underWay = null
        thread.rest()
      })
    return underWay
  }

  const isDue = (): boolean => {
    const open = openPages()
    left = Math.min(left, open)
    return open - left >= LOG_PAGES || commits >= mostCommits
  }

  const beginIf = (isWanted: () => boolean): Promise<void> | null =>
    underWay === null && !closing.signal.aborted && isWanted() ? begin() : null

  return {
    look() {
      commits++
      // Whoever waits for the commit is told first.
      if (underWay === null && isDue()) setImmediate(beginIf, isDue)
    },
    async tend() {
      while (underWay) await underWay
      await beginIf(() => isDue() || commits >= fewestCommits || left > 0 || isTooLong())
    },
    async close() {
      closing.abort()
      while (underWay) await underWay
      await thread.end()
    },
  }
}
