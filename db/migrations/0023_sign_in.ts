// Creates the table that counts failed sign-ins of an account from all addresses, and the table of
// networks from which accounts have signed in. Adds the address from which a session began.
import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, createTable, id, key, nullable, references, text, timestamp } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  // The counts of the last minute are discarded.
  await db.schema.dropTable('login_attempts').execute()
  await createTable(
    db,
    dialect,
    'login_attempts',
    {
      id: id(),
      /** A hash of the entered e-mail address. The account may not exist. */
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
