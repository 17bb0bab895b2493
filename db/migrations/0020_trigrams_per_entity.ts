// On PostgreSQL, gives each entity a trigram index of its own, and the truncated documents an index.
// They are candidates of each search, and the condition for them would keep PostgreSQL from using a
// trigram index alone.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (dialect.name !== 'postgres') return
  for (const statement of statements) await sql.raw(statement).execute(db)
}

const entities = ['activities', 'emails', 'leads', 'organizations', 'persons', 'products', 'quotes']

const statements = [
  'drop index search_index_trigram_index',
  ...entities.map(
    (entity) => `create index search_index_${entity}_trigram_index on search_index
      using gin (folded gin_trgm_ops) with (fastupdate = off) where entity_type = '${entity}'`,
  ),
  `create index search_index_truncated_index on search_index (id) where folded like U&'%\\0001\\0001\\0001%'`,
]
