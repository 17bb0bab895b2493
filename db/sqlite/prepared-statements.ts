// Caches the prepared statements of a connection by their text. Converts parameters for
// better-sqlite3 and results for Kysely.

import type Database from 'better-sqlite3'
import type { QueryResult } from 'kysely'
import { LRUCache } from 'lru-cache'
import { housekeepingTables, searchIndexTable } from '../housekeeping-tables.ts'

const maxStatements = 800

export interface SqlQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

export interface PreparedStatement {
  readonly prepared: Database.Statement<unknown[]>
  /**
   * `read`: only reads rows. `write`: changes rows and may join a group commit. `other`: all other
   * statements, such as DDL and pragmas.
   */
  readonly kind: 'read' | 'write' | 'other'
  readonly isSchema: boolean
  /** Whether the statement can write. False for pragmas, because most of them do not write. */
  readonly writes: boolean
  /** Whether the statement changes a housekeeping table, which does not invalidate caches. */
  readonly isHousekeeping: boolean
  /** Whether the statement changes the search index, so that FTS5 adds a segment. */
  readonly addsSegment: boolean
  readonly hasRows: boolean
  /** Runs the statement and returns its rows as objects. */
  readonly rows: (parameters: readonly unknown[]) => object[]
}

export interface PreparedStatements {
  /** Returns the cached statement, or undefined when the text is not in the cache. */
  cached(text: string): PreparedStatement | undefined
  prepare(text: string): PreparedStatement
  /** Empties the cache. Must be called when the schema has changed. */
  clear(): void
}

const reading = /^\s*(select|values|explain|with)\b/i
const writing = /^\s*(insert|update|delete|replace|with)\b/i
const schema = /^\s*(create|alter|drop)\b/i
const housekeeping = new RegExp(`^(insert into|update|delete from) "(${housekeepingTables.join('|')})"`)
const indexing = new RegExp(`^(insert into|update|delete from) "${searchIndexTable}"`)

/**
 * Returns whether the statement may be read-only. A statement that begins with `with` can write,
 * too.
 */
export const mayBeRead = (text: string): boolean => reading.test(text)

export function createPreparedStatements(database: Database.Database): PreparedStatements {
  const statements = new LRUCache<string, PreparedStatement>({ max: maxStatements })
  return {
    cached: (text) => statements.get(text),
    prepare(text) {
      const found = statements.get(text)
      if (found !== undefined) return found
      // `immediate` takes the write lock at once. A deferred transaction that reads first would
      // fail at its first write if another process has written in between.
      const made = described(text, database.prepare<unknown[]>(text === 'begin' ? 'begin immediate' : text))
      if (!made.isSchema) statements.set(text, made)
      return made
    },
    clear: () => statements.clear(),
  }
}

function described(text: string, prepared: Database.Statement<unknown[]>): PreparedStatement {
  const { readonly, reader } = prepared
  const isRead = readonly && reader && reading.test(text)
  const isSchema = schema.test(text)
  return {
    prepared,
    kind: isRead ? 'read' : !readonly && writing.test(text) ? 'write' : 'other',
    isSchema,
    writes: !readonly && !/^\s*pragma\b/i.test(text),
    isHousekeeping: housekeeping.test(text),
    addsSegment: indexing.test(text),
    hasRows: reader,
    rows: reader ? rowsOf(prepared) : () => [],
  }
}

type Cells = readonly unknown[]

/**
 * Returns a function that runs the statement and returns its rows as objects. Objects from
 * better-sqlite3 are slow: V8 treats them as dictionaries, and building them takes twice as long as
 * the query. So better-sqlite3 returns arrays, and a generated function builds the objects.
 */
function rowsOf(prepared: Database.Statement<unknown[]>): PreparedStatement['rows'] {
  prepared.raw(true)
  let names: string[] | null = null
  let toObject: (cells: Cells) => object = () => ({})
  return (parameters) => {
    const rows = prepared.all(parameters) as Cells[]
    const [first] = rows
    if (first === undefined) return []
    // Another process may have added a column. After schema changes that this process notices,
    // `clear` empties the cache.
    if (first.length !== names?.length) {
      names = prepared.columns().map(({ name }) => name)
      toObject = objectOf(names)
    }
    return rows.map(toObject)
  }
}

/**
 * Returns a generated function that builds an object from the cells of a row. A loop would take ten
 * times as long. The generated code is safe: column names come from statements of this program and
 * are quoted.
 */
function objectOf(names: readonly string[]): (cells: Cells) => object {
  const entries = names.map((name, at) => `${JSON.stringify(name)}: cells[${at}]`)
  return new Function('cells', `return { ${entries.join(', ')} }`) as (cells: Cells) => object
}

export function runStatement<R>(
  { prepared, hasRows, rows }: PreparedStatement,
  parameters: readonly unknown[],
): QueryResult<R> {
  if (hasRows) return { rows: rows(bound(parameters)) as R[] }
  const { changes, lastInsertRowid } = prepared.run(bound(parameters))
  return { numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid), rows: [] }
}

/**
 * Returns whether the statement changed anything. DDL always counts as a change, because SQLite
 * reports no row count for it.
 */
export const hasChanged = ({ writes, kind, hasRows }: PreparedStatement, done: QueryResult<unknown>): boolean =>
  writes && (kind === 'other' || (hasRows ? done.rows.length > 0 : done.numAffectedRows !== 0n))

/**
 * Returns the parameters in types that better-sqlite3 binds. Returns the same list when no
 * parameter needs a conversion.
 */
function bound(parameters: readonly unknown[]): readonly unknown[] {
  for (let index = 0; index < parameters.length; index++) {
    const value = parameters[index]
    const isPlain = typeof value === 'string' || value === null || (typeof value === 'number' && (value | 0) === value)
    if (!isPlain) return parameters.map(bindable)
  }
  return parameters
}

/**
 * Returns the value in a type that better-sqlite3 binds. Booleans become 0 and 1. Integers over 32
 * bits become bigints, because better-sqlite3 would bind them as floats. Throws TypeError for any
 * other type.
 */
export function bindable(value: unknown, index: number): string | number | bigint | Uint8Array | null {
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
