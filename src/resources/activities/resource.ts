// Defines the activities resource: calls, meetings, lunches, tasks, notes and files.

import { type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { flagConditionField, flagField, linkedField, timeField, valueField } from '../../kernel/query/filter.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { expandReferences } from '../../kernel/resource/references.ts'
import { leads } from '../leads/resource.ts'
import { persons } from '../persons/resource.ts'
import { userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { users } from '../users/resource.ts'
import { attachNewFiles, loadFiles } from './files.ts'
import { activitiesInSight, loadLinks, type Noun, noLinks, saveLinks, visibleActivity } from './links.ts'
import { loadParticipants, saveParticipants } from './participants.ts'
import { type ActivityBody, type ActivityType, toActivityRow } from './rules.ts'
import { searchDocument } from './search-document.ts'

const linkedTo = (noun: Noun) => linkedField(`${noun}_activities`, 'activities.id', 'activity_id', `${noun}_id`)
const relatedBy = (noun: 'lead' | 'person' | 'organization') =>
  ({
    entity: `${noun}s`,
    column: 'activities.id',
    link: { table: `${noun}_activities`, owner: 'activity_id', related: `${noun}_id` },
  }) as const
const attendedBy = (column: 'user_id' | 'person_id') =>
  linkedField('activity_participants', 'activities.id', 'activity_id', column)

/** Selects the open activities that are past their due time; only tasks have one. */
const overdueFilter = (ctx: Context) =>
  flagConditionField((wanted) => {
    const isOverdue = sql<SqlBool>`(activities.is_done = ${0} and activities.due_at < ${now(ctx)})`
    return wanted ? isOverdue : sql<SqlBool>`(${isOverdue}) is not true`
  })

export const activities = defineResource({
  noun: 'activity',
  table: 'activities',
  externalIds: { table: 'activity_external_ids', column: 'activity_id' },
  operations: {
    list: 'listActivities',
    get: 'getActivity',
    create: 'createActivity',
    update: 'updateActivity',
    delete: 'deleteActivity',
  },
  rows: (ctx, db) =>
    db
      .selectFrom('activities')
      .leftJoin('users', 'users.id', 'activities.user_id')
      .selectAll('activities')
      .select(['users.name as user_name', 'users.email as user_email', 'users.image_file_id as user_image'])
      .where(visibleActivity(ctx)),
  idsInSight: activitiesInSight,
  sort: {
    id: 'activities.id',
    title: 'activities.title_key',
    type: 'activities.type',
    is_done: 'activities.is_done',
    schedule_from: 'activities.schedule_from',
    schedule_to: 'activities.schedule_to',
    due_at: 'activities.due_at',
    created_at: 'activities.created_at',
    updated_at: 'activities.updated_at',
  },
  filter: {
    type: valueField('activities.type'),
    is_done: flagField('activities.is_done'),
    user_id: valueField('activities.user_id'),
    lead_id: linkedTo('lead'),
    person_id: linkedTo('person'),
    organization_id: linkedTo('organization'),
    product_id: linkedTo('product'),
    warehouse_id: linkedTo('warehouse'),
    quote_id: linkedTo('quote'),
    participant_user_id: attendedBy('user_id'),
    participant_person_id: attendedBy('person_id'),
    schedule_from: timeField('activities.schedule_from'),
    schedule_to: timeField('activities.schedule_to'),
    due_at: timeField('activities.due_at'),
    overdue: overdueFilter,
  },
  related: { lead: relatedBy('lead'), person: relatedBy('person'), organization: relatedBy('organization') },
  searchDocument,
  search: [
    { indexed: 'activities' },
    { key: 'activities.title_key' },
    { text: 'activities.comment' },
    { text: 'activities.location' },
  ],
  governs: ['type'],
  withoutColumn: {
    participants: 'rows',
    allow_overlap: 'this request',
    lead_ids: 'links',
    person_ids: 'links',
    organization_ids: 'links',
    product_ids: 'links',
    warehouse_ids: 'links',
    quote_ids: 'links',
    lead_id: 'links',
    person_id: 'links',
    organization_id: 'links',
    product_id: 'links',
    warehouse_id: 'links',
    quote_id: 'links',
    file_ids: 'rows',
    file: 'rows',
    name: 'rows',
  },
  toRow: async (body, writing) => ({
    columns: await toActivityRow(body, writing),
    save: async (ctx, id) => {
      await saveParticipants(ctx, id, body.participants)
      await saveLinks(ctx, id, body)
    },
  }),
  toReply: (row, ctx): Schema<'Activity'> => ({
    id: row.id,
    type: row.type as ActivityType,
    title: row.title,
    comment: row.comment,
    additional: null,
    location: row.location,
    schedule_from: row.schedule_from,
    schedule_to: row.schedule_to,
    is_all_day: row.is_all_day === 1,
    due_at: row.due_at,
    remind_at: row.remind_at,
    is_done: row.is_done === 1,
    overdue: row.is_done === 0 && row.due_at !== null && row.due_at < now(ctx),
    notify: row.notify === 1,
    user_id: row.user_id,
    user: userRef(row.user_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
    participants: [],
    files: [],
    ...noLinks(),
    parent_id: null,
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  loadRelated: async (ctx, replies, include) => {
    await loadParticipants(ctx, replies, include)
    await loadFiles(ctx, replies)
    await loadLinks(ctx, replies)
    await expandReferences(ctx, replies, include, { user: () => users, leads: () => leads, persons: () => persons })
  },
  saveLinks: (ctx, id, body: ActivityBody) => attachNewFiles(ctx, id, body),
})

/**
 * Transfers the activities of a deleted user to another owner. The update allows overlaps, because
 * the meetings of the two owners may overlap.
 */
export const inheritedActivities = {
  table: activities.table,
  update: (ctx: Context, id: number, owner: { user_id?: number | null }) =>
    activities.update(ctx, id, { ...owner, allow_overlap: true }),
}
