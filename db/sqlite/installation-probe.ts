// Reads the migration times that identify the installation of a database file. Does not create or
// change the file.

import { statSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { Sqlite } from './driver.ts'

export interface Probe {
  /** Whether the database has its initial rows (seed.ts). */
  isSeeded: boolean
  /** The ISO timestamps of the first applied migrations. */
  migratedAt: string[]
}

const nothing: Probe = { isSeeded: false, migratedAt: [] }
const busyTimeoutMs = 500

/**
 * Returns null when the file cannot be read as a database. Opening the file for writing later
 * reports the cause.
 */
export function probeSqlite(file: string, { migrations }: { migrations: number }): Probe | null {
  // An empty file is not opened, because SQLite would delete the log beside it.
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return nothing
  let database: Database.Database | undefined
  try {
    database = new Sqlite(file, { readonly: true, timeout: busyTimeoutMs })
    const has = database.prepare<[string], number>("select 1 from sqlite_schema where type = 'table' and name = ?")
    const applied = `select applied_at from migrations order by name limit ${migrations}`
    const migratedAt = has.get('migrations') ? database.prepare<[], string>(applied).pluck().all() : []
    const isSeeded =
      has.get('roles') !== undefined && database.prepare('select 1 from roles limit 1').get() !== undefined
    return { isSeeded, migratedAt }
  } catch {
    return null
  } finally {
    database?.close()
  }
}
