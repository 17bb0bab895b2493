// The caller's schedule for calendar programs (RFC 5545): what they own or take part in. A program that subscribes asks again
// and again, so the same activities make the same bytes and its ETag spares it the rest.
import { createHash } from 'node:crypto'
import ical, { type ICalAttendeeData, ICalAttendeeStatus, ICalEventStatus } from 'ical-generator'
import { type SqlBool, sql } from 'kysely'
import { daysAfter } from '../../kernel/clock.ts'
import { type Context, signedIn } from '../../kernel/context.ts'
import { download } from '../../kernel/download.ts'
import type { Handler } from '../../kernel/handler.ts'
import { personRef } from '../persons/contacts.ts'

const daysBack = 30
const daysAhead = 365

/** Scheduled activities of the caller within reach, the first to begin first. Own ones are visible by nature. */
function schedule(ctx: Context) {
  const { id } = signedIn(ctx)
  const participates = sql<SqlBool>`exists (select 1 from activity_participants as part where part.activity_id = activities.id and part.user_id = ${id})`
  return ctx.db
    .selectFrom('activities')
    .where(sql<SqlBool>`(activities.user_id = ${id} or ${participates})`)
    .where('activities.schedule_to', '>=', daysAfter(ctx.time, -daysBack))
    .where('activities.schedule_from', '<=', daysAfter(ctx.time, daysAhead))
}

/** Those who take part and can be reached, by activity. */
async function attendeesOf(ctx: Context): Promise<Map<number, ICalAttendeeData[]>> {
  const rows = await ctx.db
    .selectFrom('activity_participants as part')
    .leftJoin('users', 'users.id', 'part.user_id')
    .leftJoin('persons', 'persons.id', 'part.person_id')
    .select(['part.activity_id', 'users.name as user_name', 'users.email as user_email'])
    .select(['persons.id as person_id', 'persons.name as person_name', 'persons.emails as person_emails'])
    .where('part.activity_id', 'in', schedule(ctx).select('activities.id'))
    .orderBy('part.id')
    .execute()
  const found = new Map<number, ICalAttendeeData[]>()
  for (const row of rows) {
    const person = personRef(row.person_id ?? 0, row.person_name ?? '', row.person_emails ?? '[]')
    const email = row.user_email ?? person.email
    if (email === null) continue
    const attendee = { name: plain(row.user_name ?? person.name), email, status: ICalAttendeeStatus.NEEDSACTION }
    found.set(row.activity_id, [...(found.get(row.activity_id) ?? []), attendee])
  }
  return found
}

/** Names stand between quotes, where RFC 5545 knows no escape. */
const plain = (name: string): string => name.replaceAll('"', "'").replaceAll(/\s+/g, ' ').trim()

export const getActivityCalendar: Handler<'getActivityCalendar'> = async (ctx) => {
  const rows = await schedule(ctx)
    .leftJoin('users', 'users.id', 'activities.user_id')
    .selectAll('activities')
    .select(['users.name as user_name', 'users.email as user_email'])
    .orderBy('activities.schedule_from')
    .orderBy('activities.id')
    .execute()
  const attendees = await attendeesOf(ctx)
  const { appName, mailDomain } = ctx.services.config
  const calendar = ical({
    name: plain(appName),
    prodId: { company: 'Accord CRM', product: 'Activities', language: 'EN' },
  })
  for (const row of rows) {
    const [from, to] = [new Date(row.schedule_from ?? 0), new Date(row.schedule_to ?? 0)]
    calendar.createEvent({
      id: `activity-${row.id}@${mailDomain}`,
      sequence: row.version,
      stamp: new Date(row.updated_at),
      created: new Date(row.created_at),
      lastModified: new Date(row.updated_at),
      start: from,
      // An end at the start is no end to iCalendar.
      end: to > from ? to : null,
      summary: row.title ?? '',
      description: row.comment,
      location: row.location,
      status: ICalEventStatus.CONFIRMED,
      categories: [{ name: row.type }],
      x: { 'X-ACCORD-IS-DONE': row.is_done === 1 ? 'TRUE' : 'FALSE' },
      ...(row.user_name !== null &&
        row.user_email !== null && { organizer: { name: plain(row.user_name), email: row.user_email } }),
      attendees: attendees.get(row.id) ?? [],
    })
  }
  const body = calendar.toString()
  return download({
    mediaType: 'text/calendar; charset=utf-8',
    body,
    name: 'activities.ics',
    disposition: 'inline',
    etag: `"${createHash('sha256').update(body).digest('base64url')}"`,
  })
}
