// The stored answers of bulk writes: those of each transaction, by the Idempotency-Key.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, integer, references, text } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'bulk_answers',
    {
      idempotency_key_id: references('idempotency_keys', 'cascade'),
      /** The position of the first line among the lines of the body, from 0, and their number. */
      position: integer(),
      lines: integer(),
      /** An HMAC of the lines, because they may contain a secret. */
      hash: text(),
      /** The answers as they were sent, encrypted. */
      answers: text(),
    },
    { primaryKey: ['idempotency_key_id', 'position'] },
  )
}
