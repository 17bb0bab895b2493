// Syncs commits to the disk off the event loop. With `synchronous = NORMAL` SQLite writes a commit
// to the log (WAL) without a sync. `fdatasync` runs on a thread of libuv, and a write is answered
// after it. The order of writes stays SQLite's: each frame of the log has a checksum over all
// frames before it, and a checkpoint syncs the log before it changes the database file.

import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import { createMaintenanceThread } from '../maintenance/maintenance-thread.ts'

/** The commit is in the log, but a power cut may undo it. */
export class UnconfirmedCommitError extends Error {}

export interface WalSync {
  /** To be called after each commit that wrote something. */
  markDirty(): void
  /**
   * Settles once every commit so far is on the disk; null when it is. Rejects with
   * UnconfirmedCommitError.
   */
  whenDurable(): Promise<void> | null
  /**
   * To be called before a transaction begins. When the transaction would restart the log, SQLite
   * syncs the new header inside its commit. On a slow disk a thread restarts the log first; the
   * promise settles after that. Null when there is nothing to wait for. Never rejects.
   */
  prepareLog(): Promise<void> | null
  close(): Promise<void>
}

interface WalSyncOptions {
  /** A disk whose last sync took longer is slow. */
  slowMs: number
  /** Called when the disk does not confirm a sync. */
  onFailure: (error: UnconfirmedCommitError) => void
}

export function createWalSync(
  connection: Database.Database,
  file: string,
  { slowMs, onFailure }: WalSyncOptions,
): WalSync {
  const log = connection.prepare<[], number[]>('pragma wal_checkpoint(noop)').raw()
  const thread = createMaintenanceThread(file)
  let handle: Promise<FileHandle> | null = null
  let running: Promise<void> | null = null
  let next: Promise<void> | null = null
  // A killed process may have left commits in the log that it had not synced.
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
      // Other transactions may have read the commit, so they must wait for the next sync.
      isDirty = true
      const error = new UnconfirmedCommitError('The disk did not confirm what was committed.', { cause })
      onFailure(error)
      throw error
    } finally {
      isSlow = performance.now() - since > slowMs
    }
  }

  /** SQLite creates the log with the first write, so it is opened late. */
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
   * After a failed sync the kernel may have dropped dirty pages, and a second sync would not report
   * it. So a checkpoint copies the log into the database file and syncs both. Returns whether the
   * log then restarts. It cannot while a reader uses it; later commits would stand behind a dropped
   * page, and a power cut would lose them.
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

  /** Writes the page with the version unchanged, which restarts the log. */
  async function restartLog(): Promise<void> {
    try {
      const [version] = (await thread.run('pragma user_version')).row
      await thread.run(`pragma user_version = ${version ?? 0}`)
    } catch {
      // Another process has the lock, or the disk fails. The next transaction meets the same error.
    } finally {
      thread.idle()
    }
  }

  function isLogCheckpointed(): boolean {
    const [, pages = 0, done = 0] = log.get() ?? []
    return pages <= done
  }

  return {
    markDirty() {
      isDirty = true
    },
    whenDurable() {
      // `running` is null for a moment between two syncs, so `next` counts first.
      if (next !== null) return next
      if (running === null) return isDirty ? begin() : null
      if (!isDirty) return running
      next = running.catch(nothing).then(() => {
        next = null
        return begin()
      })
      return next
    },
    prepareLog: () => (isSlow && isLogCheckpointed() ? restartLog() : null),
    async close() {
      await (next ?? running)?.catch(nothing)
      await thread.end()
      const log = await handle?.catch(nothing)
      await log?.close()
    },
  }
}

/** Syncs the folder too, so that the name of the log survives a power cut. */
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
