// Adds the parent of a token: the token that created it. Older tokens have none, because nothing
// stored tells it. Stored abilities are unchanged: `settings:*` no longer covers users, roles,
// groups and tokens, which `users:*` does.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, nullable, references } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'tokens', 'parent_id', nullable(references('tokens', 'cascade')))
}
