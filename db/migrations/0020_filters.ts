// Creates missing indexes for filters, and for queries that find the records of a tag or product.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createIndex } from '../schema/columns.ts'

const links = [
  ['lead_tags', 'tag_id', 'lead_id'],
  ['person_tags', 'tag_id', 'person_id'],
  ['organization_tags', 'tag_id', 'organization_id'],
  ['lead_products', 'product_id', 'lead_id'],
  ['quote_items', 'product_id', 'quote_id'],
] as const

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  for (const column of ['is_read', 'source', 'sender_type'])
    await createIndex(db, dialect, 'emails', { columns: [column, 'id'] })
  for (const [table, value, owner] of links) {
    // The new index replaces the old one. It covers both columns, so that a query reads only the
    // index.
    await createIndex(db, dialect, table, { columns: [value, owner] })
    await db.schema.dropIndex(`${table}_${value}_index`).execute()
  }
}
