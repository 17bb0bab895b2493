// Caches the prepared statements of one connection by their text. Converts parameters for
// better-sqlite3 and results for Kysely. Everything here is synchronous.

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
  /** Whether the statement can write. False for pragmas, because most pragmas write nothing. */
  readonly writes: boolean
  /**
   * Whether the statement changes only housekeeping tables. Caches of committed data then stay
   * valid.
   */
  readonly isHousekeeping: boolean
  /** Whether the statement changes the search index. FTS5 then adds an index segment. */
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
 * Returns whether the statement may be one that only reads. A statement that begins with `with` can
 * read or write.
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
 * Returns a function that runs the statement and returns its rows as objects. better-sqlite3 would
 * build objects that V8 treats as dictionaries, which takes twice as long as the query. So
 * better-sqlite3 returns arrays, and a generated function builds the objects.
 */
function rowsOf(prepared: Database.Statement<unknown[]>): PreparedStatement['rows'] {
  prepared.raw(true)
  let names: string[] | null = null
  let toObject: (cells: Cells) => object = () => ({})
  return (parameters) => {
    const rows = prepared.all(parameters) as Cells[]
    const [first] = rows
    if (first === undefined) return []
    // Another process may have added a column; `clear` covers every other change of the schema.
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
 * Returns whether the statement changed anything. SQLite counts no rows for DDL, so DDL always
 * counts as a change.
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
 * Returns the value in a type that better-sqlite3 binds. better-sqlite3 binds no booleans, and
 * whole numbers beyond 32 bits only as floats. Throws for any other type, which is a programming
 * error.
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
