// Removes deleted data from the bytes of the database: entries of deleted texts in the full-text
// indexes, samples of the query planner, freed pages and the write-ahead log.

import { setTimeout as sleep } from 'node:timers/promises'
import type { MaintenanceThread } from './maintenance-thread.ts'

/** A read of any process can block the checkpoint. Reads are short, but backups long. */
const maxCheckpoints = 50
const pauseMs = 100

/**
 * Rewrites the database file without freed space, and empties its log. No write of this process may
 * run meanwhile. Rejects when a long read keeps the log from being emptied.
 */
export async function purgeFile(
  thread: MaintenanceThread,
  indexes: readonly string[],
  endReads: () => void,
): Promise<void> {
  for (const index of indexes) await thread.run(`insert into ${index} (${index}) values ('optimize')`)
  const { rows } = await thread.run(`select name from sqlite_schema where name = 'sqlite_stat4'`)
  if (rows.length > 0) await thread.run('delete from sqlite_stat4')
  await thread.run('vacuum')
  for (let tries = 1; ; tries++) {
    endReads()
    const { row } = await thread.run('pragma wal_checkpoint(truncate)')
    if (row[0] === 0) return
    if (tries === maxCheckpoints) throw new Error('A long read keeps the log of the database from being emptied.')
    await sleep(pauseMs)
  }
}
