// Erasures of persons: the receipts, and the keyed hashes of the addresses that must not come back.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  id,
  integer,
  json,
  key,
  nullable,
  oneOf,
  references,
  timestamp,
  timestamps,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'person_erasures',
    {
      id: id(),
      /** Without foreign keys: a receipt outlives its person and its user. */
      person_id: integer(),
      user_id: nullable(integer()),
      /** The places, the data that is kept, and the backups; no personal data. */
      receipt: json('{}'),
      lifted_at: nullable(timestamp()),
      purged_at: nullable(timestamp()),
      ...timestamps(),
    },
    { indexes: [['person_id', 'id']] },
  )
  await createTable(
    db,
    dialect,
    'erased_identities',
    {
      id: id(),
      person_erasure_id: references('person_erasures', 'cascade'),
      kind: oneOf(['email', 'external_id']),
      /** HMAC with a key derived from ACCORD_SECRET. */
      hash: key(),
      ...timestamps(),
    },
    { unique: [['kind', 'hash']] },
  )
}
