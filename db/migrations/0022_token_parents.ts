// Adds the parent of a token: the token that created it. It is unknown for older tokens. Stored
// abilities are not changed, although `settings:*` no longer covers users, roles, groups and
// tokens. `users:*` covers them now.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, nullable, references } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'tokens', 'parent_id', nullable(references('tokens', 'cascade')))
}
