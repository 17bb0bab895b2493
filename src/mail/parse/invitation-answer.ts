// Reads the answers to invitations that calendar programs send by e-mail: iTIP replies (RFC 5546,
// 3.2.3) in a part text/calendar.
import { convertIcsCalendar, type IcsDateObject } from 'ts-ics'
import { parseMailboxes } from '../addresses.ts'

/** The answer of one attendee. */
export interface InvitationAnswer {
  /** The id of the event, as the invitation named it. */
  uid: string
  address: string
  response: 'accepted' | 'tentative' | 'declined'
  /** When the attendee answered (DTSTAMP), in ISO 8601; null when the reply does not say it. */
  at: string | null
}

interface Part {
  name: string
  contentType: string
  bytes: Uint8Array
}

const maxBytes = 32 * 1024
const maxAnswers = 20
const responses: Readonly<Record<string, InvitationAnswer['response']>> = {
  ACCEPTED: 'accepted',
  TENTATIVE: 'tentative',
  DECLINED: 'declined',
}

/** Returns the answers in the calendar parts of an e-mail. Other calendar parts have none. */
export const answersOf = (parts: readonly Part[]): InvitationAnswer[] =>
  parts
    .filter(({ name, contentType }) => contentType === 'text/calendar' || /\.ics$/i.test(name))
    .filter(({ bytes }) => bytes.length <= maxBytes)
    .slice(0, 2)
    .flatMap(({ bytes }) => answersIn(Buffer.from(bytes).toString('utf8')))
    .slice(0, maxAnswers)

function answersIn(text: string): InvitationAnswer[] {
  if (!/^METHOD:REPLY\s*$/im.test(text)) return []
  try {
    const { events = [] } = convertIcsCalendar(undefined, text)
    return events.flatMap(({ uid, stamp, attendees = [] }) =>
      attendees.flatMap(({ email, partstat = '' }): InvitationAnswer[] => {
        const response = responses[partstat.toUpperCase()]
        const [mailbox] = parseMailboxes(email.replace(/^mailto:/i, ''))
        if (typeof uid !== 'string' || response === undefined || mailbox === undefined) return []
        return [{ uid, address: mailbox.address, response, at: dateOf(stamp) }]
      }),
    )
  } catch {
    // The e-mail is stored with its calendar as a file.
    return []
  }
}

function dateOf(stamp: IcsDateObject | undefined): string | null {
  const date = stamp?.date
  return date === undefined || Number.isNaN(date.getTime()) ? null : date.toISOString()
}
