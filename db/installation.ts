// Computes the id of the installation that a database belongs to. The data folder contains the same
// id, so the program notices a lost or exchanged database.

import { createHash } from 'node:crypto'
import { probeSqlite } from './sqlite/installation-probe.ts'
import { type DatabaseCopy, databaseFile } from './store.ts'

/**
 * The number of migrations that make up the id. The id is a hash of the times of the first
 * migrations, because later migrations and restores do not change these times.
 */
const migrationsOfId = 10

export interface FoundInstallation {
  /**
   * `installed`: the database has its initial rows. `empty`: the file is missing or has no initial
   * rows. `unreadable`: the file is damaged, or this user may not read the file.
   */
  state: 'empty' | 'installed' | 'unreadable'
  id: string | null
}

/**
 * Returns the installation of a database. Opens the file only for reading and creates nothing. A
 * database in memory is always empty.
 */
export function findInstallation(url: string): FoundInstallation {
  const file = databaseFile(url)
  const probe = file === null ? null : probeSqlite(file, { migrations: migrationsOfId })
  if (probe === null) return { state: file === null ? 'empty' : 'unreadable', id: null }
  return probe.isSeeded ? { state: 'installed', id: idOf(probe.migratedAt) } : { state: 'empty', id: null }
}

/** Returns the installation id of an open database, or null before the tenth migration. */
export async function installationOf({ db }: Pick<DatabaseCopy, 'db'>): Promise<string | null> {
  const tables = await db.introspection.getTables()
  if (!tables.some(({ name }) => name === 'migrations')) return null
  const first = db.selectFrom('migrations').select('applied_at').orderBy('name').limit(migrationsOfId)
  return idOf((await first.execute()).map(({ applied_at }) => applied_at))
}

/**
 * Returns the id, or null for fewer than ten times. An id of fewer times would change with the next
 * migration.
 */
const idOf = (times: readonly string[]): string | null =>
  times.length < migrationsOfId
    ? null
    : createHash('sha256').update(`accord:installation:${times.join()}`).digest('hex').slice(0, 32)
