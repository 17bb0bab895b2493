// Creates the tables of workflow runs, webhook deliveries, campaign e-mails, unsubscribed
// addresses, import batches, and the positions in mailboxes.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  addColumn,
  createTable,
  id,
  integer,
  json,
  key,
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
    'workflow_runs',
    {
      id: id(),
      workflow_id: references('workflows', 'cascade'),
      event_id: integer(),
      event: text(),
      entity_type: text(),
      entity_id: integer(),
      /**
       * `parent_run_id`: the run whose action caused the event. `depth`: the length of the chain of
       * runs.
       */
      parent_run_id: references('workflow_runs', 'set null'),
      depth: integer(1),
      state: oneOf(['pending', 'skipped', 'matched', 'succeeded', 'failed'], 'pending'),
      reason: nullable(text()),
      matched_conditions: json('[]'),
      actions: json('[]'),
      started_at: nullable(timestamp()),
      finished_at: nullable(timestamp()),
      ...timestamps(),
    },
    {
      unique: [['workflow_id', 'event_id']],
      indexes: [
        ['workflow_id', 'id'],
        ['entity_type', 'entity_id'],
        ['event_id'],
        ['created_at', 'id'],
        ['finished_at', 'id'],
      ],
    },
  )
  // The newest event at the creation or activation of the webhook or workflow. Only later events
  // are handled.
  for (const table of ['webhooks', 'workflows']) await addColumn(db, dialect, table, 'events_after', integer(0))
  // The time of the last failed delivery. Null after a successful delivery.
  await addColumn(db, dialect, 'webhooks', 'last_failed_at', nullable(timestamp()))
  await createTable(
    db,
    dialect,
    'webhook_deliveries',
    {
      id: id(),
      webhook_id: references('webhooks', 'cascade'),
      /** The cause of the delivery: `event:<id>`, or `run:<id>:<action>` of a workflow. */
      dedupe_key: text(),
      /** Sent as `webhook-id`. */
      message_id: text(),
      event_id: nullable(integer()),
      event: text(),
      entity_type: text(),
      entity_id: nullable(integer()),
      state: oneOf(['pending', 'succeeded', 'failed'], 'pending'),
      attempts: json('[]'),
      /**
       * The number of attempts since the delivery was queued or resent. It determines the next
       * delay.
       */
      tries: integer(0),
      next_attempt_at: nullable(timestamp()),
      finished_at: nullable(timestamp()),
      ...timestamps(),
    },
    {
      unique: [['webhook_id', 'dedupe_key']],
      indexes: [['webhook_id', 'id'], ['webhook_id', 'state', 'id'], ['event_id'], ['finished_at', 'id']],
    },
  )
  await createTable(
    db,
    dialect,
    'campaign_sends',
    {
      id: id(),
      campaign_id: references('marketing_campaigns', 'cascade'),
      occurrence: text(),
      address: key(),
      person_id: references('persons', 'set null'),
      message_id: text(),
      /** The e-mail to send. Removed after it is sent. */
      subject: nullable(text()),
      content: nullable(text()),
      state: oneOf(['queued', 'sent', 'failed', 'suppressed'], 'queued'),
      /**
       * Set while the e-mail is transmitted. If it is still set after a crash, the server may have
       * accepted the e-mail.
       */
      started_at: nullable(timestamp()),
      attempts: integer(0),
      run_at: nullable(timestamp()),
      error: nullable(text()),
      sent_at: nullable(timestamp()),
      ...timestamps(),
    },
    {
      unique: [['campaign_id', 'occurrence', 'address'], ['message_id']],
      indexes: [
        ['campaign_id', 'id'],
        ['campaign_id', 'state', 'run_at', 'id'],
        ['state', 'run_at', 'id'],
        ['started_at'],
        ['sent_at', 'id'],
      ],
    },
  )
  await addColumn(db, dialect, 'marketing_campaigns', 'last_run_at', nullable(timestamp()))
  await addColumn(db, dialect, 'marketing_campaigns', 'active_since', nullable(timestamp()))
  await createTable(
    db,
    dialect,
    'suppressions',
    { id: id(), address: key(), reason: oneOf(['unsubscribed', 'bounced', 'manual'], 'manual'), ...timestamps() },
    {
      unique: [['address']],
      indexes: [
        ['created_at', 'id'],
        ['reason', 'id'],
      ],
    },
  )
  await addColumn(db, dialect, 'imports', 'rows_count', nullable(integer()))
  await createTable(
    db,
    dialect,
    'import_batches',
    { id: id(), import_id: references('imports', 'cascade'), number: integer(), summary: json('{}'), ...timestamps() },
    { unique: [['import_id', 'number']] },
  )
  await createTable(
    db,
    dialect,
    'import_errors',
    {
      id: id(),
      import_id: references('imports', 'cascade'),
      row: integer(),
      column: nullable(text()),
      code: text(),
      message: text(),
      /** The cells of the row, for the error report. */
      cells: json('[]'),
    },
    { indexes: [['import_id', 'row', 'id']] },
  )
  await addColumn(db, dialect, 'emails', 'raw_file_id', references('files', 'set null'))
  await createTable(
    db,
    dialect,
    'mailboxes',
    {
      id: id(),
      account: text(),
      path: text(),
      /** The UIDVALIDITY of the mailbox. Stored UIDs are valid only while it is the same. */
      uid_validity: text(),
      last_uid: integer(0),
      ...timestamps(),
    },
    { unique: [['account', 'path']] },
  )
}
