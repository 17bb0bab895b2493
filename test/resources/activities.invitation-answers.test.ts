// The answers to invitations that calendar programs send by e-mail (iTIP replies).
import { describe, expect, it } from 'vitest'
import { form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'

const inboundSecret = 'open: sesame'
const server = useServer({ config: { inboundSecret, mailDomain: 'crm.example.com' } })
const make = given(server.admin)

const times = { schedule_from: '2026-03-02T09:00:00.000Z', schedule_to: '2026-03-02T09:30:00.000Z' }

async function meeting(): Promise<{ id: number; version: number }> {
  const ada = await make.person({ name: 'Ada', emails: [{ value: 'ada@example.com', label: 'work' }] })
  const bob = await make.person({ name: 'Bob', emails: [{ value: 'bob@example.com', label: 'work' }] })
  const body = { type: 'meeting', title: 'Demo', ...times, participants: { users: [1], persons: [ada.id, bob.id] } }
  const made = await server.admin.post('/activities', body)
  expect(made.status, made.text).toBe(201)
  return made.body.data
}

interface Answer {
  from?: string
  sender?: string
  attendee?: string
  partstat?: string
  stamp?: string
  method?: string
}

/** Returns a reply in the manner of a calendar program. `uid` is folded, as RFC 5545 allows. */
const calendar = (
  uid: string,
  { attendee = 'ada@example.com', partstat = 'ACCEPTED', stamp = '20260301T090000Z', method = 'REPLY' }: Answer,
): string =>
  [
    'BEGIN:VCALENDAR',
    'PRODID:-//Microsoft Corporation//Outlook 16.0 MIMEDIR//EN',
    'VERSION:2.0',
    `METHOD:${method}`,
    'BEGIN:VEVENT',
    `ATTENDEE;PARTSTAT=${partstat};CN="Lovelace, Ada";CUTYPE=INDIVIDUAL;RSVP=TRUE:`,
    ` mailto:${attendee}`,
    'ORGANIZER;CN=Admin:mailto:admin@example.com',
    `UID:${uid.slice(0, 10)}`,
    ` ${uid.slice(10)}`,
    `DTSTAMP:${stamp}`,
    'DTSTART:20260302T090000Z',
    'DTEND:20260302T093000Z',
    'SUMMARY:Demo',
    'END:VEVENT',
    'END:VCALENDAR',
    '',
  ].join('\r\n')

let count = 0
async function receive(uid: string, answer: Answer = {}): Promise<void> {
  const { from = 'ada@example.com', sender } = answer
  const email = [
    `Message-ID: <reply-${++count}@example.com>`,
    `From: "Lovelace, Ada" <${from}>`,
    ...(sender === undefined ? [] : [`Sender: ${sender}`]),
    'To: crm@crm.example.com',
    'Subject: Accepted: Demo',
    'Date: Sun, 1 Mar 2026 09:00:00 +0000',
    'MIME-Version: 1.0',
    'Content-Type: multipart/alternative; boundary="b"',
    '',
    '--b',
    'Content-Type: text/plain; charset=utf-8',
    '',
    'Ada has accepted.',
    '--b',
    'Content-Type: text/calendar; charset="utf-8"; method=REPLY',
    'Content-Transfer-Encoding: base64',
    '',
    Buffer.from(calendar(uid, answer))
      .toString('base64')
      .replaceAll(/(.{76})/g, '$1\r\n'),
    '--b--',
    '',
  ].join('\r\n')
  const { body, headers } = await form({ email })
  const reply = await server.anonymous.post('//admin/mail/inbound-parse', body, {
    headers: { ...headers, 'x-inbound-secret': inboundSecret },
  })
  expect(reply.status, reply.text).toBe(200)
  await server.work()
}

const uidOf = (id: number): string => `activity-${id}@crm.example.com`

/** Returns the answers of the participants, by name. */
async function answers(id: number): Promise<Record<string, string | null>> {
  const { data } = (await server.admin.get(`/activities/${id}`)).body
  return Object.fromEntries(data.participants.map((each: any) => [each.user?.name ?? each.person.name, each.response]))
}

describe('the answer to an invitation', () => {
  it('is shown at the participant, and a later one replaces it', async () => {
    const { id, version } = await meeting()
    server.events()
    await receive(uidOf(id))
    expect(await answers(id)).toMatchObject({ Ada: 'accepted', Bob: null })
    const { data } = (await server.admin.get(`/activities/${id}`)).body
    expect(data.version).toBe(version + 1)
    expect(data.participants[1].responded_at).toBe('2026-03-01T09:00:00.000Z')
    expect(server.events()).toContain('activity.answered')

    await receive(uidOf(id), { partstat: 'DECLINED', stamp: '20260301T100000Z' })
    expect((await answers(id)).Ada).toBe('declined')
    await receive(uidOf(id), { partstat: 'TENTATIVE', stamp: '20260301T093000Z' })
    expect((await answers(id)).Ada).toBe('declined')
  })

  it('of a user is known by the address of the account', async () => {
    const { id } = await meeting()
    const { name } = (await server.admin.get('/settings/users/1')).body.data
    await receive(uidOf(id), { from: 'admin@example.com', attendee: 'admin@example.com', partstat: 'TENTATIVE' })
    expect((await answers(id))[name]).toBe('tentative')
  })

  it('counts only for the times that were answered', async () => {
    const { id } = await meeting()
    await receive(uidOf(id))
    const later = { schedule_from: '2026-03-03T09:00:00.000Z', schedule_to: '2026-03-03T09:30:00.000Z' }
    expect((await server.admin.put(`/activities/${id}`, later)).status).toBe(200)
    expect((await answers(id)).Ada).toBeNull()
    await receive(uidOf(id), { stamp: '20260301T110000Z' })
    expect((await answers(id)).Ada).toBe('accepted')
  })

  it.each<[string, Answer, string?]>([
    ['of somebody else', { from: 'eve@example.com' }],
    ['of somebody else with another Sender', { from: 'eve@evil.example', sender: 'ada@example.com' }],
    ['of an address that does not take part', { from: 'eve@example.com', attendee: 'eve@example.com' }],
    ['to an invitation of another system', {}, 'activity-1@other.example.com'],
    ['that is none: a new invitation', { method: 'REQUEST' }],
    ['that says nothing yet', { partstat: 'NEEDS-ACTION' }],
  ])('%s changes nothing, and the e-mail is stored', async (_, answer, uid) => {
    const { id, version } = await meeting()
    const stored = async (): Promise<number> => (await server.admin.get('/emails')).body.data.length
    await server.work()
    const before = await stored()
    await receive(uid ?? uidOf(id), answer)
    expect((await answers(id)).Ada).toBeNull()
    expect((await server.admin.get(`/activities/${id}`)).body.data.version).toBe(version)
    expect(await stored()).toBe(before + 1)
  })

  it('stays when the participants are sent back as they were shown', async () => {
    const { id } = await meeting()
    await receive(uidOf(id))
    const { participants } = (await server.admin.get(`/activities/${id}`)).body.data
    const sent = await server.admin.put(`/activities/${id}`, { participants })
    expect(sent.status, sent.text).toBe(200)
    expect((await answers(id)).Ada).toBe('accepted')
  })
})
