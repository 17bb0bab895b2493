// Computes the installation id of a database. The data folder contains the same id, so the program
// notices a lost or exchanged database.

import { createHash } from 'node:crypto'
import { probePostgres } from './postgres/installation-probe.ts'
import { probeSqlite } from './sqlite/installation-probe.ts'
import { type DatabaseCopy, databaseFile, isInMemory } from './store.ts'

/**
 * The id is a hash of the times of this many first migrations. Later migrations and restores do not
 * change these times.
 */
const migrationsOfId = 10

export interface FoundInstallation {
  /**
   * `installed`: the database has its initial rows. `empty`: the database does not exist or has no
   * initial rows. `unreadable`: the file is damaged or may not be read by this user, or the server
   * cannot be used.
   */
  state: 'empty' | 'installed' | 'unreadable'
  id: string | null
  /** Whether there are tables, with or without the initial rows. */
  hasTables: boolean
  /**
   * The reason why a database server cannot be used, as the end of a sentence. Null for a file,
   * because opening the file reports the reason.
   */
  problem: string | null
  /** Whether the server cannot be reached or does not accept connections yet. */
  isUnreachable?: boolean
}

const nothing: FoundInstallation = { state: 'empty', id: null, hasTables: false, problem: null }

/**
 * Returns the installation of a database, without creating or changing anything. A database in
 * memory is always empty. `isPooled`: see `PostgresOptions`.
 */
export async function findInstallation(url: string, { isPooled = false } = {}): Promise<FoundInstallation> {
  if (isInMemory(url)) return nothing
  const file = databaseFile(url)
  const wanted = { migrations: migrationsOfId, isPooled }
  const probe =
    file === null ? await probePostgres(url, wanted) : ({ problem: null, ...probeSqlite(file, wanted) } as const)
  if (probe.migratedAt === undefined || probe.problem !== null)
    return {
      ...nothing,
      state: 'unreadable',
      problem: probe.problem,
      isUnreachable: 'isUnreachable' in probe && probe.isUnreachable === true,
    }
  const hasTables = probe.migratedAt.length > 0
  if (!probe.isSeeded) return { ...nothing, hasTables }
  return { state: 'installed', id: idOf(probe.migratedAt), hasTables, problem: null }
}

/** Returns the installation id of an open database, or null before the tenth migration. */
export async function installationOf({ db }: Pick<DatabaseCopy, 'db'>): Promise<string | null> {
  const tables = await db.introspection.getTables()
  if (!tables.some(({ name }) => name === 'migrations')) return null
  const first = db.selectFrom('migrations').select('applied_at').orderBy('name').limit(migrationsOfId)
  return idOf((await first.execute()).map(({ applied_at }) => applied_at))
}

/**
 * Returns the id, or null for fewer than ten times, because that id would change with the next
 * migration.
 */
const idOf = (times: readonly string[]): string | null =>
  times.length < migrationsOfId
    ? null
    : createHash('sha256').update(`accord:installation:${times.join()}`).digest('hex').slice(0, 32)
