// The token that a token was made with. Tokens made before have no parent: nothing stored says which token made them.
// Abilities are stored as they were: `settings:*` no longer covers users, roles, groups and tokens, which `users:*` does.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, nullable, references } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'tokens', 'parent_id', nullable(references('tokens', 'cascade')))
}
