// Replaces the networks from which accounts have signed in by devices with a token, and adds the
// times of the last notices about sign-ins.
import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, createTable, id, key, nullable, references, timestamp } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema.dropTable('sign_in_networks').execute()
  await createTable(
    db,
    dialect,
    'sign_in_devices',
    {
      id: id(),
      user_id: references('users', 'cascade'),
      /** The SHA-256 of the device token. */
      secret_hash: key(),
      last_used_at: timestamp(),
      created_at: timestamp(),
    },
    { unique: [['secret_hash']], indexes: [['user_id', 'last_used_at'], ['last_used_at']] },
  )
  await addColumn(db, dialect, 'users', 'device_notice_at', nullable(timestamp()))
  await addColumn(db, dialect, 'users', 'guessing_notice_at', nullable(timestamp()))
}
