// Syncs commits to the disk off the event loop. With `synchronous = NORMAL`, SQLite appends commits
// to the log (WAL) without a sync. A thread then calls `fdatasync`, and writes resolve after it. A
// power cut can lose only the last commits, because each log frame has a checksum over all earlier
// frames, and a checkpoint syncs the log first.

import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import type { MaintenanceThread } from '../maintenance/maintenance-thread.ts'

/** The disk did not confirm a sync. The commit is in the log, but a power cut may undo it. */
export class UnconfirmedCommitError extends Error {}

export interface WalSync {
  /**
   * Records that the log has an unsynced commit. Must be called after each commit that wrote data.
   */
  markDirty(): void
  /**
   * Returns a promise that resolves after every commit so far is on the disk, or null when it
   * already is. The promise rejects with UnconfirmedCommitError if the sync fails.
   */
  whenDurable(): Promise<void> | null
  /**
   * Must be called before a transaction begins. The first write after a full checkpoint restarts
   * the log, and would sync the new log header on the event loop. On a slow disk, a thread restarts
   * the log before that. Returns a promise for the end of the restart, which never rejects, or
   * null.
   */
  prepareLog(): Promise<void> | null
  close(): Promise<void>
}

interface WalSyncOptions {
  thread: MaintenanceThread
  /** The disk is slow if its last sync took more than this many milliseconds. */
  slowMs: number
  /** Called when the disk does not confirm a sync. */
  onFailure: (error: UnconfirmedCommitError) => void
}

export function createWalSync(
  connection: Database.Database,
  file: string,
  { thread, slowMs, onFailure }: WalSyncOptions,
): WalSync {
  const log = connection.prepare<[], number[]>('pragma wal_checkpoint(noop)').raw()
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
      // Later transactions may read the unsynced commit, so they must wait for the next sync.
      isDirty = true
      const error = new UnconfirmedCommitError('The disk did not confirm what was committed.', { cause })
      onFailure(error)
      throw error
    } finally {
      isSlow = performance.now() - since > slowMs
    }
  }

  /**
   * Returns the handle of the log file. It is opened late, because SQLite creates the file at the
   * first write.
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
   * Runs a checkpoint after a failed sync: it copies the log into the database file and syncs both.
   * A second `fdatasync` would succeed even if the kernel had dropped pages of the log. Returns
   * false when a reader prevented the log from restarting. Later commits would then follow a
   * dropped page in the log, so a power cut could lose them.
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

  /** Restarts the log by a write that changes nothing. */
  async function restartLog(): Promise<void> {
    try {
      const [version] = (await thread.run('pragma user_version')).row
      await thread.run(`pragma user_version = ${version ?? 0}`)
    } catch {
      // Ignored: if the lock is taken or the disk fails, the next transaction reports the error.
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
