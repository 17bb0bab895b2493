// The statements of one connection: prepared once and kept by their text, bound to what better-sqlite3 takes, answered as Kysely
// wants it. Nothing here waits.

import type Database from 'better-sqlite3'
import type { QueryResult } from 'kysely'
import { LRUCache } from 'lru-cache'
import { housekeepingTables, searchIndex } from '../housekeeping-tables.ts'

const maxStatements = 800

export interface SqlQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
}

export interface Statement {
  readonly prepared: Database.Statement<unknown[]>
  /** It only reads rows; it changes rows and can stand among others in a transaction; anything else, such as DDL and pragmas. */
  readonly kind: 'read' | 'write' | 'other'
  readonly isSchema: boolean
  /** What a pragma does is no proof: most of them write nothing. */
  readonly writes: boolean
  /** It changes nothing that is kept of committed data. */
  readonly isHousekeeping: boolean
  /** Full text writes down what it changes as a piece of its own. */
  readonly addsSegment: boolean
  readonly hasRows: boolean
  /** Its rows as objects. */
  readonly rows: (parameters: readonly unknown[]) => object[]
}

export interface PreparedStatements {
  /** Undefined for what was not prepared lately. */
  cached(text: string): Statement | undefined
  prepare(text: string): Statement
  /** Prepares all anew: after the tables have changed. */
  clear(): void
}

const reading = /^\s*(select|values|explain|with)\b/i
const writing = /^\s*(insert|update|delete|replace|with)\b/i
const schema = /^\s*(create|alter|drop)\b/i
const ownNotes = new RegExp(`^(insert into|update|delete from) "(${housekeepingTables.join('|')})"`)
const indexing = new RegExp(`^(insert into|update|delete from) "${searchIndex}"`)

/** Whether it can be a statement that only reads; what begins with `with` can be either. */
export const mayBeRead = (text: string): boolean => reading.test(text)

export function createPreparedStatements(database: Database.Database): PreparedStatements {
  const statements = new LRUCache<string, Statement>({ max: maxStatements })
  return {
    cached: (text) => statements.get(text),
    prepare(text) {
      const found = statements.get(text)
      if (found !== undefined) return found
      // A transaction that reads first and writes later would fail at once when another process writes in between.
      const made = described(text, database.prepare<unknown[]>(text === 'begin' ? 'begin immediate' : text))
      if (!made.isSchema) statements.set(text, made)
      return made
    },
    clear: () => statements.clear(),
  }
}

function described(text: string, prepared: Database.Statement<unknown[]>): Statement {
  const { readonly, reader } = prepared
  const isRead = readonly && reader && reading.test(text)
  const isSchema = schema.test(text)
  return {
    prepared,
    kind: isRead ? 'read' : !readonly && writing.test(text) ? 'write' : 'other',
    isSchema,
    writes: !readonly && !/^\s*pragma\b/i.test(text),
    isHousekeeping: ownNotes.test(text),
    addsSegment: indexing.test(text),
    hasRows: reader,
    rows: reader ? rowsOf(prepared) : () => [],
  }
}

type Cells = readonly unknown[]

/**
 * better-sqlite3 makes objects that engines treat as dictionaries, which takes twice as long as the query does: it answers arrays here,
 * and objects are made by a function that knows the columns.
 */
function rowsOf(prepared: Database.Statement<unknown[]>): Statement['rows'] {
  prepared.raw(true)
  let names: string[] | null = null
  let toObject: (cells: Cells) => object = () => ({})
  return (parameters) => {
    const rows = prepared.all(parameters) as Cells[]
    const [first] = rows
    if (first === undefined) return []
    // Another process may have added a column since; of other changes of tables `forget` tells.
    if (first.length !== names?.length) {
      names = prepared.columns().map(({ name }) => name)
      toObject = objectOf(names)
    }
    return rows.map(toObject)
  }
}

/** Written out, which is ten times as fast as a loop; the names are those of our own statements, and quoted. */
function objectOf(names: readonly string[]): (cells: Cells) => object {
  const entries = names.map((name, at) => `${JSON.stringify(name)}: cells[${at}]`)
  return new Function('cells', `return { ${entries.join(', ')} }`) as (cells: Cells) => object
}

export function runStatement<R>(
  { prepared, hasRows, rows }: Statement,
  parameters: readonly unknown[],
): QueryResult<R> {
  if (hasRows) return { rows: rows(bound(parameters)) as R[] }
  const { changes, lastInsertRowid } = prepared.run(bound(parameters))
  return { numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid), rows: [] }
}

/** Whether a statement that writes has changed anything: none at all needs no disk. Of a change of tables no row is counted. */
export const hasChanged = ({ writes, kind, hasRows }: Statement, done: QueryResult<unknown>): boolean =>
  writes && (kind === 'other' || (hasRows ? done.rows.length > 0 : done.numAffectedRows !== 0n))

/** The same list when all of it can be bound as it is. */
function bound(parameters: readonly unknown[]): readonly unknown[] {
  for (let index = 0; index < parameters.length; index++) {
    const value = parameters[index]
    const isPlain = typeof value === 'string' || value === null || (typeof value === 'number' && (value | 0) === value)
    if (!isPlain) return parameters.map(bindable)
  }
  return parameters
}

/** better-sqlite3 binds no booleans, and numbers beyond 32 bits only as floats; the rest it refuses is our defect. */
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
