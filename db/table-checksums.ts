// Computes the number of rows of each table and a hash over the rows in key order. Equal checksums
// mean equal data, even if the bytes of the files differ. Rows are streamed, so a large table takes
// little memory.

import { createHash } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import type { DatabaseCopy } from './store.ts'

export interface TableChecksum {
  rows: number
  sha256: string
}

/** Returns the checksum of every table, keyed by the name of the table. */
export async function tableChecksums(copy: DatabaseCopy): Promise<Record<string, TableChecksum>> {
  const found: Record<string, TableChecksum> = {}
  for (const table of await copy.dialect.copies.tables(copy.db as unknown as Kysely<unknown>))
    found[table.name] = await digest(copy, table)
  return found
}

async function digest(
  copy: DatabaseCopy,
  table: { name: string; columns: string[]; key: string[] },
): Promise<TableChecksum> {
  const { name, columns } = table
  const order = table.key.length > 0 ? table.key : columns
  const hash = createHash('sha256').update(JSON.stringify(columns))
  let rows = 0
  const query = sql<Record<string, unknown>>`select ${list(columns)} from ${sql.table(name)} order by ${list(order)}`
  for await (const row of copy.each({ compile: () => query.compile(copy.db) })) {
    hash.update(JSON.stringify(columns.map((column) => plain(row[column]))))
    rows++
  }
  return { rows, sha256: hash.digest('hex') }
}

const list = (columns: readonly string[]) => sql.join(columns.map((column) => sql.ref(column)))

const plain = (value: unknown): unknown =>
  value instanceof Uint8Array ? { hex: Buffer.from(value).toString('hex') } : value
