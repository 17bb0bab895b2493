// Everything SQLite-specific: how a database is opened, what better-sqlite3 can bind, and the SQL only SQLite speaks.
// Nothing outside db/dialects knows which engine runs.

import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import {
  type Expression,
  SqliteDialect as KyselySqliteDialect,
  type RawBuilder,
  type SqlBool,
  type SqliteDatabase,
  type SqliteStatement,
  sql,
} from 'kysely'
import { foldText } from '../fold.ts'
import type { Dialect } from './dialect.ts'
import { sqliteFullText } from './sqlite-fulltext.ts'
import { sqliteRelations } from './sqlite-relations.ts'

const SCHEME = 'sqlite:'
const IN_MEMORY = ':memory:'
const STATEMENTS_KEPT = 500

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
  if (file !== null) mkdirSync(dirname(file), { recursive: true })
  return prepareConnection(new Database(file ?? IN_MEMORY))
}

/** A second connection that only reads, and sees the database as it is at this moment for as long as it is open. */
export function openSqliteSnapshot(file: string): Database.Database {
  return asOfNow(withFunctions(new Database(file, { readonly: true, timeout: 5000 })))
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
  return prepareConnection(new Database(image))
}

/** The bytes of the database, openable in memory: the header of a WAL file asks for a second file, so it is reset. */
export function sqliteImage(database: Database.Database): Buffer {
  const image = database.serialize()
  image[18] = 1
  image[19] = 1
  return image
}

function prepareConnection(database: Database.Database): Database.Database {
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.pragma('foreign_keys = ON')
  database.pragma('busy_timeout = 5000')
  return withFunctions(database)
}

function withFunctions(database: Database.Database): Database.Database {
  database.function('fold', { deterministic: true }, (text: unknown) =>
    typeof text === 'string' ? foldText(text) : text,
  )
  return database
}

export function kyselySqlite(database: Database.Database): KyselySqliteDialect {
  return new KyselySqliteDialect({ database: boundDatabase(database) })
}

/** Prepared statements are kept by their text; streams get their own, since a running statement cannot run again. */
function boundDatabase(database: Database.Database): SqliteDatabase {
  const kept = new Map<string, Database.Statement<unknown[]>>()

  function prepared(text: string): Database.Statement<unknown[]> {
    const known = kept.get(text)
    if (known !== undefined) {
      kept.delete(text)
      kept.set(text, known)
      return known
    }
    // A transaction that reads first and writes later would fail at once when another process writes in between.
    const statement = database.prepare<unknown[]>(text === 'begin' ? 'begin immediate' : text)
    if (/^\s*(create|alter|drop)\b/i.test(text)) {
      kept.clear()
      return statement
    }
    kept.set(text, statement)
    const oldest = kept.size > STATEMENTS_KEPT ? kept.keys().next().value : undefined
    if (oldest !== undefined) kept.delete(oldest)
    return statement
  }

  return {
    close: () => {
      database.close()
    },
    prepare: (text): SqliteStatement => {
      const statement = prepared(text)
      return {
        reader: statement.reader,
        all: (parameters) => statement.all(parameters.map(bindable)),
        run: (parameters) => statement.run(parameters.map(bindable)),
        iterate: (parameters) => database.prepare<unknown[]>(text).iterate(parameters.map(bindable)),
      }
    },
  }
}

/** better-sqlite3 binds no booleans, and numbers beyond 32 bits only as floats; the rest it refuses is our defect. */
function bindable(value: unknown, index: number): string | number | bigint | Uint8Array | null {
  if (value === null || typeof value === 'string' || typeof value === 'bigint') return value
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value === 'number' && Number.isFinite(value)) {
    return Number.isSafeInteger(value) && Math.abs(value) > 0x7fffffff ? BigInt(value) : value
  }
  if (value instanceof Uint8Array) return value
  throw new TypeError(
    `Parameter ${index + 1} is ${describeValue(value)}; a column takes text, a finite number, a boolean, bytes or null. Write dates as ISO text and objects as JSON text.`,
  )
}

function describeValue(value: unknown): string {
  if (value instanceof Date) return 'a Date'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  return typeof value === 'number' ? String(value) : typeof value
}

function plainPath(path: string): string {
  if (!/^\w+(\.\w+)*$/.test(path)) throw new Error(`"${path}" is not a dotted path of plain keys.`)
  return path
}

/** Written out, not bound: an index of the same expression is found by its text. */
const jsonAt = <T>(column: string, path: string): RawBuilder<T | null> =>
  sql<T | null>`${sql.ref(column)} ->> ${sql.lit(`$.${plainPath(path)}`)}`

/** A telephone number without what may stand between its digits. */
const digitsOf = (phone: RawBuilder<unknown>): RawBuilder<unknown> =>
  [...' ().-/'].reduce((text, sign) => sql`replace(${text}, ${sql.lit(sign)}, '')`, phone)

export const sqliteDialect: Dialect = {
  name: 'sqlite',
  mostParameters: 32_766,

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
    const value = mode === 'phone' ? digitsOf(raw) : sql`fold(${raw})`
    const wanted = foldText(needle)
    const matches = mode === 'contains' ? sql`instr(${value}, ${wanted}) > 0` : sql`${value} = ${wanted}`
    return sql<SqlBool>`exists (select 1 from json_each(${points}) as point where ${matches})`
  },
  jsonText(column, path): RawBuilder<string | null> {
    return sql<string | null>`cast(${jsonAt(column, path)} as text)`
  },
  jsonNumber: (column, path) => jsonAt<number>(column, path),
  jsonHolds: (column, path, numbers) =>
    sql<SqlBool>`exists (select 1 from json_each(${jsonAt(column, path)}) as held where held.value in (${sql.join(numbers)}))`,
  jsonWithout: (column, key) => sql<string>`json_remove(${sql.ref(column)}, ${sql.lit(`$.${plainPath(key)}`)})`,
  jsonTexts<A extends string>(column: string, alias: A) {
    // Only the function itself sees the row it is joined to; a query around it would not.
    return sql<{ key: number; value: string }>`json_each(${sql.ref(column)})`.as(alias)
  },

  isUniqueViolation: (error) => ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY'].includes(codeOf(error)),
  // `on delete restrict` is enforced by an inner trigger and reports that code.
  isForeignKeyViolation: (error) =>
    codeOf(error) === 'SQLITE_CONSTRAINT_FOREIGNKEY' ||
    (codeOf(error) === 'SQLITE_CONSTRAINT_TRIGGER' && String(error).includes('FOREIGN KEY')),
  isBusy: (error) => /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error)),

  fullText: sqliteFullText,

  async findings(db) {
    const integrity = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(db)
    const keys = await sql<{ table: string; rowid: number; parent: string }>`pragma foreign_key_check`.execute(db)
    return [
      ...integrity.rows.map((row) => row.integrity_check).filter((text) => text !== 'ok'),
      ...keys.rows.map(
        ({ table, rowid, parent }) => `Row ${rowid} of ${table} refers to a row of ${parent} that is gone.`,
      ),
    ]
  },
  async optimise(db) {
    await sql`pragma optimize`.execute(db)
    await sql`pragma wal_checkpoint(truncate)`.execute(db)
  },
  async hasTables(db) {
    const found = await sql`select 1 from sqlite_schema where type = 'table' limit 1`.execute(db)
    return found.rows.length > 0
  },
  relations: sqliteRelations,
  async copyAside(db, url, stamp) {
    const file = sqliteFile(url)
    if (file === null) return null
    const folder = join(dirname(file), 'backups')
    mkdirSync(folder, { recursive: true })
    const copy = join(folder, `accord-${stamp}.db`)
    await sql`vacuum into ${copy}`.execute(db)
    return copy
  },
}

function codeOf(error: unknown): string {
  return error instanceof Database.SqliteError ? error.code : ''
}
