// The mails of invitations as they arrive: subject, both bodies in the language of the reader, one
// calendar part, and names that try to be markup or headers.
import { describe, expect, it } from 'vitest'
import { createMailer } from '../../src/mail/outbound.ts'
import { given } from '../support/given.ts'
import { openMailbox } from '../support/mailbox.ts'
import { useOne, useServer } from '../support/using.ts'

const mailbox = useOne(openMailbox)
const server = useServer(() => ({
  mailer: createMailer({ url: mailbox.url, domain: 'crm.example' }),
  config: { timezone: 'Europe/Berlin', locale: 'en-GB' },
}))
const plain = (text: string | null | undefined): string => (text ?? '').replaceAll(/[\u2009\u202f\u00a0]/g, ' ')

async function invited(changes: object, guest: object = {}) {
  const person = await given(server.admin).person({
    name: 'Ada',
    emails: [{ value: 'ada@example.com', label: 'work' }],
    ...guest,
  })
  const { id } = await given(server.admin).activity({
    type: 'meeting',
    title: 'Visit at Pure Springs Bottling',
    schedule_from: '2026-11-27T08:46:00Z',
    schedule_to: '2026-11-27T09:46:00Z',
    participants: { persons: [person.id] },
    notify: true,
    ...changes,
  })
  await server.work()
  const [mail] = await mailbox.take()
  if (mail === undefined) throw new Error('There was no mail.')
  return { id, mail, subject: plain(mail.subject), text: plain(mail.text), html: plain(mail.html) }
}

describe('an invitation', () => {
  it('says what, when, where and with whom, in both parts', async () => {
    const { subject, text, html, mail } = await invited({ location: 'Room 1 & 2', user_id: 1 })
    expect(subject).toBe('Visit at Pure Springs Bottling, 27 November, 9:46')
    expect(text.trim().split('\n')).toEqual([
      'Visit at Pure Springs Bottling',
      '',
      'When: Friday, 27 November 2026, 09:46–10:46 CET',
      'Place: Room 1 & 2',
      'Organizer: Example Admin',
      'Participants: Ada',
    ])
    expect(html).toMatch(/^<!doctype html>/)
    expect(html).toContain('Room 1 &amp; 2')
    expect(html).not.toContain('<img')
    expect(mail.attachments).toHaveLength(1)
    expect(mail.attachments[0]?.contentType).toContain('text/calendar')
  })

  it.each([
    ['de', 'Visit at Pure Springs Bottling, 27. November, 9:46', 'Wann: Freitag, 27. November 2026'],
    ['fr', 'Visit at Pure Springs Bottling, 27 novembre, 9:46', 'Quand: vendredi 27 novembre 2026'],
    ['es', 'Visit at Pure Springs Bottling, 27 de noviembre, 9:46', 'Cuándo: viernes, 27 de noviembre'],
  ])('is in the language of the person: %s', async (language, subject, when) => {
    const mail = await invited({}, { language })
    expect(mail.subject).toBe(subject)
    expect(mail.text).toContain(when)
    expect(mail.text).toMatch(/: –$/m)
  })

  it.each([
    [
      '2026-10-24T23:30:00Z',
      '2026-10-25T01:30:00Z',
      '25 October, 1:30',
      '01:30 CEST – Sunday, 25 October 2026 at 02:30 CET',
    ],
    [
      '2027-03-28T00:30:00Z',
      '2027-03-28T01:30:00Z',
      '28 March 2027, 1:30',
      '01:30 CET – Sunday, 28 March 2027 at 03:30 CEST',
    ],
  ])('names both zones on a day on which the clock changes: %s', async (from, to, short, long) => {
    const { subject, text } = await invited({ schedule_from: from, schedule_to: to })
    expect(subject).toBe(`Visit at Pure Springs Bottling, ${short}`)
    expect(text).toContain(long)
  })

  it('says so when it is changed or cancelled', async () => {
    const { id } = await invited({})
    await server.admin.put(`/activities/${id}`, { location: 'Room 2' })
    await server.work()
    const [changed] = await mailbox.take()
    expect(changed?.subject).toMatch(/^Changed: Visit/)
    expect(changed?.text).toMatch(/^Changed: Visit at Pure Springs Bottling\s/)
    await server.admin.delete(`/activities/${id}`)
    await server.work()
    const [cancelled] = await mailbox.take()
    expect(cancelled?.text).toMatch(/^Cancelled: Visit/)
  })

  it.each([
    ['markup', '<script>alert(1)</script><img src="https://evil.example/x.png">'],
    ['a long name', `${'Донаудампфшиффартс '.repeat(12).trim()}`],
    ['Hebrew', 'ביקור במפעל (שני)'],
    ['Japanese', '工場見学 🏭 第二会議室'],
    ['an encoded word', '=?utf-8?Q?Bcc=3A?= x'],
    ['a placeholder', '{%users.email%} {%texts.place%}'],
  ])('carries a title that is %s', async (_what, title) => {
    const { subject, text, html } = await invited({ title })
    expect(subject).toBe(`${title}, 27 November, 9:46`)
    expect(text).toContain(title)
    expect(html).not.toMatch(/<(script|img)/)
  })

  it('cannot get a header from a title or a name', async () => {
    const hostile = 'Visit\r\nBcc: eve@example.com\r\n\r\nbody'
    const { mail, html } = await invited(
      { title: hostile, location: hostile },
      { name: 'A <b>\r\nBcc: eve@example.com' },
    )
    expect(mail.bcc).toEqual([])
    expect(mail.to).toEqual(['ada@example.com'])
    expect(mail.subject).not.toMatch(/[\r\n]/)
    expect(html).not.toContain('<b>\n')
    const calendar = mail.attachments[0]?.bytes.toString() ?? ''
    expect(calendar.match(/BEGIN:VEVENT/g)).toHaveLength(1)
  })
})
