// An invitation for calendar programs (RFC 5546): one event, asked for by its organiser. The same event with a higher
// `sequence` and the same `uid` replaces the earlier one there.
import ical, { ICalAttendeeRole, ICalAttendeeStatus, ICalCalendarMethod, ICalEventStatus } from 'ical-generator'
import { withoutControls } from './failures.ts'

export interface Invitation {
  /** Stable for the life of the event: `activity-<id>@<mail domain>`. */
  uid: string
  /** The version of the event. */
  sequence: number
  start: Date
  end: Date
  summary: string
  description: string | null
  location: string | null
  organiser: { name: string; email: string } | null
  attendees: { name: string; email: string }[]
  /** When this state of the event came to be; the same invitation makes the same bytes. */
  created: Date
  method: 'REQUEST'
}

export function inviteOf(invitation: Invitation): string {
  const { uid, sequence, start, end, summary, description, location, organiser, attendees, created } = invitation
  const calendar = ical({
    prodId: { company: 'Accord CRM', product: 'Activities', language: 'EN' },
    method: ICalCalendarMethod.REQUEST,
  })
  calendar.createEvent({
    id: withoutControls(uid),
    sequence,
    stamp: created,
    created,
    lastModified: created,
    start,
    // An end at the start is no end to iCalendar.
    end: end > start ? end : null,
    summary: withoutControls(summary),
    description,
    location: location === null ? null : withoutControls(location),
    status: ICalEventStatus.CONFIRMED,
    ...(organiser && { organizer: { name: quotable(organiser.name), email: withoutControls(organiser.email) } }),
    attendees: attendees.map(({ name, email }) => ({
      name: quotable(name),
      email: withoutControls(email),
      role: ICalAttendeeRole.REQ,
      status: ICalAttendeeStatus.NEEDSACTION,
      rsvp: true,
    })),
  })
  return calendar.toString()
}

/** Names stand between quotes, where RFC 5545 knows no escape. */
const quotable = (name: string): string => withoutControls(name).replaceAll('"', "'")
