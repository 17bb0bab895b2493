// The token that a token was made with. Tokens made before have no parent: nothing stored says which token made them.
// Abilities are stored as they were: `settings:*` no longer covers users, roles, groups and tokens, which `users:*` does.

import type { Kysely } from 'kysely'
import { addColumn, nullable, references } from '../columns.ts'
import type { Dialect } from '../dialects/dialect.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'tokens', 'parent_id', nullable(references('tokens', 'cascade')))
}
