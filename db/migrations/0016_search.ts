// Creates the table of search documents, with one row for each searchable record.
// db/search/search-index.ts fills the table after the last migration. Migration 0027 creates the
// full-text indexes.

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
