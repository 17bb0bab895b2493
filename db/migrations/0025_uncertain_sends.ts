// Adds the state `uncertain` for campaign e-mails that may have been sent, which a user can resend.
// While an e-mail is being sent, it belongs to a claim.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  id,
  integer,
  key,
  nullable,
  oneOf,
  references,
  text,
  timestamp,
  timestamps,
} from '../schema/columns.ts'

const table = 'campaign_sends'
const before = 'campaign_sends_before'
const kept = [
  'id',
  'campaign_id',
  'occurrence',
  'address',
  'person_id',
  'message_id',
  'subject',
  'content',
  'state',
  'started_at',
  'attempts',
  'run_at',
  'error',
  'sent_at',
  'created_at',
  'updated_at',
]
const unique = [['campaign_id', 'occurrence', 'address'], ['message_id']]
const indexes = [
  ['campaign_id', 'id'],
  ['campaign_id', 'state', 'run_at', 'id'],
  ['state', 'run_at', 'id'],
  ['started_at'],
  ['sent_at', 'id'],
]

/** SQLite cannot change a check constraint, so the rows are moved to a new table. */
export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  for (const [columns, kind] of [
    ...unique.map((each) => [each, 'unique'] as const),
    ...[...indexes, ['person_id']].map((each) => [each, 'index'] as const),
  ])
    await db.schema.dropIndex(`${table}_${columns.join('_')}_${kind}`).execute()
  await db.schema.alterTable(table).renameTo(before).execute()
  await createTable(
    db,
    dialect,
    table,
    {
      id: id(),
      campaign_id: references('marketing_campaigns', 'cascade'),
      occurrence: text(),
      address: key(),
      person_id: references('persons', 'set null'),
      message_id: text(),
      /** The e-mail to send. Removed when the outcome is known. */
      subject: nullable(text()),
      content: nullable(text()),
      state: oneOf(['queued', 'sent', 'failed', 'suppressed', 'uncertain'], 'queued'),
      started_at: nullable(timestamp()),
      /** The current or last claim. Only this claim may store the outcome. */
      claim: nullable(text()),
      attempts: integer(0),
      /** Null while the e-mail is transmitted to the server. */
      run_at: nullable(timestamp()),
      error: nullable(text()),
      sent_at: nullable(timestamp()),
      resent_at: nullable(timestamp()),
      resent_by_id: references('users', 'set null'),
      ...timestamps(),
    },
    { unique, indexes },
  )
  const columns = sql.raw(kept.map((each) => `"${each}"`).join(', '))
  await sql`insert into ${sql.table(table)} (${columns}) select ${columns} from ${sql.table(before)}`.execute(db)
  await db.schema.dropTable(before).execute()
}
