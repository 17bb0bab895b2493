// Brings what was committed to the disk without holding up the event loop. A commit of the connection that writes ends in the log (WAL)
// and is not synced by SQLite (`synchronous = NORMAL`). `fdatasync` runs on a thread of libuv, and nothing is answered before it has
// returned. The order of writes stays SQLite's: each frame of the log carries a checksum over all before it, and a checkpoint syncs the
// log before it touches the database file.

import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import { createMaintenanceThread } from '../maintenance/maintenance-thread.ts'

/** It is committed, and may not survive a power cut. */
export class UnconfirmedCommitError extends Error {}

export interface WalSync {
  /** To be called with each commit that has written. */
  markDirty(): void
  /** Settles once all that was committed until now is on the disk. Null when it is there already. Rejects with `NotOnDisk`. */
  whenDurable(): Promise<void> | null
  /**
   * Null unless the next transaction would begin the log again, for which SQLite syncs the header of the log within the commit, and the
   * disk is slow: then a thread begins it. To be asked before a transaction begins. Never rejects.
   */
  prepareLog(): Promise<void> | null
  close(): Promise<void>
}

interface Told {
  /** A disk that takes longer to sync is slow. */
  slowMs: number
  /** The disk did not confirm a sync. */
  onFailure: (error: UnconfirmedCommitError) => void
}

export function createWalSync(connection: Database.Database, file: string, { slowMs, onFailure }: Told): WalSync {
  const log = connection.prepare<[], number[]>('pragma wal_checkpoint(noop)').raw()
  const thread = createMaintenanceThread(file)
  let handle: Promise<FileHandle> | null = null
  let running: Promise<void> | null = null
  let next: Promise<void> | null = null
  // The process that wrote what is in the log may have been killed before it synced.
  let isDirty = true
  let isBroken = false
  let isSlow = false

  async function sync(): Promise<void> {
    const since = performance.now()
    try {
      if (isBroken) isBroken = !(await repair())
      else await (await opened()).datasync()
    } catch (cause) {
      isBroken = true
      // A commit can be read before its sync, so replies that depend on it wait for the disk as well.
      isDirty = true
      const error = new UnconfirmedCommitError('The disk did not confirm what was committed.', { cause })
      onFailure(error)
      throw error
    } finally {
      isSlow = performance.now() - since > slowMs
    }
  }

  /** Opened once it is there. */
  async function opened(): Promise<FileHandle> {
    handle ??= openLog(file)
    try {
      return await handle
    } catch (error) {
      handle = null
      throw error
    }
  }

  /**
   * After a failed sync the system may have dropped pages that were never written, and a further sync would not say so. All of the log
   * comes into the database file instead, and both are synced. Answers whether the log begins anew: while somebody reads it, commits are
   * appended, and a power cut would lose those behind a page that was dropped.
   */
  async function repair(): Promise<boolean> {
    const [busy, pages = -1, done] = (await thread.run('pragma wal_checkpoint(truncate)')).row
    thread.idle()
    if (pages < 0 || pages !== done) throw new Error('The log cannot come into the database at the moment.')
    return busy === 0
  }

  function begin(): Promise<void> {
    isDirty = false
    running = sync().finally(() => {
      running = null
    })
    return running
  }

  /** The page that holds the version is written again as it is. */
  async function beginLog(): Promise<void> {
    try {
      const [version] = (await thread.run('pragma user_version')).row
      await thread.run(`pragma user_version = ${version ?? 0}`)
    } catch {
      // Another process writes, or the disk fails. The transaction that comes next meets it too.
    } finally {
      thread.idle()
    }
  }

  function isLogDone(): boolean {
    const [, pages = 0, done = 0] = log.get() ?? []
    return pages <= done
  }

  return {
    markDirty() {
      isDirty = true
    },
    whenDurable() {
      // Between the end of one sync and the beginning of the next there is none under way.
      if (next !== null) return next
      if (running === null) return isDirty ? begin() : null
      if (!isDirty) return running
      next = running.catch(nothing).then(() => {
        next = null
        return begin()
      })
      return next
    },
    prepareLog: () => (isSlow && isLogDone() ? beginLog() : null),
    async close() {
      await (next ?? running)?.catch(nothing)
      await thread.end()
      const log = await handle?.catch(nothing)
      await log?.close()
    },
  }
}

/** Its name in the folder is brought to the disk as well. */
async function openLog(file: string): Promise<FileHandle> {
  const folder = await open(dirname(file), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
  return open(`${file}-wal`, 'r')
}

const nothing = (): undefined => undefined
