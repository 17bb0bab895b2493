// Copies a whole SQLite database with VACUUM INTO, which reads one snapshot while other connections
// write. A copy of the database file alone would miss the commits in the log (WAL).

import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import type { Copies } from '../dialect.ts'
import { isFull, noRoomFor, syncPath } from '../disk.ts'
import { walBytes } from './connection.ts'
import { Sqlite } from './driver.ts'

/** The number of copies made before migrations that are kept. */
const keptAside = 5

export function sqliteCopies(fileOf: (url: string) => string | null): Copies {
  return {
    async sizeOf(db) {
      const { rows } = await sql<{ size: number }>`
        select page_count * page_size as size from pragma_page_count, pragma_page_size`.execute(db)
      return rows[0]?.size ?? 0
    },
    walBytes(url) {
      const file = fileOf(url)
      return file === null ? 0 : walBytes(file)
    },
    async tables(db) {
      const { rows } = await sql<{ table: string; column: string; json: number; key: number }>`
        select tables.name as "table", columns.name as "column", columns.pk as "key",
          -- The migrations give each JSON column this check (schema/columns.ts).
          instr((select sql from sqlite_schema where sqlite_schema.name = tables.name),
            'json_valid("' || columns.name || '")') > 0 as json
        from pragma_table_list as tables, pragma_table_info(tables.name) as columns
        where tables.schema = 'main' and tables.type = 'table' and tables.name not like 'sqlite\\_%' escape '\\'
        order by tables.name, columns.name`.execute(db)
      const tables = new Map<string, { name: string; columns: string[]; key: string[]; json: string[] }>()
      for (const { table, column, json } of rows) {
        const known = tables.get(table) ?? { name: table, columns: [], key: [], json: [] }
        known.columns.push(column)
        if (json === 1) known.json.push(column)
        tables.set(table, known)
      }
      for (const { table, column } of rows.filter(({ key }) => key > 0).sort((a, b) => a.key - b.key))
        tables.get(table)?.key.push(column)
      return [...tables.values()]
    },
    async copyBeforeMigration(db, url, stamp) {
      const file = fileOf(url)
      if (file === null) return null
      const folder = join(dirname(file), 'backups')
      const copy = join(folder, `accord-${stamp}.db`)
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        const problem = noRoomFor(await this.sizeOf(db), folder)
        if (problem !== null) throw new Error(problem)
        await copySqlite(db, `${copy}.partial`)
        renameSync(`${copy}.partial`, copy)
        syncPath(folder)
      } catch (cause) {
        rmSync(`${copy}.partial`, { force: true })
        const reason = isFull(cause) ? 'the disk is full' : cause instanceof Error ? cause.message : String(cause)
        throw new Error(
          `The copy of the database before the migration could not be written (${reason}), so nothing was migrated. Make room in ${folder}, then try again.`,
          { cause },
        )
      }
      const copies = readdirSync(folder).filter((name) => /^accord-\d{4}-[\dTZ-]+\.db$/.test(name))
      for (const old of copies.sort().slice(0, -keptAside)) rmSync(join(folder, old), { force: true })
      return copy
    },
  }
}

/**
 * Returns the paths of the log and journal files of a database file. If these files stay beside
 * another database of the same name, they damage it.
 */
export const sqliteSideFiles = (file: string): string[] => [`${file}-wal`, `${file}-shm`, `${file}-journal`]

/**
 * Writes a snapshot of the database to a new file. Resolves after the file is synced to the disk.
 */
export async function copySqlite(db: Kysely<unknown>, path: string): Promise<void> {
  // The file gets its permissions before the copy, so that no other user can ever read the copy.
  rmSync(path, { force: true })
  writeFileSync(path, '', { mode: 0o600, flag: 'wx' })
  chmodSync(path, 0o600)
  await sql`vacuum into ${path}`.execute(db)
  syncPath(path)
}

/**
 * Opens the database exclusively and closes it again, so that SQLite writes the log into the
 * database file. Returns false while another connection is open. A file that is not a database is
 * not changed.
 */
export function checkpointSqliteIfUnused(file: string): boolean {
  const database = new Sqlite(file, { timeout: 0 })
  try {
    database.pragma('locking_mode = exclusive')
    database.exec('begin exclusive; rollback')
    return true
  } catch (error) {
    if (error instanceof Sqlite.SqliteError && /^SQLITE_(BUSY|LOCKED)/.test(error.code)) return false
    return true
  } finally {
    database.close()
  }
}
