// Validates activities by type, beyond the schema of the body.
import { DateTime } from 'luxon'
import type { Schema } from '../../contract/types.ts'
import { warn } from '../../kernel/context.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { textKey } from '../../kernel/values/names.ts'
import { resolveOwnerId } from '../users/owner.ts'
import { checkFiles, type FileInput } from './files.ts'
import { checkLinks } from './links.ts'
import { refuseOverlap } from './overlap.ts'
import { type Attendee, checkParticipants } from './participants.ts'

export type ActivityBody = Schema<'ActivityUpdate'> & FileInput
export type ActivityType = Schema<'Activity'>['type']
type Text = 'title' | 'comment' | 'schedule_from' | 'schedule_to' | 'due_at' | 'remind_at'

interface Current {
  id: number
  type: string
  title: string | null
  comment: string | null
  schedule_from: string | null
  schedule_to: string | null
  due_at: string | null
  remind_at: string | null
  is_all_day: number
  is_done: number
  user_id: number | null
}

const scheduleFields: readonly Text[] = ['title', 'schedule_from', 'schedule_to']
const requiredFields: Record<ActivityType, readonly Text[]> = {
  call: scheduleFields,
  meeting: scheduleFields,
  lunch: scheduleFields,
  task: ['title'],
  note: ['comment'],
  file: [],
}

/**
 * Returns whether the type is a note or a file. These types have no schedule and are created as
 * done.
 */
const isRecord = (type: ActivityType): boolean => type === 'note' || type === 'file'

/** Returns the fields that activities of the type never have. */
const absentFields = (type: ActivityType) => [
  ...(isRecord(type) || type === 'task' ? (['schedule_from', 'schedule_to', 'is_all_day'] as const) : []),
  ...(type === 'task' ? [] : (['due_at', 'remind_at'] as const)),
]

/** Returns the text fields of the activity after the body is merged into the stored activity. */
function mergeTexts(
  body: ActivityBody,
  { current, errors }: Writing<Current>,
  type: ActivityType,
): Record<Text, string | null> {
  const merged = (name: Text): string | null => (body[name] === undefined ? (current?.[name] ?? null) : body[name])
  const texts = {
    title: merged('title'),
    comment: merged('comment'),
    schedule_from: merged('schedule_from'),
    schedule_to: merged('schedule_to'),
    due_at: merged('due_at'),
    remind_at: merged('remind_at'),
  }
  for (const name of absentFields(type)) if (name !== 'is_all_day') texts[name] = null
  for (const name of requiredFields[type]) if (texts[name] === null) errors.invalid(name, 'The field is required.')
  // All times are stored in one sortable format, so a comparison of the texts compares the times.
  if (texts.schedule_from !== null && texts.schedule_to !== null && texts.schedule_to < texts.schedule_from) {
    errors.invalid('schedule_to', 'Must not be before schedule_from.')
  }
  return texts
}

/**
 * Returns the start of the first day, and the start of the day after the last one. Returns null
 * when a start cannot be stored.
 */
function wholeDays({ schedule_from: from, schedule_to: to }: Record<Text, string | null>, zone: string) {
  if (from === null || to === null || to < from) return {}
  const [first, last] = [from, to].map((time) => DateTime.fromISO(time, { zone }).startOf('day')) as [
    DateTime,
    DateTime,
  ]
  // A day may begin at 01:00, after a change of the clock.
  const end = last > first ? last : first.plus({ days: 1 }).startOf('day')
  if (first.toUTC().year < 1 || end.toUTC().year > 9999) return null
  return { schedule_from: stamp(first.toJSDate()), schedule_to: stamp(end.toJSDate()) }
}

export async function toActivityRow(body: ActivityBody, writing: Writing<Current>) {
  const { current, errors } = writing
  const type = (current?.type ?? body.type ?? 'note') as ActivityType
  if (body.type !== undefined && body.type !== type)
    errors.invalid('type', 'The type of an activity cannot be changed.')
  const isAllDay =
    !absentFields(type).some((name) => name === 'is_all_day') && (body.is_all_day ?? current?.is_all_day === 1)
  const texts = mergeTexts(body, writing, type)
  for (const name of absentFields(type))
    if (body[name]) warn(writing.ctx, name, `A ${type} does not have this field, so the value was left out.`)
  if (isAllDay) {
    const days = wholeDays(texts, writing.ctx.services.config.timezone)
    if (days === null) errors.invalid('schedule_to', 'The days must be in the years 1 to 9999.')
    else Object.assign(texts, days)
  }
  const owner = await resolveOwnerId(writing, body.user_id)
  const isDone = body.is_done ?? (current ? current.is_done === 1 : isRecord(type))
  const { attendees, isChanged } = await checkParticipants(writing, body.participants)
  await checkLinks(writing, body)
  await checkFiles(writing, type, body)

  const { schedule_from: from, schedule_to: to } = texts
  const isMoved =
    !current ||
    isChanged ||
    owner !== undefined ||
    from !== current.schedule_from ||
    to !== current.schedule_to ||
    // Overlaps are not checked while a meeting is done, so reopening the meeting checks them.
    current.is_done === 1
  const isOpenMeeting = type === 'meeting' && !isDone
  if (isOpenMeeting && isMoved && body.allow_overlap !== true && from !== null && to !== null && !errors.any) {
    const ownerId = owner === undefined ? (current?.user_id ?? null) : owner
    await refuseOverlap(writing.ctx, { id: current?.id ?? null, from, to, ...idsOfAttendees(attendees, ownerId) })
  }
  return {
    type,
    ...texts,
    title_key: texts.title === null ? null : textKey(texts.title),
    location: body.location,
    is_all_day: isAllDay ? 1 : 0,
    is_done: isDone ? 1 : 0,
    // A new time reminds again.
    ...(texts.remind_at !== (current?.remind_at ?? null) && { reminded_at: null }),
    ...(body.notify !== undefined && { notify: body.notify ? 1 : 0 }),
    user_id: owner,
  }
}

/** Returns the ids of the users and persons who attend the meeting, including the owner. */
function idsOfAttendees(
  attendees: readonly Attendee[],
  ownerId: number | null,
): { users: number[]; persons: number[] } {
  const ids = (column: Attendee['column']): number[] =>
    attendees.filter((each) => each.column === column).map(({ id }) => id)
  return { users: [...(ownerId === null ? [] : [ownerId]), ...ids('user_id')], persons: ids('person_id') }
}
