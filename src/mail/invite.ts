// Builds an invitation for calendar programs (RFC 5546) with one event and its organizer. A
// calendar program replaces the event when the same `uid` arrives with a higher `sequence`.
import ical, { ICalAttendeeRole, ICalAttendeeStatus, ICalCalendarMethod, ICalEventStatus } from 'ical-generator'
import { withoutControls } from './failures.ts'

export interface Invitation {
  /** The id of the event, which never changes: `activity-<id>@<mail domain>`. */
  uid: string
  /** The version number of the event. */
  sequence: number
  start: Date
  end: Date
  /** Whether the event takes whole days. `start` and `end` are then the starts of days in UTC. */
  isAllDay: boolean
  summary: string
  location: string | null
  organiser: { name: string; email: string } | null
  attendees: { name: string; email: string }[]
  /**
   * The time of this version of the event. The caller passes the time, so that the same invitation
   * always has the same bytes.
   */
  created: Date
  method: 'REQUEST' | 'CANCEL'
}

export function inviteOf(invitation: Invitation): string {
  const { uid, sequence, start, end, isAllDay, summary, location, organiser, attendees, created, method } = invitation
  const calendar = ical({
    prodId: { company: 'Accord CRM', product: 'Activities', language: 'EN' },
    method: ICalCalendarMethod[method],
  })
  calendar.createEvent({
    id: withoutControls(uid),
    sequence,
    stamp: created,
    created,
    lastModified: created,
    start,
    allDay: isAllDay,
    // iCalendar does not allow an end equal to the start, so such an event has no end.
    end: end > start ? end : null,
    summary: withoutControls(summary),
    location: location === null ? null : withoutControls(location),
    status: method === 'CANCEL' ? ICalEventStatus.CANCELLED : ICalEventStatus.CONFIRMED,
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

/**
 * Returns a name without double quotes. RFC 5545 puts names between double quotes and has no escape
 * for a double quote in a name.
 */
const quotable = (name: string): string => withoutControls(name).replaceAll('"', "'")
