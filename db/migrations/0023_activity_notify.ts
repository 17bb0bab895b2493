// Invitations on request: activities get the column `notify`. The workflows of a new installation
// sent an e-mail to the participants of every activity. Those that were never edited now send it on
// request, and a third one cancels the meeting of a deleted activity.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, flag } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'activities', 'notify', flag(false))
  for (const { name, conditions } of notices)
    await sql`update workflows set conditions = ${JSON.stringify(conditions)}
      where name = ${name} and version = 1`.execute(db)
  await addCancellation(db)
}

// Written out, so that later changes of the program do not change this migration.
const invitable = [
  { attribute: 'type', operator: '{}', value: ['call', 'meeting', 'lunch'] },
  { attribute: 'notify', operator: '==', value: true },
  { attribute: 'schedule_to', operator: '>=', value: '{{today}}' },
]
const created = 'Tell participants of a created activity'
const cancelled = 'Tell participants of a cancelled activity'
const notices = [
  { name: created, conditions: invitable },
  {
    name: 'Tell participants of a modified activity',
    conditions: [...invitable, { attribute: 'is_rescheduled', operator: '==', value: true }],
  },
]

/** Copies the workflow and the template of created activities; a new installation has none yet. */
async function addCancellation(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ id: number }>`
    insert into email_templates (name, name_key, subject, content, created_at, updated_at)
    select 'Activity cancelled', 'activity cancelled',
      'Cancelled: {%activities.title%}, {%activities.schedule_from%}', t.content, w.created_at, w.updated_at
    from workflows w join email_templates t on t.name = 'Activity created'
    where w.name = ${created} and w.version = 1
      and not exists (select 1 from email_templates e where e.name_key = 'activity cancelled')
      and not exists (select 1 from workflows e where e.name = ${cancelled})
    returning id`.execute(db)
  const template = rows[0]?.id
  if (template === undefined) return
  const actions = JSON.stringify([{ id: 'send_email_to_participants', attribute: null, value: template }])
  const { rows: made } = await sql<{ id: number }>`
    insert into workflows (name, name_key, entity_type, event, condition_type, conditions, actions, is_active,
      sort_order, changed_by_id, events_after, created_at, updated_at)
    select ${cancelled}, ${cancelled.toLowerCase()}, 'activities', 'activity.delete.before', 'and',
      ${JSON.stringify(invitable)}, ${actions}, is_active, 3, changed_by_id,
      (select coalesce(max(id), 0) from events), created_at, updated_at
    from workflows where name = ${created}
    returning id`.execute(db)
  for (const { id } of made)
    await sql`insert into stored_references (from_type, from_id, field, to_type, to_id)
      values ('workflows', ${id}, 'actions', 'email-templates', ${template})`.execute(db)
}
