// Syncs commits to the disk off the event loop. With `synchronous = NORMAL`, SQLite writes commits
// to the log (WAL) without a sync. This file then calls `fdatasync` on a thread, and a write
// resolves after that. Commits stay in order: each log frame has a checksum over all earlier
// frames, and a checkpoint syncs the log first.

import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import { createMaintenanceThread } from '../maintenance/maintenance-thread.ts'

/**
 * Means that the disk did not confirm a sync. The commit is in the log, but a power cut may undo
 * the commit.
 */
export class UnconfirmedCommitError extends Error {}

export interface WalSync {
  /**
   * Notes that the log has an unsynced commit. Must be called after each commit that wrote
   * something.
   */
  markDirty(): void
  /**
   * Returns a promise that resolves once every commit so far is on the disk. The promise rejects
   * with UnconfirmedCommitError. Returns null when every commit is on the disk already.
   */
  whenDurable(): Promise<void> | null
  /**
   * Must be called before a transaction begins. A transaction that restarts the log would sync the
   * new log header inside its commit. So on a slow disk a thread restarts the log first. Returns a
   * promise for the end of that restart, or null. The promise never rejects.
   */
  prepareLog(): Promise<void> | null
  close(): Promise<void>
}

interface WalSyncOptions {
  /** The disk is slow if its last sync took more than this many milliseconds. */
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
  // A killed process may have left unsynced commits in the log.
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
      // Other transactions may have read the unsynced commit, so these transactions must wait for
      // the next sync.
      isDirty = true
      const error = new UnconfirmedCommitError('The disk did not confirm what was committed.', { cause })
      onFailure(error)
      throw error
    } finally {
      isSlow = performance.now() - since > slowMs
    }
  }

  /**
   * Returns the open log file. SQLite creates the log with the first write, so the file is opened
   * late.
   */
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
   * After a failed sync, copies the log into the database file with a checkpoint, which syncs both
   * files. A second `fdatasync` would not report pages that the kernel has dropped. Returns whether
   * the log then restarts. A reader of the log prevents the restart. Without a restart, a power cut
   * could lose later commits, because they follow a dropped page.
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

  /** Restarts the log by writing `user_version` with its current value. */
  async function restartLog(): Promise<void> {
    try {
      const [version] = (await thread.run('pragma user_version')).row
      await thread.run(`pragma user_version = ${version ?? 0}`)
    } catch {
      // The error is ignored: another process has the lock, or the disk fails. The next transaction
      // reports the same error.
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
      // `running` is null for a moment between two syncs, so `next` is checked first.
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

/** Opens the log. Syncs the folder first, so that the name of the log survives a power cut. */
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
