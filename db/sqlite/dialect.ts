// The dialect of SQLite: opens databases, and builds SQL that only SQLite understands.
// connection.ts has the settings of a connection.

import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type Database from 'better-sqlite3'
import { type Expression, type RawBuilder, type SqlBool, sql } from 'kysely'
import { jsonArrayFrom } from 'kysely/helpers/sqlite'
import type { Dialect } from '../dialect.ts'
import { caseFold } from '../schema/case-folding.ts'
import { searchFold } from '../schema/search-folding.ts'
import { sqliteCopies } from './backup-copies.ts'
import { prepareConnection, prepareReader } from './connection.ts'
import { Sqlite } from './driver.ts'
import { isSqliteForeignKeyViolation, isSqliteUniqueViolation, sqliteStorageFault } from './errors.ts'
import { sqliteFullText } from './full-text.ts'
import { withFunctions } from './functions.ts'
import { updatePlannerStatistics } from './maintenance/planner-statistics.ts'
import { bindable } from './prepared-statements.ts'
import { sqliteRelations } from './relations.ts'
import { readInThread } from './snapshot-thread.ts'

const scheme = 'sqlite:'
const inMemory = ':memory:'

export function isSqliteUrl(url: string): boolean {
  return url.startsWith(scheme)
}

/**
 * Returns the path in `sqlite:<path>`, or null for a database in memory. Throws for an empty path.
 */
export function sqliteFile(url: string): string | null {
  const path = url.slice(scheme.length)
  if (path === '') throw new Error(`The database url "${url}" names no file; write sqlite:<path> or sqlite::memory:.`)
  return path === inMemory ? null : path
}

export function openSqlite(url: string): Database.Database {
  const file = sqliteFile(url)
  if (file !== null) {
    mkdirSync(dirname(file), { recursive: true })
    // Creates the database file with mode 600. SQLite gives the files beside the database file the
    // same mode.
    if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
  }
  const database = withFunctions(prepareConnection(new Sqlite(file ?? inMemory)))
  // With NORMAL, a commit does not sync the log. wal-sync.ts does that off the event loop.
  if (file !== null) database.pragma('synchronous = NORMAL')
  return database
}

/**
 * Opens a second connection, for reads only. The reader sees committed data, even while the writing
 * connection has an open transaction.
 */
export function openSqliteReader(file: string): Database.Database {
  return withFunctions(prepareReader(new Sqlite(file, { readonly: true })))
}

/**
 * Opens a connection that sees the data of this moment until it is closed. The call blocks for up
 * to `sleepMs` while another process recovers the log.
 */
export function openSqliteSnapshot(file: string, sleepMs = 0): Database.Database {
  return asOfNow(withFunctions(new Sqlite(file, { readonly: true, timeout: sleepMs })))
}

/**
 * Opens a snapshot of a database in memory. The snapshot is a copy, because a database in memory
 * cannot have a second connection.
 */
export function copySqliteSnapshot(database: Database.Database): Database.Database {
  return asOfNow(withFunctions(new Sqlite(sqliteImage(database))))
}

/**
 * Begins a transaction and reads, because a transaction sees the data that was committed at its
 * first read.
 */
function asOfNow(database: Database.Database): Database.Database {
  database.exec('begin; select count(*) from sqlite_schema')
  return database
}

/** Streams the rows of a query. The connection can run other reads during the stream. */
export function eachSqliteRow(
  database: Database.Database,
  { sql, parameters }: { sql: string; parameters: readonly unknown[] },
): IterableIterator<unknown> {
  return database.prepare<unknown[]>(sql).iterate(parameters.map(bindable))
}

export function openSqliteImage(image: Buffer): Database.Database {
  return withFunctions(prepareConnection(new Sqlite(image)))
}

/**
 * Returns the bytes of the database for opening in memory. Resets the two header bytes that mark a
 * WAL database, because a database in memory has no log.
 */
export function sqliteImage(database: Database.Database): Buffer {
  const image = database.serialize()
  image[18] = 1
  image[19] = 1
  return image
}

function plainPath(path: string): string {
  if (!/^\w+(\.\w+)*$/.test(path)) throw new Error(`"${path}" is not a dotted path of plain keys.`)
  return path
}

/**
 * Returns the SQL for the value at a path of a JSON column. The path is a literal and not a
 * parameter, because SQLite finds an expression index by the text of the expression.
 */
const jsonAt = <T>(column: string, path: string): RawBuilder<T | null> =>
  sql<T | null>`${sql.ref(column)} ->> ${sql.lit(`$.${plainPath(path)}`)}`

export const sqliteDialect: Dialect = {
  name: 'sqlite',
  maxParameters: 32_766,
  returnsInsertId: true,
  queuesWrites: true,

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
  hasLateralJoins: false,
  tableOptions: 'strict',
  setUpStatements: [],

  fold(text: Expression<string | null> | string): RawBuilder<string> {
    return sql<string>`fold(${typeof text === 'string' ? sql.ref(text) : text})`
  },
  searchFold: (text) => sql<string>`search_fold(${typeof text === 'string' ? sql.ref(text) : text})`,
  textKey: (text) => sql<string>`text_key(${typeof text === 'string' ? sql.ref(text) : text})`,
  jsonPointMatches(column, mode, needle, path): RawBuilder<SqlBool> {
    const points = path === undefined ? sql.ref(column) : jsonAt(column, path)
    const raw = sql`point.value ->> '$.value'`
    const value = mode === 'phone' ? sql`digits(${raw})` : sql`fold(${raw})`
    const wanted = caseFold(needle)
    const contains = sql`instr(search_fold(${raw}), ${searchFold(needle) || caseFold(needle)}) > 0`
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
  jsonValue: (text) => sql<string>`${text}`,
  jsonRows: (rows) => jsonArrayFrom(rows) as unknown as RawBuilder<string>,
  jsonTexts<A extends string>(column: string, alias: A, key?: string) {
    // `json_each` is joined without a subquery, because a subquery would not see the joined row.
    const path = sql.lit(key === undefined ? '$' : `$.${plainPath(key)}`)
    return sql<{ key: number; value: string }>`json_each(${sql.ref(column)}, ${path})`.as(alias)
  },

  monthOf: (column) => sql<string | null>`substr(${sql.ref(column)}, 1, 7)`,
  skippingLocked: (query) => query,
  // SQLite runs one write transaction at a time, so ids are in the order of the commits anyway.
  enterCommitOrder: async () => undefined,

  isUniqueViolation: isSqliteUniqueViolation,
  isForeignKeyViolation: isSqliteForeignKeyViolation,
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
  async hasTables(db) {
    const found = await sql`select 1 from sqlite_schema where type = 'table' limit 1`.execute(db)
    return found.rows.length > 0
  },
  // Inserting a row with a given id already raises the counter of its table.
  async resetSequences(db, lastIds = {}) {
    for (const [table, last] of Object.entries(lastIds)) {
      await sql`update sqlite_sequence set seq = max(seq, ${last}) where name = ${table}`.execute(db)
      // An empty table may have no counter yet.
      await sql`insert into sqlite_sequence (name, seq) select ${table}, ${last}
        where exists (select 1 from pragma_table_list where name = ${table})
          and not exists (select 1 from sqlite_sequence where name = ${table})`.execute(db)
    }
  },
  async lastIds(db) {
    const { rows } = await sql<{ name: string; seq: number }>`
      select name, seq from sqlite_sequence where seq > 0`.execute(db)
    return Object.fromEntries(rows.map(({ name, seq }) => [name, seq]))
  },
  textProblem: () => null,
  relations: sqliteRelations,
  copies: sqliteCopies(sqliteFile),
}
