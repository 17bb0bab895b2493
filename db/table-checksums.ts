// Computes a checksum of each table: the number of rows and a hash over the rows in key order.
// Equal checksums mean equal data, even if the bytes of the files differ. Rows are streamed, so a
// large table takes little memory.

import { createHash } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import type { DatabaseCopy, DatabaseSnapshot } from './store.ts'

export interface TableChecksum {
  rows: number
  sha256: string
}

/** A table or view. The rows are sorted by `key`, or by all columns without a key. */
export interface CheckedTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly key: readonly string[]
  /** The columns that contain JSON. */
  readonly json: readonly string[]
}

export type ReadRow = (row: Readonly<Record<string, unknown>>) => void

/** Returns the checksum of every table, keyed by the name of the table. */
export async function tableChecksums(copy: DatabaseCopy): Promise<Record<string, TableChecksum>> {
  const found: Record<string, TableChecksum> = {}
  for (const table of await copy.dialect.copies.tables(copy.db as unknown as Kysely<unknown>))
    found[table.name] = await digest(copy, table, (row, column) => plain(row[column]))
  return found
}

/**
 * Returns the checksum of a table. JSON columns are parsed before they are hashed, so that
 * whitespace makes no difference. `read` receives each row before it is hashed.
 */
export async function valueChecksum(
  copy: DatabaseSnapshot,
  table: CheckedTable,
  read: ReadRow = () => undefined,
): Promise<TableChecksum> {
  const json = new Set(table.json)
  return digest(
    copy,
    table,
    (row, column) => {
      const value = row[column]
      return typeof value === 'string' && json.has(column) ? { json: JSON.parse(value) } : plain(value)
    },
    read,
  )
}

async function digest(
  copy: DatabaseSnapshot,
  { name, columns, key }: CheckedTable,
  hashed: (row: Readonly<Record<string, unknown>>, column: string) => unknown,
  read: ReadRow = () => undefined,
): Promise<TableChecksum> {
  const order = key.length > 0 ? key : columns
  const hash = createHash('sha256').update(JSON.stringify(columns))
  let rows = 0
  const query = sql<Record<string, unknown>>`select ${list(columns)} from ${sql.table(name)} order by ${list(order)}`
  for await (const row of copy.each({ compile: () => query.compile(copy.db) })) {
    read(row)
    hash.update(JSON.stringify(columns.map((column) => hashed(row, column))))
    rows++
  }
  return { rows, sha256: hash.digest('hex') }
}

const list = (columns: readonly string[]) => sql.join(columns.map((column) => sql.ref(column)))

const plain = (value: unknown): unknown =>
  value instanceof Uint8Array ? { hex: Buffer.from(value).toString('hex') } : value
