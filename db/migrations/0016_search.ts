// What full-text search looks into: one row for every record that can be found, in step with it from transaction to
// transaction. db/search/search-index.ts says what stands in it and fills it when the last migration has run. 0027 makes the index of words.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, integer, text } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'search_index',
    { id: id(), entity_type: text(), entity_id: integer(), title: text(), subtitle: text(), body: text() },
    { unique: [['entity_type', 'entity_id']] },
  )
}
