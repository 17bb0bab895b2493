// Reads foreign keys, unique keys and columns from the system catalog of PostgreSQL.

import { type Kysely, sql } from 'kysely'
import type { ForeignKey, Relations } from '../dialect.ts'

/** Selects the tables of the current schema, without views. */
const own = sql`tables.relkind = 'r' and tables.relnamespace = current_schema()::regnamespace`

const actions = sql`case keys.confdeltype when 'c' then 'cascade' when 'n' then 'set null' else 'restrict' end`

export async function postgresRelations(db: Kysely<unknown>): Promise<Relations> {
  const columns = await sql<{ table: string; name: string }>`
    select tables.relname as "table", columns.attname as name
    from pg_class as tables join pg_attribute as columns on columns.attrelid = tables.oid
    where ${own} and columns.attnum > 0 and not columns.attisdropped
    order by 1, columns.attnum`.execute(db)
  const keys = await sql<Omit<ForeignKey, 'isNullable'> & { optional: number }>`
    select tables.relname as "table", columns.attname as "column", parents.relname as parent,
      ${actions} as "onDelete", not columns.attnotnull as optional
    from pg_constraint as keys
    join pg_class as tables on tables.oid = keys.conrelid
    join pg_class as parents on parents.oid = keys.confrelid
    join pg_attribute as columns on columns.attrelid = tables.oid and columns.attnum = keys.conkey[1]
    where ${own} and keys.contype = 'f' order by 1, 2`.execute(db)
  const unique = await sql<{ table: string; key: string; name: string; primary: number }>`
    select tables.relname as "table", names.relname as "key", columns.attname as name, keys.indisprimary as "primary"
    from pg_index as keys
    join pg_class as tables on tables.oid = keys.indrelid
    join pg_class as names on names.oid = keys.indexrelid
    cross join lateral unnest(keys.indkey::smallint[]) with ordinality as part (number, at)
    join pg_attribute as columns on columns.attrelid = tables.oid and columns.attnum = part.number
    where ${own} and keys.indisunique and keys.indpred is null order by keys.indisprimary desc, 1, 2, part.at
  `.execute(db)

  const columnsOf = new Map<string, Set<string>>()
  for (const { table, name } of columns.rows) columnsOf.set(table, (columnsOf.get(table) ?? new Set()).add(name))
  const uniqueKeys = new Map<string, Relations['uniqueKeys'][number]>()
  for (const { table, key, name, primary } of unique.rows) {
    const known = uniqueKeys.get(key) ?? { table, columns: [], isPrimary: primary === 1 }
    known.columns.push(name)
    uniqueKeys.set(key, known)
  }
  return {
    foreignKeys: keys.rows.map(({ optional, ...key }) => ({ ...key, isNullable: optional === 1 })),
    uniqueKeys: [...uniqueKeys.values()],
    columns: columnsOf,
  }
}
