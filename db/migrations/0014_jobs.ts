// Creates the tables of background work: jobs, locks, the last run of each schedule, the
// position of each reader of the event log, and the counts of calls to public operations.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, integer, json, key, nullable, oneOf, text, timestamp, timestamps } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'jobs',
    {
      id: id(),
      kind: text(),
      payload: json('{}'),
      state: oneOf(['waiting', 'blocked', 'running', 'buried'], 'waiting'),
      /** At most one unfinished job has this key. */
      dedupe_key: nullable(text()),
      /** Jobs of one sequence run one after another, in the order of their ids. */
      sequence: nullable(text()),
      attempts: integer(0),
      /** The number of consecutive attempts during which the worker crashed. */
      crashes: integer(0),
      run_at: timestamp(),
      /** The worker that runs the job, and the end of its lease. */
      locked_by: nullable(text()),
      locked_until: nullable(timestamp()),
      last_error: nullable(text()),
      ...timestamps(),
    },
    {
      unique: [['dedupe_key']],
      indexes: [
        ['state', 'run_at', 'id'],
        ['state', 'locked_until'],
        ['sequence', 'state', 'id'],
        ['kind', 'id'],
        ['run_at', 'id'],
        ['created_at', 'id'],
      ],
    },
  )
  await createTable(
    db,
    dialect,
    'locks',
    { id: id(), name: text(), locked_by: text(), locked_until: timestamp() },
    { unique: [['name']] },
  )
  await createTable(
    db,
    dialect,
    'schedules',
    /**
     * `last_due_at`: the last due time that was handled, possibly later because no server ran then.
     */
    { id: id(), name: text(), last_due_at: timestamp() },
    { unique: [['name']] },
  )
  await createTable(
    db,
    dialect,
    'event_readers',
    { id: id(), name: text(), last_event_id: integer(0) },
    { unique: [['name']] },
  )
  for (const name of ['webhooks', 'workflows']) await sql`insert into event_readers (name) values (${name})`.execute(db)
  await createTable(
    db,
    dialect,
    'call_counts',
    { id: id(), scope: text(), address: key(), window_start: timestamp(), count: integer(0) },
    { unique: [['scope', 'address', 'window_start']], indexes: [['window_start']] },
  )
}
