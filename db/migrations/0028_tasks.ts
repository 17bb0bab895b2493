// Time: tasks with a due time and a reminder, workflows that start relative to a date or to
// silence, and the last touch of a lead, from which its rotten days count. Products can be
// discontinued.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  addColumn,
  createIndex,
  createTable,
  flag,
  id,
  integer,
  json,
  nullable,
  oneOf,
  references,
  replaceColumn,
  text,
  timestamp,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addTasks(db, dialect)
  await addTimedWorkflows(db, dialect)
  await addLastTouch(db, dialect)
  await addColumn(db, dialect, 'products', 'discontinued', flag(false))
  await createIndex(db, dialect, 'products', { columns: ['discontinued', 'id'] })
}

async function addTasks(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await replaceColumn(db, dialect, ['activities', 'type'], oneOf(activityTypes, 'note'), [{ columns: ['type', 'id'] }])
  for (const name of ['due_at', 'remind_at', 'reminded_at'])
    await addColumn(db, dialect, 'activities', name, nullable(timestamp()))
  await createIndex(db, dialect, 'activities', { columns: ['due_at', 'id'] })
  await createIndex(db, dialect, 'activities', { columns: ['is_done', 'due_at'] })
  await db.schema
    .createIndex('activities_unreminded_index')
    .on('activities')
    .columns(['remind_at', 'id'])
    .where(sql<boolean>`reminded_at is null and is_done = ${sql.raw(dialect.flagLiteral(false))}`)
    .execute()
}

const activityTypes = ['call', 'meeting', 'lunch', 'task', 'note', 'file']

async function addTimedWorkflows(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await replaceColumn(db, dialect, ['workflows', 'event'], oneOf(triggers, 'lead.create.after'), [
    { columns: ['event', 'sort_order', 'id'] },
  ])
  /** The date field and the days after it, as JSON. */
  await addColumn(db, dialect, 'workflows', 'timing', nullable(json()))
  /** Only occasions after the activation count, and those until `due_until` were handled. */
  for (const name of ['due_after', 'due_until']) await addColumn(db, dialect, 'workflows', name, nullable(timestamp()))
  await createTable(
    db,
    dialect,
    'workflow_occasions',
    {
      id: id(),
      workflow_id: references('workflows', 'cascade'),
      entity_id: integer(),
      /** The field, the days and the value of the field. */
      occasion: text(),
      created_at: timestamp(),
    },
    { unique: [['workflow_id', 'entity_id', 'occasion']], indexes: [['created_at', 'id']] },
  )
}

const triggers = [
  'lead.won',
  'lead.lost',
  'lead.reopened',
  'quote.sent',
  'quote.accepted',
  'quote.declined',
  'quote.expired',
  ...['lead', 'activity', 'contacts.person', 'quote'].flatMap((noun) => [
    `${noun}.create.after`,
    `${noun}.update.after`,
    `${noun}.delete.before`,
    `${noun}.due`,
  ]),
]

/**
 * `leads.touched_at` is the last change of the stage, the last creation or completion of an
 * activity, or the last e-mail. Triggers keep it, and only ever raise it; none computes a later
 * time from a copied row than the write of this row did, so a copy of the database is equal.
 */
async function addLastTouch(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const column = { ...timestamp(), initial: '1970-01-01T00:00:00.000Z' }
  await addColumn(db, dialect, 'leads', 'touched_at', column)
  const greatest = dialect.name === 'postgres' ? 'greatest' : 'max'
  await sql`update leads set touched_at = ${sql.raw(greatest)}(stage_changed_at,
    coalesce((select max(a.created_at) from lead_activities l join activities a on a.id = l.activity_id
      where l.lead_id = leads.id), stage_changed_at),
    coalesce((select max(e.created_at) from emails e where e.lead_id = leads.id and e.status <> 'draft'),
      stage_changed_at))`.execute(db)
  await createIndex(db, dialect, 'leads', { columns: ['touched_at', 'id'] })
  if (dialect.name === 'postgres') {
    const { rows } = await sql<{ schema: string }>`select quote_ident(current_schema()) as schema`.execute(db)
    for (const statement of onPostgres(rows[0]?.schema ?? 'public')) await sql.raw(statement).execute(db)
  } else for (const statement of onSqlite) await sql.raw(statement).execute(db)
}

/** Raises the column of the leads that meet the condition to the time. */
const raise = (leads: string, time: string, lead: string): string =>
  `update ${leads} set touched_at = ${time} where ${lead} and touched_at < ${time};`
const newEmail = "new.lead_id is not null and new.status <> 'draft'"
const linkedLeads = (links: string): string => `id in (select lead_id from ${links} where activity_id = new.id)`
const addedAt = (activities: string): string => `(select created_at from ${activities} where id = new.activity_id)`

const onSqlite = [
  `create trigger leads_touched_insert after insert on leads when new.touched_at < new.stage_changed_at
    begin ${raise('leads', 'new.stage_changed_at', 'id = new.id')} end`,
  `create trigger leads_touched_move after update of stage_changed_at on leads when new.touched_at < new.stage_changed_at
    begin ${raise('leads', 'new.stage_changed_at', 'id = new.id')} end`,
  `create trigger leads_touched_activity after insert on lead_activities
    begin ${raise('leads', addedAt('activities'), 'id = new.lead_id')} end`,
  `create trigger leads_touched_done after update of is_done on activities when old.is_done <> new.is_done
    begin ${raise('leads', 'new.updated_at', linkedLeads('lead_activities'))} end`,
  `create trigger leads_touched_email after insert on emails when ${newEmail}
    begin ${raise('leads', 'new.created_at', 'id = new.lead_id')} end`,
  `create trigger leads_touched_link after update of lead_id on emails when ${newEmail}
    begin ${raise('leads', 'new.created_at', 'id = new.lead_id')} end`,
  `create trigger leads_touched_sent after update of status on emails when ${newEmail} and old.status = 'draft'
    begin ${raise('leads', 'new.updated_at', 'id = new.lead_id')} end`,
]

function onPostgres(schema: string): string[] {
  const leads = `${schema}.leads`
  const trigger = (name: string, on: string, body: string): string[] => [
    `create function accord_touch_${name}() returns trigger language plpgsql as $$ begin ${body} return null; end $$`,
    `create trigger leads_touched_${name} after ${on} execute function accord_touch_${name}()`,
  ]
  const ofEmail = (time: string): string => raise(leads, time, 'id = new.lead_id')
  return [
    `create function accord_touch_move() returns trigger language plpgsql as $$ begin
      new.touched_at = greatest(new.touched_at, new.stage_changed_at); return new; end $$`,
    `create trigger leads_touched_move before insert or update of stage_changed_at on leads
      for each row execute function accord_touch_move()`,
    ...trigger(
      'activity',
      'insert on lead_activities for each row',
      raise(leads, addedAt(`${schema}.activities`), 'id = new.lead_id'),
    ),
    ...trigger(
      'done',
      'update of is_done on activities for each row when (old.is_done <> new.is_done)',
      raise(leads, 'new.updated_at', linkedLeads(`${schema}.lead_activities`)),
    ),
    ...trigger('email', `insert on emails for each row when (${newEmail})`, ofEmail('new.created_at')),
    ...trigger('link', `update of lead_id on emails for each row when (${newEmail})`, ofEmail('new.created_at')),
    ...trigger(
      'sent',
      `update of status on emails for each row when (${newEmail} and old.status = 'draft')`,
      ofEmail('new.updated_at'),
    ),
  ]
}
