// Creates the tables of workflows with their runs, of webhooks with their deliveries, and of the
// references inside stored rules.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
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

const triggers = [
  'lead.won',
  'lead.lost',
  'lead.reopened',
  ...['lead', 'activity', 'contacts.person', 'quote'].flatMap((noun) => [
    `${noun}.create.after`,
    `${noun}.update.after`,
    `${noun}.delete.before`,
  ]),
]

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'workflows',
    {
      id: id(),
      name: text(),
      name_key: key(),
      description: nullable(text()),
      entity_type: oneOf(['leads', 'activities', 'persons', 'quotes']),
      condition_type: oneOf(['and', 'or'], 'and'),
      conditions: json('[]'),
      actions: json(),
      is_active: flag(true),
      sort_order: integer(),
      ...timestamps(),
      ...version(),
      /** The newest event at the creation or activation. Only later events are handled. */
      events_after: integer(0),
      /** The user who last changed the workflow. It runs with the rights of this user. */
      changed_by_id: references('users', 'set null'),
      /** By default, the workflow ignores restored records. */
      run_on_restore: flag(false),
      event: oneOf(triggers, 'lead.create.after'),
    },
    { unique: [['name_key']], indexes: [['event', 'sort_order', 'id'], ['sort_order', 'id'], ...listed] },
  )
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
  await createTable(
    db,
    dialect,
    'webhooks',
    {
      id: id(),
      name: text(),
      name_key: key(),
      entity_type: nullable(text()),
      description: nullable(text()),
      method: oneOf(['post', 'put', 'patch', 'get', 'delete'], 'post'),
      url: text(),
      /** The values are encrypted. */
      query_params_sealed: json('[]'),
      headers_sealed: json('[]'),
      payload_type: oneOf(['default', 'x-www-form-urlencoded', 'raw'], 'default'),
      raw_payload_type: nullable(oneOf(['json', 'text'])),
      payload: nullable(json()),
      events: json('[]'),
      changed: json('[]'),
      is_active: flag(true),
      /** Both secrets are encrypted. The previous secret is valid until `previous_secret_until`. */
      secret_sealed: text(),
      previous_secret_sealed: nullable(text()),
      previous_secret_until: nullable(timestamp()),
      disabled_reason: nullable(text()),
      last_status: nullable(integer()),
      failing_since: nullable(timestamp()),
      ...timestamps(),
      ...version(),
      /** The newest event at the creation or activation. Only later events are handled. */
      events_after: integer(0),
      /** The time of the last failed delivery. Null after a successful delivery. */
      last_failed_at: nullable(timestamp()),
      /** The user who last changed the webhook. It receives only events that this user may see. */
      changed_by_id: references('users', 'set null'),
    },
    { unique: [['name_key']], indexes: [['entity_type', 'id'], ['is_active', 'id'], ...listed] },
  )
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
      /**
       * The user whose rights the workflow had. Null for webhook subscriptions. Not a foreign key,
       * because a deleted user must be distinguishable from no user.
       */
      acting_user_id: nullable(integer()),
    },
    {
      unique: [['webhook_id', 'dedupe_key']],
      indexes: [['webhook_id', 'id'], ['webhook_id', 'state', 'id'], ['event_id'], ['finished_at', 'id']],
    },
  )
  await createTable(
    db,
    dialect,
    'stored_references',
    {
      /** The entity and id of the record that names another one. */
      from_type: text(),
      from_id: integer(),
      field: text(),
      /** The entity and id of the named record. */
      to_type: text(),
      to_id: integer(),
    },
    { primaryKey: ['from_type', 'from_id', 'field', 'to_type', 'to_id'], indexes: [['to_type', 'to_id']] },
  )
}
