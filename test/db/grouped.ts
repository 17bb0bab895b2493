// Opens a database file with group commit, and reads it through a second connection, like another
// process.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type Database from 'better-sqlite3'
import { sql } from 'kysely'
import { migrate } from '../../db/migrate.ts'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { type Db, openStore, type Store } from '../../db/store.ts'
import { searchIndex } from '../../src/operations.ts'

export let folder: string
export let file: string
export let store: Store
/** The second connection. */
let other: Database.Database

export const groupMs = 100

export async function openAnew(): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'accord-groups-'))
  file = join(folder, 'accord.db')
  // No disk counts as slow, because other tests may slow it down.
  store = openStore(`sqlite:${file}`, { groupMs, slowSyncMs: Number.POSITIVE_INFINITY })
  await migrate(store)
  store.beforeGroupCommit(searchIndex.update)
  await sql`pragma wal_checkpoint(truncate)`.execute(store.db)
  other = new Sqlite(file, { readonly: true })
}

export async function closeAll(): Promise<void> {
  other.close()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
}

const source = (name: string) => ({ name, name_key: name.toLowerCase(), created_at: 'now', updated_at: 'now' })
export const add = (name: string, db: Db = store.db) => db.insertInto('lead_sources').values(source(name)).execute()
export const write = <T>(work: (db: Db) => Promise<T>): Promise<T> => store.transaction(work)
/** Runs a transaction with its own commit. */
export const alone = <T>(work: (db: Db) => Promise<T>): Promise<T> => store.transaction(work, { isLong: true })
export const strayMember = (db: Db) => db.insertInto('user_groups').values({ user_id: 1, group_id: 1 }).execute()
export const stored = (): string[] =>
  other.prepare<[], string>('select name from lead_sources order by id').pluck().all()
export const turn = () => new Promise((resolve) => setImmediate(resolve))
export const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'did not fail',
    (error: unknown) => error,
  )

/**
 * Returns the number of commits in the WAL. Only the last frame of a transaction contains the size
 * of the database.
 */
export function commits(): number {
  if (!existsSync(`${file}-wal`)) return 0
  const log = readFileSync(`${file}-wal`)
  const frame = 24 + 4096
  let count = 0
  for (let at = 32; at + frame <= log.length; at += frame) {
    const isOfNow = log.subarray(at + 8, at + 16).equals(log.subarray(16, 24))
    if (isOfNow && log.readUInt32BE(at + 4) > 0) count++
  }
  return count
}
