// Serves the caller's activities as an iCalendar feed (RFC 5545). Calendar programs poll the feed.
// Unchanged activities produce the same bytes, so most polls match the ETag and get a 304.
import ical, { type ICalAttendeeData, ICalAttendeeStatus, ICalEventStatus } from 'ical-generator'
import { type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { type Context, requireUser } from '../../kernel/context.ts'
import { download } from '../../kernel/files/download.ts'
import type { Handler } from '../../kernel/handler.ts'
import { daysAfter, stamp } from '../../kernel/runtime/clock.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { calendarDate } from '../../kernel/values/format.ts'
import { personRef } from '../persons/contacts.ts'
import { participantAnswer } from './participants.ts'

const daysBack = 30
const daysAhead = 365
/**
 * The maximum number of events in the feed; more events slow calendar programs down. The feed keeps
 * the events nearest to the current time.
 */
const maxEvents = 1000

/**
 * Selects the scheduled activities that the caller owns or attends. The query has no visibility
 * condition, because callers may always see their own activities.
 */
function scheduledActivities(ctx: Context) {
  const { id } = requireUser(ctx)
  const participates = sql<SqlBool>`exists (select 1 from activity_participants as part where part.activity_id = activities.id and part.user_id = ${id})`
  return ctx.db
    .selectFrom('activities')
    .where(sql<SqlBool>`(activities.user_id = ${id} or ${participates})`)
    .where('activities.schedule_to', '>=', daysAfter(ctx.time, -daysBack))
    .where('activities.schedule_from', '<=', daysAfter(ctx.time, daysAhead))
}

/** Returns the activities of the feed, sorted by start. */
async function nearestActivities(ctx: Context) {
  const now = stamp(ctx.time)
  const rows = scheduledActivities(ctx)
    .leftJoin('users', 'users.id', 'activities.user_id')
    .selectAll('activities')
    .select(['users.name as user_name', 'users.email as user_email'])
    .limit(maxEvents)
  const from = 'activities.schedule_from'
  const ahead = await rows.where(from, '>=', now).orderBy(from).orderBy('activities.id').execute()
  const behind = await rows.where(from, '<', now).orderBy(from, 'desc').orderBy('activities.id', 'desc').execute()
  const begin = ({ schedule_from }: { schedule_from: string | null }): number => Date.parse(schedule_from ?? now)
  const distance = (row: { schedule_from: string | null }): number => Math.abs(begin(row) - ctx.time.getTime())
  return [...ahead, ...behind]
    .sort((one, other) => distance(one) - distance(other) || one.id - other.id)
    .slice(0, maxEvents)
    .sort((one, other) => begin(one) - begin(other) || one.id - other.id)
}

const statuses: Readonly<Record<Schema<'InvitationResponse'>, ICalAttendeeStatus>> = {
  accepted: ICalAttendeeStatus.ACCEPTED,
  tentative: ICalAttendeeStatus.TENTATIVE,
  declined: ICalAttendeeStatus.DECLINED,
}

/** Returns the participants who have an e-mail address, by activity id. */
async function attendeesOf(ctx: Context, activityIds: readonly number[]): Promise<Map<number, ICalAttendeeData[]>> {
  // PostgreSQL rejects `in ()`.
  if (activityIds.length === 0) return new Map()
  const rows = await ctx.db
    .selectFrom('activity_participants as part')
    .leftJoin('users', 'users.id', 'part.user_id')
    .leftJoin('persons', 'persons.id', 'part.person_id')
    .select(['part.activity_id', 'users.name as user_name', 'users.email as user_email'])
    .innerJoin('activities', 'activities.id', 'part.activity_id')
    .select(['persons.id as person_id', 'persons.name as person_name', 'persons.emails as person_emails'])
    .select([
      'part.response',
      'part.responded_at',
      'part.answered_from',
      'part.answered_to',
      'schedule_from',
      'schedule_to',
    ])
    .where('part.activity_id', 'in', activityIds)
    .orderBy('part.id')
    .execute()
  const found = new Map<number, ICalAttendeeData[]>()
  for (const row of rows) {
    const person = personRef(row.person_id ?? 0, row.person_name ?? '', row.person_emails ?? '[]')
    const email = row.user_email ?? person.email
    if (email === null) continue
    const { response } = participantAnswer(row, row)
    const status = response === null ? ICalAttendeeStatus.NEEDSACTION : statuses[response]
    const attendee = { name: quotable(row.user_name ?? person.name), email, status }
    found.set(row.activity_id, [...(found.get(row.activity_id) ?? []), attendee])
  }
  return found
}

/**
 * Replaces double quotes with single quotes and collapses white space. RFC 5545 encloses names in
 * double quotes and cannot escape a double quote inside a name.
 */
const quotable = (name: string): string => name.replaceAll('"', "'").replaceAll(/\s+/g, ' ').trim()

const calendarEnd = 'END:VCALENDAR'

/**
 * Folds a line so that no part exceeds 75 bytes (RFC 5545 3.1). The library's own folding takes a
 * second for 1000 activities and blocks the event loop meanwhile.
 */
function foldLine(line: string): string {
  if (Buffer.byteLength(line) <= 74) return line
  let text = ''
  let bytes = 0
  for (const char of line) {
    const size = Buffer.byteLength(char)
    const isFull = bytes + size > 74
    text += isFull ? `\r\n ${char}` : char
    bytes = isFull ? size : bytes + size
  }
  return text
}

export const getActivityCalendar: Handler<'getActivityCalendar'> = async (ctx) => {
  const rows = await nearestActivities(ctx)
  const attendees = await attendeesOf(
    ctx,
    rows.map(({ id }) => id),
  )
  const { appName, mailDomain, timezone } = ctx.services.config
  const calendar = ical({
    name: quotable(appName),
    prodId: { company: 'Accord CRM', product: 'Activities', language: 'EN' },
  })
  const frame = calendar.toString()
  const parts = [frame.slice(0, -calendarEnd.length)]
  for (const row of rows) {
    await yieldIfDue()
    const isAllDay = row.is_all_day === 1
    const day = { isAllDay, zone: timezone }
    const [from, to] = [calendarDate(row.schedule_from ?? '', day), calendarDate(row.schedule_to ?? '', day)]
    const event = calendar.createEvent({
      id: `activity-${row.id}@${mailDomain}`,
      sequence: row.version,
      stamp: new Date(row.updated_at),
      created: new Date(row.created_at),
      lastModified: new Date(row.updated_at),
      start: from,
      allDay: isAllDay,
      // iCalendar requires the end to be after the start. An event without a duration gets no end.
      end: to > from ? to : null,
      summary: row.title ?? '',
      description: row.comment,
      location: row.location,
      status: ICalEventStatus.CONFIRMED,
      categories: [{ name: row.type }],
      x: { 'X-ACCORD-IS-DONE': row.is_done === 1 ? 'TRUE' : 'FALSE' },
      ...(row.user_name !== null &&
        row.user_email !== null && { organizer: { name: quotable(row.user_name), email: row.user_email } }),
      attendees: attendees.get(row.id) ?? [],
    })
    parts.push(event.toString().split('\r\n').map(foldLine).join('\r\n'))
  }
  const body = [...parts, calendarEnd].join('')
  return download({
    mediaType: 'text/calendar; charset=utf-8',
    body,
    name: 'activities.ics',
    disposition: 'inline',
  })
}
