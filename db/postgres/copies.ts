// Copies a whole database with pg_dump, and reads the facts that a check of a copy needs.

import { spawn } from 'node:child_process'
import { type Kysely, sql } from 'kysely'
import type { Copies } from '../dialect.ts'
import { databaseSize } from './snapshot.ts'

/** Runs a program of PostgreSQL. Rejects with its last line on standard error. */
export function runProgram(program: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    let complaint = ''
    child.stderr.on('data', (bytes: Buffer) => {
      complaint = (complaint + bytes.toString('utf8')).slice(-2_000)
    })
    child.on('error', (cause) =>
      reject(new Error(`${program} cannot be started. Install the client programs of PostgreSQL.`, { cause })),
    )
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`${program} failed: ${complaint.trim().split('\n').at(-1)}`)),
    )
  })
}

export const postgresCopies: Copies = {
  sizeOf: databaseSize,
  walBytes: () => 0,
  copyTo: () => Promise.reject(new Error('pg_dump copies a PostgreSQL database by its URL.')),
  async tables(db: Kysely<unknown>) {
    const { rows } = await sql<{ table: string; column: string; json: number; key: number | null }>`
      select tables.relname as "table", columns.attname as "column", columns.atttypid = 'json'::regtype as json,
        array_position(keys.indkey::smallint[], columns.attnum) as "key"
      from pg_class as tables
      join pg_attribute as columns on columns.attrelid = tables.oid
      left join pg_index as keys on keys.indrelid = tables.oid and keys.indisprimary
      where tables.relkind = 'r' and tables.relnamespace = current_schema()::regnamespace
        and columns.attnum > 0 and not columns.attisdropped and columns.attgenerated = ''
      order by tables.relname, columns.attname`.execute(db)
    const tables = new Map<string, { name: string; columns: string[]; key: string[]; json: string[] }>()
    for (const { table, column, json } of rows) {
      const known = tables.get(table) ?? { name: table, columns: [], key: [], json: [] }
      known.columns.push(column)
      if (json === 1) known.json.push(column)
      tables.set(table, known)
    }
    for (const { table, column } of rows
      .filter(({ key }) => key !== null)
      .sort((one, other) => (one.key ?? 0) - (other.key ?? 0)))
      tables.get(table)?.key.push(column)
    return [...tables.values()]
  },
  // Migrations run in one transaction, and a copy of a large database takes long. README.md asks for
  // a backup before an upgrade.
  copyBeforeMigration: async () => null,
}
