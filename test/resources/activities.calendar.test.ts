// The calendar feed of activities: which activities it contains, and that texts of activities
// cannot inject other properties.
import { describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const { admin } = server
const make = given(admin)

const nine = { schedule_from: '2026-03-02T09:00:00.000Z', schedule_to: '2026-03-02T09:30:00.000Z' }
const call = { type: 'call', title: 'First call', ...nine } as const

/** Returns the properties of each event, with folded lines joined. */
async function eventsOf(caller: Caller): Promise<string[][]> {
  const { text } = await caller.get('/activities/calendar.ics')
  const lines = text.replaceAll('\r\n ', '').split('\r\n')
  const starts = lines.flatMap((line, index) => (line === 'BEGIN:VEVENT' ? [index] : []))
  return starts.map((start) => lines.slice(start + 1, lines.indexOf('END:VEVENT', start)))
}

const uids = async (caller: Caller): Promise<(string | undefined)[]> =>
  (await eventsOf(caller)).map((lines) => lines.find((line) => line.startsWith('UID:')))

describe('getActivityCalendar', () => {
  it('shows an activity with its times in UTC, its people and a stable name', async () => {
    const person = await make.person({ name: 'Grace', emails: [{ value: 'grace@example.com' }] })
    const ada = await addUser(server, 'Ada')
    const { id } = await make.activity({
      ...call,
      comment: 'Bring the plan',
      location: 'Room 1',
      participants: { users: [ada.id], persons: [person.id] },
    })
    await admin.put(`/activities/${id}`, { is_done: true })
    const { status, headers, text } = await ada.get('/activities/calendar.ics')
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'text/calendar; charset=utf-8',
      'content-disposition': 'inline; filename=activities.ics',
    })
    expect(text.startsWith('BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Accord CRM//Activities//EN\r\n')).toBe(true)
    expect(await eventsOf(ada)).toEqual([
      [
        `UID:activity-${id}@localhost`,
        'SEQUENCE:2',
        'DTSTAMP:20260301T093000Z',
        'DTSTART:20260302T090000Z',
        'DTEND:20260302T093000Z',
        'SUMMARY:First call',
        'LOCATION:Room 1',
        'DESCRIPTION:Bring the plan',
        'ORGANIZER;CN="Example Admin":mailto:admin@example.com',
        'ATTENDEE;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;CN="Ada":MAILTO:ada@example.com',
        'ATTENDEE;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;CN="Grace":MAILTO:grace@example.com',
        'CATEGORIES:call',
        'STATUS:CONFIRMED',
        'X-ACCORD-IS-DONE:TRUE',
        'CREATED:20260301T093000Z',
        'LAST-MODIFIED:20260301T093000Z',
      ],
    ])
  })

  it('holds what the caller owns or takes part in, and nothing else they could see', async () => {
    const ada = await addUser(server, 'Ada')
    const own = await make.activity({ ...call, user_id: ada.id })
    const invited = await make.activity({
      ...call,
      schedule_to: '2026-03-02T10:00:00Z',
      participants: { users: [ada.id] },
    })
    await make.activity(call)
    await make.activity({ type: 'note', comment: 'No time', user_id: ada.id })
    expect(await uids(ada)).toEqual([own, invited].map(({ id }) => `UID:activity-${id}@localhost`))
  })

  it('reaches from 30 days ago to 365 days ahead', async () => {
    const at = (from: string, to: string) => make.activity({ ...call, schedule_from: from, schedule_to: to })
    await at('2026-01-30T08:00:00Z', '2026-01-30T09:29:59Z')
    const past = await at('2026-01-30T08:00:00Z', '2026-01-30T09:30:00Z')
    const future = await at('2027-03-01T09:30:00Z', '2027-03-01T10:00:00Z')
    await at('2027-03-01T09:30:01Z', '2027-03-01T10:00:00Z')
    expect(await uids(admin)).toEqual([past, future].map(({ id }) => `UID:activity-${id}@localhost`))
  })

  it('holds a thousand at most, those that begin nearest to now, and lets others have their turn', async () => {
    const from = (minute: number) => new Date(Date.parse('2026-03-01T09:30:00.000Z') + minute * 60_000).toISOString()
    const row = (minute: number) => ({
      type: 'call' as const,
      title: 'x',
      comment: 'x'.repeat(2000),
      user_id: 1,
      schedule_from: from(minute),
      schedule_to: from(minute),
      created_at: from(0),
      updated_at: from(0),
    })
    const minutes = Array.from({ length: 1100 }, (_each, index) => index - 300)
    for (let start = 0; start < minutes.length; start += 100) {
      const rows = minutes.slice(start, start + 100).map(row)
      await server.store.db.insertInto('activities').values(rows).execute()
    }
    let turns = 0
    const pulse = setInterval(() => {
      turns++
    }, 1)
    const starts = (await eventsOf(admin)).map((lines) => lines.find((line) => line.startsWith('DTSTART:')))
    clearInterval(pulse)
    expect(starts).toHaveLength(1000)
    expect(starts[0]).toBe('DTSTART:20260301T043000Z')
    expect(starts.at(-1)).toBe('DTSTART:20260301T210900Z')
    expect(turns).toBeGreaterThan(10)
  })

  it('takes every text for a text, whatever it looks like', async () => {
    const person = await make.person({ name: 'Eve";X-EVIL=1:y\nATTACH:z', emails: [{ value: 'eve@example.com' }] })
    await make.activity({
      ...call,
      title: 'Lunch;, \\n BEGIN:VEVENT',
      comment: 'a\nEND:VEVENT\nBEGIN:VEVENT\nATTACH:http://example.com/x',
      location: `${'ü'.repeat(100)}\nURL:x`,
      participants: { persons: [person.id] },
      schedule_to: nine.schedule_from,
    })
    const [lines, ...others] = await eventsOf(admin)
    expect(others).toEqual([])
    expect(lines).toContain('SUMMARY:Lunch\\;\\, \\\\n BEGIN:VEVENT')
    expect(lines).toContain('DESCRIPTION:a\\nEND:VEVENT\\nBEGIN:VEVENT\\nATTACH:http://example.com/x')
    expect(lines).toContain(`LOCATION:${'ü'.repeat(100)}\\nURL:x`)
    expect(lines?.filter((line) => line.startsWith('ATTENDEE'))).toEqual([
      `ATTENDEE;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;CN="Eve';X-EVIL=1:y ATTACH:z":MAILTO:eve@example.com`,
    ])
    expect(lines?.some((line) => /^(ATTACH|URL|DTEND)/.test(line))).toBe(false)
    const { text } = await admin.get('/activities/calendar.ics')
    expect(Math.max(...text.split('\r\n').map((line) => Buffer.byteLength(line)))).toBeLessThanOrEqual(75)
  })

  it('answers 304 until something changes', async () => {
    const { id } = await make.activity(call)
    const { headers } = await admin.get('/activities/calendar.ics')
    server.clock.advanceMs(60_000)
    const known = { headers: { 'if-none-match': String(headers.etag) } }
    expect((await admin.get('/activities/calendar.ics', known)).status).toBe(304)
    await admin.put(`/activities/${id}`, { location: 'Room 2' })
    expect((await admin.get('/activities/calendar.ics', known)).status).toBe(200)
  })
})
