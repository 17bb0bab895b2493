// A deletion keeps the owners of the leads that showed the record, `[1, 7]`: they see its history and
// may restore it.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, json, nullable } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  for (const table of ['events', 'archives']) await addColumn(db, dialect, table, 'lead_owners', nullable(json()))
}
