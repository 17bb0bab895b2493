// Reads the size of a PostgreSQL database, and its tables with their columns and keys, for backups
// and transfers. pg_dump writes the backup (programs.ts).

import { type Kysely, sql } from 'kysely'
import type { Copies } from '../dialect.ts'
import { databaseSize } from './snapshot.ts'

export const postgresCopies: Copies = {
  sizeOf: databaseSize,
  walBytes: () => 0,
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
  // No copy is made: a failed migration rolls back, and a copy of a large database takes long.
  // README.md tells operators to make a backup before an upgrade.
  copyBeforeMigration: async () => null,
}
