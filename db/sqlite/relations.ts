// Reads foreign keys, unique keys and columns from the schema of an SQLite database.

import { type Kysely, sql } from 'kysely'
import type { ForeignKey, Relations } from '../dialect.ts'

const tables = sql`sqlite_schema as tables`
const own = sql`tables.type = 'table' and tables.name not like 'sqlite\\_%' escape '\\'`

export async function sqliteRelations(db: Kysely<unknown>): Promise<Relations> {
  const columns = await sql<{ table: string; name: string; pk: number }>`
    select tables.name as "table", columns.name, columns.pk
    from ${tables}, pragma_table_info(tables.name) as columns where ${own} order by 1, columns.cid`.execute(db)
  const keys = await sql<Omit<ForeignKey, 'isNullable'> & { optional: number }>`
    select tables.name as "table", keys."from" as "column", keys."table" as parent, lower(keys.on_delete) as "onDelete",
      1 - columns."notnull" as optional
    from ${tables}, pragma_foreign_key_list(tables.name) as keys
    join pragma_table_info(tables.name) as columns on columns.name = keys."from" where ${own} order by 1, 2`.execute(db)
  const unique = await sql<{ table: string; key: string; name: string }>`
    select tables.name as "table", keys.name as "key", columns.name
    from ${tables}, pragma_index_list(tables.name) as keys, pragma_index_info(keys.name) as columns
    where ${own} and keys."unique" = 1 and keys.partial = 0 and keys.origin <> 'pk'
    order by 1, 2, columns.seqno`.execute(db)

  const columnsOf = new Map<string, Set<string>>()
  for (const { table, name } of columns.rows) columnsOf.set(table, (columnsOf.get(table) ?? new Set()).add(name))
  const uniqueKeys = new Map<string, Relations['uniqueKeys'][number]>()
  const add = (key: string, table: string, name: string, isPrimary: boolean): void => {
    const known = uniqueKeys.get(key) ?? { table, columns: [], isPrimary }
    known.columns.push(name)
    uniqueKeys.set(key, known)
  }
  for (const { table, name, pk } of columns.rows) if (pk > 0) add(`primary key of ${table}`, table, name, true)
  for (const { table, key, name } of unique.rows) add(key, table, name, false)
  return {
    foreignKeys: keys.rows.map(({ optional, ...key }) => ({ ...key, isNullable: optional === 1 })),
    uniqueKeys: [...uniqueKeys.values()],
    columns: columnsOf,
  }
}
