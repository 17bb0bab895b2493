// Adds the state `sending` for campaign e-mails that a worker has claimed. Removes the texts of
// queued e-mails, because the text is made when the e-mail is sent, from the campaign as it is then.

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
  ...['id', 'campaign_id', 'occurrence', 'address', 'person_id', 'message_id', 'started_at', 'claim', 'attempts'],
  ...['run_at', 'error', 'sent_at', 'resent_at', 'resent_by_id', 'created_at', 'updated_at'],
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
  const lastIds = await dialect.lastIds(db)
  for (const [columns, kind] of [
    ...unique.map((each) => [each, 'unique'] as const),
    ...[...indexes, ['person_id'], ['resent_by_id']].map((each) => [each, 'index'] as const),
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
      state: oneOf(['queued', 'sending', 'sent', 'failed', 'suppressed', 'uncertain'], 'queued'),
      started_at: nullable(timestamp()),
      /** The current or last claim. Only this claim may store the outcome. */
      claim: nullable(text()),
      attempts: integer(0),
      /** The time of the next attempt. Null in every state but `queued`. */
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
  const state = sql`case when state = 'queued' and run_at is null then 'sending' else state end`
  await sql`insert into ${sql.table(table)} (${columns}, state) select ${columns}, ${state} from ${sql.table(before)}`.execute(
    db,
  )
  await db.schema.dropTable(before).execute()
  await dialect.resetSequences(db, lastIds)
}
