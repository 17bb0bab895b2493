// Creates the tables of marketing events, campaigns, campaign e-mails and suppressed addresses.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  date,
  flag,
  id,
  integer,
  json,
  key,
  listed,
  nullable,
  oneOf,
  references,
  text,
  timestamp,
  timestamps,
  version,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'marketing_events',
    {
      id: id(),
      name: text(),
      name_key: key(),
      description: text(),
      date: nullable(date()),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: [['date', 'id'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'marketing_campaigns',
    {
      id: id(),
      name: text(),
      name_key: key(),
      subject: text(),
      is_active: flag(false),
      email_template_id: references('email_templates', 'set null'),
      marketing_event_id: references('marketing_events', 'set null'),
      ...timestamps(),
      ...version(),
      last_run_at: nullable(timestamp()),
      active_since: nullable(timestamp()),
      audience_type: oneOf(['all', 'filter', 'tag', 'import'], 'all'),
      audience_filter: nullable(json()),
      audience_tag_id: references('tags', 'set null'),
      audience_import_id: references('imports', 'set null'),
      /** The user who last changed the campaign. Its placeholders show what this user may see. */
      changed_by_id: references('users', 'set null'),
    },
    { indexes: [['name_key', 'id'], ['is_active', 'id'], ...listed] },
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
}
