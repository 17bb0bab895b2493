// Creates the tables of sessions and of links to set a password. Recreates the table of idempotency
// keys, because a key can now belong to a session instead of a token.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  flag,
  id,
  integer,
  nullable,
  oneOf,
  references,
  text,
  timestamp,
  timestamps,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'sessions',
    {
      id: id(),
      user_id: references('users', 'cascade'),
      secret_hash: text(),
      is_remembered: flag(false),
      last_used_at: timestamp(),
      /** The latest end of the session. An idle session expires earlier. */
      expires_at: timestamp(),
      ...timestamps(),
    },
    { unique: [['secret_hash']], indexes: [['expires_at', 'id']] },
  )
  await createTable(
    db,
    dialect,
    'password_resets',
    {
      id: id(),
      user_id: references('users', 'cascade'),
      secret_hash: text(),
      expires_at: timestamp(),
      created_at: timestamp(),
    },
    { unique: [['secret_hash']], indexes: [['expires_at', 'id']] },
  )
  await ownKeysBySession(db, dialect)
}

/**
 * Recreates the table with the rows of the last day, because SQLite cannot make a column nullable.
 */
async function ownKeysBySession(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { rows } = await sql<Record<string, unknown>>`select * from idempotency_keys`.execute(db)
  await db.schema.dropTable('idempotency_keys').execute()
  await createTable(
    db,
    dialect,
    'idempotency_keys',
    {
      id: id(),
      token_id: nullable(references('tokens', 'cascade')),
      session_id: nullable(references('sessions', 'cascade')),
      key: text(),
      request_hash: text(),
      state: oneOf(['in_flight', 'committed', 'completed'], 'in_flight'),
      /** The process that handles the request. Other processes can detect that it has ended. */
      held_by: nullable(text()),
      status: nullable(integer()),
      headers: nullable(text()),
      body: nullable(text()),
      created_at: timestamp(),
      expires_at: timestamp(),
    },
    {
      unique: [
        ['token_id', 'key'],
        ['session_id', 'key'],
      ],
      indexes: [['expires_at']],
    },
  )
  for (const row of rows)
    await (db as Kysely<Record<string, Record<string, unknown>>>)
      .insertInto('idempotency_keys')
      .values({ ...row, session_id: null, held_by: null })
      .execute()
}
