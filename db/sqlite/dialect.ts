// Everything SQLite-specific: how a database is opened, and the SQL only SQLite speaks; connection.ts is one connection.
// Nothing outside db/dialects knows which engine runs.

import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely'
import { jsonArrayFrom } from 'kysely/helpers/sqlite'
import type { Dialect } from '../dialect.ts'
import { caseFold, digitsOf } from '../schema/case-folding.ts'
import { sqliteCopies } from './backup-copies.ts'
import { prepareConnection, prepareReader } from './connection.ts'
import { isForeignKeyViolation, isUniqueViolation, sqliteStorageFault } from './errors.ts'
import { sqliteFullText } from './full-text.ts'
import { updatePlannerStatistics } from './maintenance/planner-statistics.ts'
import { bindable } from './prepared-statements.ts'
import { sqliteRelations } from './relations.ts'
import { readInThread } from './snapshot-thread.ts'

const SCHEME = 'sqlite:'
const IN_MEMORY = ':memory:'

export function isSqliteUrl(url: string): boolean {
  return url.startsWith(SCHEME)
}

/** The path in `sqlite:<path>`, null for a database in memory. */
export function sqliteFile(url: string): string | null {
  const path = url.slice(SCHEME.length)
  if (path === '') throw new Error(`The database url "${url}" names no file; write sqlite:<path> or sqlite::memory:.`)
  return path === IN_MEMORY ? null : path
}

export function openSqlite(url: string): Database.Database {
  const file = sqliteFile(url)
  if (file !== null) {
    mkdirSync(dirname(file), { recursive: true })
    // What the engine writes beside it gets the same rights.
    if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
  }
  const database = withFunctions(prepareConnection(new Database(file ?? IN_MEMORY)))
  // wal-sync.ts brings commits to the disk.
  if (file !== null) database.pragma('synchronous = NORMAL')
  return database
}

/** A second connection that only reads: what is committed, whatever the first one is in the middle of. */
export function openSqliteReader(file: string): Database.Database {
  return withFunctions(prepareReader(new Database(file, { readonly: true })))
}

/**
 * One more that only reads, and sees the database as it is at this moment for as long as it is open. `sleepMs`: how long the thread may
 * sleep while another process repairs the log.
 */
export function openSqliteSnapshot(file: string, sleepMs = 0): Database.Database {
  return asOfNow(withFunctions(new Database(file, { readonly: true, timeout: sleepMs })))
}

/** The same of a database in memory, which only its own connection can see: a copy. */
export function copySqliteSnapshot(database: Database.Database): Database.Database {
  return asOfNow(withFunctions(new Database(sqliteImage(database))))
}

/** A transaction sees what was committed when it read for the first time. */
function asOfNow(database: Database.Database): Database.Database {
  database.exec('begin; select count(*) from sqlite_schema')
  return database
}

/** Rows one by one; meanwhile the connection answers other queries that only read. */
export function eachSqliteRow(
  database: Database.Database,
  { sql, parameters }: { sql: string; parameters: readonly unknown[] },
): IterableIterator<unknown> {
  return database.prepare<unknown[]>(sql).iterate(parameters.map(bindable))
}

export function openSqliteImage(image: Buffer): Database.Database {
  return withFunctions(prepareConnection(new Database(image)))
}

/** The bytes of the database, openable in memory: the header of a WAL file asks for a second file, so it is reset. */
export function sqliteImage(database: Database.Database): Buffer {
  const image = database.serialize()
  image[18] = 1
  image[19] = 1
  return image
}

function withFunctions(database: Database.Database): Database.Database {
  for (const [name, work] of Object.entries({ fold: caseFold, digits: digitsOf }))
    database.function(name, { deterministic: true }, (text: unknown) => (typeof text === 'string' ? work(text) : text))
  return database
}

function plainPath(path: string): string {
  if (!/^\w+(\.\w+)*$/.test(path)) throw new Error(`"${path}" is not a dotted path of plain keys.`)
  return path
}

/** Written out, not bound: an index of the same expression is found by its text. */
const jsonAt = <T>(column: string, path: string): RawBuilder<T | null> =>
  sql<T | null>`${sql.ref(column)} ->> ${sql.lit(`$.${plainPath(path)}`)}`

export const sqliteDialect: Dialect = {
  name: 'sqlite',
  maxParameters: 32_766,
  returnsInsertId: true,

  columnType(kind) {
    if (kind === 'id') return 'integer primary key autoincrement'
    return kind === 'integer' || kind === 'money' || kind === 'flag' ? 'integer' : 'text'
  },
  columnCheck(kind, column) {
    if (kind === 'flag') return `${column} in (0, 1)`
    return kind === 'json' ? `json_valid(${column})` : null
  },
  flagLiteral: (value) => (value ? '1' : '0'),
  nullsAreLow: true,
  tableOptions: 'strict',

  fold(text: Expression<string | null> | string): RawBuilder<string> {
    return sql<string>`fold(${typeof text === 'string' ? sql.ref(text) : text})`
  },
  jsonPointMatches(column, mode, needle, path): RawBuilder<SqlBool> {
    const points = path === undefined ? sql.ref(column) : jsonAt(column, path)
    const raw = sql`point.value ->> '$.value'`
    const value = mode === 'phone' ? sql`digits(${raw})` : sql`fold(${raw})`
    const wanted = caseFold(needle)
    const contains = sql`instr(${value}, ${wanted}) > 0`
    const matches = {
      equals: sql`${value} = ${wanted}`,
      phone: sql`${value} = ${wanted}`,
      contains,
      first: sql`(point.key = 0 and ${contains})`,
    }[mode]
    return sql<SqlBool>`exists (select 1 from json_each(${points}) as point where ${matches})`
  },
  jsonText(column, path): RawBuilder<string | null> {
    return sql<string | null>`cast(${jsonAt(column, path)} as text)`
  },
  jsonNumber: (column, path) => jsonAt<number>(column, path),
  jsonHolds: (column, path, numbers) =>
    sql<SqlBool>`exists (select 1 from json_each(${jsonAt(column, path)}) as held where held.value in (${sql.join(numbers)}))`,
  jsonWithout: (column, key) => sql<string>`json_remove(${sql.ref(column)}, ${sql.lit(`$.${plainPath(key)}`)})`,
  jsonRows: (rows) => jsonArrayFrom(rows) as unknown as RawBuilder<string>,
  jsonTexts<A extends string>(column: string, alias: A, key?: string) {
    // Only the function itself sees the row it is joined to; a query around it would not.
    const path = sql.lit(key === undefined ? '$' : `$.${plainPath(key)}`)
    return sql<{ key: number; value: string }>`json_each(${sql.ref(column)}, ${path})`.as(alias)
  },

  isUniqueViolation,
  isForeignKeyViolation,
  storageFault: sqliteStorageFault,

  fullText: sqliteFullText,

  async integrityProblems(db) {
    const integrity = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(db)
    const keys = await sql<{ table: string; rowid: number; parent: string }>`pragma foreign_key_check`.execute(db)
    return [
      ...integrity.rows.map((row) => row.integrity_check).filter((text) => text !== 'ok'),
      ...keys.rows.map(
        ({ table, rowid, parent }) => `Row ${rowid} of ${table} refers to a row of ${parent} that is gone.`,
      ),
    ]
  },
  readInThread: readInThread,
  updateStatistics: updatePlannerStatistics,
  async tryWrite(db) {
    await db.connection().execute(async (one) => {
      const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(one)
      await sql`pragma user_version = ${sql.lit(rows[0]?.user_version ?? 0)}`.execute(one)
    })
  },
  async hasTables(db) {
    const found = await sql`select 1 from sqlite_schema where type = 'table' limit 1`.execute(db)
    return found.rows.length > 0
  },
  relations: sqliteRelations,
  copies: sqliteCopies(sqliteFile),
}
