// Counts failed sign-ins by account over all addresses, stores the networks that an account has
// signed in from, and stores the address that a session began from.
import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, createTable, id, key, nullable, references, text, timestamp } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  // The counts of the last minute are not carried over.
  await db.schema.dropTable('login_attempts').execute()
  await createTable(
    db,
    dialect,
    'login_attempts',
    {
      id: id(),
      /** A hash of the e-mail address as entered, whether or not such an account exists. */
      account: key(),
      network: key(),
      created_at: timestamp(),
    },
    { indexes: [['account', 'created_at'], ['network', 'created_at'], ['created_at']] },
  )
  await createTable(
    db,
    dialect,
    'sign_in_networks',
    { id: id(), user_id: references('users', 'cascade'), network: key(), last_used_at: timestamp() },
    { unique: [['user_id', 'network']], indexes: [['network'], ['last_used_at']] },
  )
  await addColumn(db, dialect, 'sessions', 'ip', nullable(text()))
  await addColumn(db, dialect, 'sessions', 'user_agent', nullable(text()))
}
