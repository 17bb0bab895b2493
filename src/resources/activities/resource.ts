// Calls, meetings, lunches and notes (DOMAIN 13): what each type needs, and how the parts beside this file come together.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { flag, linked, time, value } from '../../kernel/filter.ts'
import { fold } from '../../kernel/format.ts'
import type { HandlersFor } from '../../kernel/handler.ts'
import { massDestroy, massUpdate } from '../../kernel/mass.ts'
import { expand } from '../../kernel/references.ts'
import { defineResource, type Writing } from '../../kernel/resource.ts'
import { leads } from '../leads/resource.ts'
import { persons } from '../persons/resource.ts'
import { ownerOf, userRef } from '../users/owner.ts'
import { users } from '../users/resource.ts'
import { checkLinks, gatherLinks, settleLinks, visibleActivity } from './links.ts'
import { refuseOverlap } from './overlap.ts'
import { checkParticipants, gatherParticipants, settleParticipants } from './participants.ts'

type Body = Schema<'ActivityUpdate'>
type Type = Schema<'Activity'>['type']
type Text = 'title' | 'comment' | 'schedule_from' | 'schedule_to'

interface Current {
  id: number
  type: string
  title: string | null
  comment: string | null
  schedule_from: string | null
  schedule_to: string | null
  is_done: number
  user_id: number | null
}

const scheduled: readonly Text[] = ['title', 'schedule_from', 'schedule_to']
const required: Record<Type, readonly Text[]> = {
  call: scheduled,
  meeting: scheduled,
  lunch: scheduled,
  note: ['comment'],
}

const linkedTo = (noun: 'lead' | 'person' | 'organization' | 'product') =>
  linked(`${noun}_activities`, 'activities.id', 'activity_id', `${noun}_id`)
const attendedBy = (column: 'user_id' | 'person_id') =>
  linked('activity_participants', 'activities.id', 'activity_id', column)

/** What the activity will say once the body is merged into it. A note has no schedule, whatever is sent. */
function mergeTexts(body: Body, { current, found }: Writing<Current>, type: Type): Record<Text, string | null> {
  const merged = (name: Text): string | null => (body[name] === undefined ? (current?.[name] ?? null) : body[name])
  const texts = {
    title: merged('title'),
    comment: merged('comment'),
    schedule_from: merged('schedule_from'),
    schedule_to: merged('schedule_to'),
  }
  if (type === 'note') Object.assign(texts, { schedule_from: null, schedule_to: null })
  for (const name of required[type]) if (texts[name] === null) found.invalid(name, 'The field is required.')
  // Both are stored in one form, in which the order of texts is the order of time.
  if (texts.schedule_from !== null && texts.schedule_to !== null && texts.schedule_to < texts.schedule_from) {
    found.invalid('schedule_to', 'Must not be before schedule_from.')
  }
  return texts
}

async function columnsOf(body: Body, writing: Writing<Current>): Promise<Record<string, unknown>> {
  const { ctx, current, found } = writing
  const type = (current?.type ?? body.type ?? 'note') as Type
  if (body.type !== undefined && body.type !== type) found.invalid('type', 'The type of an activity cannot be changed.')
  const texts = mergeTexts(body, writing, type)
  const owner = await ownerOf(writing, body.user_id)
  const isDone = body.is_done ?? (current ? current.is_done === 1 : type === 'note')
  const { attendees, isChanged } = await checkParticipants(writing, body.participants)
  await checkLinks(writing, body)

  const { schedule_from: from, schedule_to: to } = texts
  const isMoved =
    !current || isChanged || owner !== undefined || from !== current.schedule_from || to !== current.schedule_to
  if (
    type === 'meeting' &&
    !isDone &&
    isMoved &&
    body.allow_overlap !== true &&
    from !== null &&
    to !== null &&
    !found.any
  ) {
    const ids = (column: 'user_id' | 'person_id'): number[] =>
      attendees.filter((each) => each.column === column).map(({ id }) => id)
    const ownerId = owner === undefined ? (current?.user_id ?? null) : owner
    await refuseOverlap(ctx, {
      id: current?.id ?? null,
      from,
      to,
      users: [...(ownerId === null ? [] : [ownerId]), ...ids('user_id')],
      persons: ids('person_id'),
    })
  }
  return {
    type,
    ...texts,
    title_key: texts.title === null ? null : fold(texts.title),
    location: body.location,
    is_done: isDone ? 1 : 0,
    user_id: owner,
  }
}

export const activities = defineResource({
  noun: 'activity',
  table: 'activities',
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
      .select(['users.name as user_name', 'users.email as user_email'])
      .where(visibleActivity(ctx)),
  sort: {
    id: 'activities.id',
    title: 'activities.title_key',
    type: 'activities.type',
    is_done: 'activities.is_done',
    schedule_from: 'activities.schedule_from',
    schedule_to: 'activities.schedule_to',
    created_at: 'activities.created_at',
    updated_at: 'activities.updated_at',
  },
  filter: () => ({
    type: value('activities.type'),
    is_done: flag('activities.is_done'),
    user_id: value('activities.user_id'),
    lead_id: linkedTo('lead'),
    person_id: linkedTo('person'),
    organization_id: linkedTo('organization'),
    product_id: linkedTo('product'),
    participant_user_id: attendedBy('user_id'),
    participant_person_id: attendedBy('person_id'),
    schedule_from: time('activities.schedule_from'),
    schedule_to: time('activities.schedule_to'),
  }),
  search: [{ key: 'activities.title_key' }, { text: 'activities.comment' }, { text: 'activities.location' }],
  columns: columnsOf,
  present: (row): Schema<'Activity'> => ({
    id: row.id,
    type: row.type as Type,
    title: row.title,
    comment: row.comment,
    location: row.location,
    schedule_from: row.schedule_from,
    schedule_to: row.schedule_to,
    is_done: row.is_done === 1,
    user_id: row.user_id,
    user: userRef(row.user_id, row.user_name, row.user_email),
    participants: [],
    lead_ids: [],
    person_ids: [],
    organization_ids: [],
    product_ids: [],
    leads: [],
    persons: [],
    organizations: [],
    products: [],
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  gather: async (ctx, replies, include) => {
    await gatherParticipants(ctx, replies, include)
    await gatherLinks(ctx, replies)
    await expand(ctx, replies, include, { user: () => users, leads: () => leads, persons: () => persons })
  },
  settle: async (ctx, id, body) => {
    await settleParticipants(ctx, id, body.participants)
    await settleLinks(ctx, id, body)
  },
})

export const handlers: HandlersFor<
  | 'listActivities'
  | 'getActivity'
  | 'createActivity'
  | 'updateActivity'
  | 'deleteActivity'
  | 'massUpdateActivities'
  | 'massDestroyActivities'
> = {
  ...activities.handlers,
  massUpdateActivities: massUpdate(activities, (ctx, id, isDone: boolean) =>
    activities.update(ctx, id, { is_done: isDone }),
  ),
  massDestroyActivities: massDestroy(activities),
}

/** Activities that go to another owner because theirs is deleted: a clash of meetings must not keep a user from going. */
export const inheritedActivities = {
  table: activities.table,
  update: (ctx: Context, id: number, owner: { user_id?: number | null }) =>
    activities.update(ctx, id, { ...owner, allow_overlap: true }),
}
