// Creates the table of the deprecated parts of the contract that each token has used.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, references, text, timestamp } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'deprecated_uses',
    {
      id: id(),
      token_id: references('tokens', 'cascade'),
      name: text(),
      sunset: text(),
      last_used_at: timestamp(),
    },
    { unique: [['token_id', 'name']], indexes: [['last_used_at']] },
  )
}
