// Bounces: a permanent failure is shown at the sent e-mail or in the ledger of its campaign, and
// the address is suppressed. A forged bounce has no effect.
import { describe, expect, it } from 'vitest'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { useSmtp } from '../support/outside.ts'
import { useServer } from '../support/using.ts'

const campaigns = '/settings/marketing/campaigns'
const secret = 'open: sesame'

const smtp = useSmtp()
const server = useServer(() => ({ config: { smtpUrl: smtp.url, campaignRate: 1000, inboundSecret: secret } }))

const statusOf = (address: string, status: string): string =>
  [
    'Reporting-MTA: dns; mx.example',
    '',
    `Final-Recipient: rfc822; ${address}`,
    'Action: failed',
    `Status: ${status}`,
    `Diagnostic-Code: smtp; 550 ${status} unknown`,
    '',
  ].join('\r\n')

const bounce = (messageId: string, address: string, status: string): string =>
  [
    ...['From: MAILER-DAEMON@mx.example', 'To: crm@localhost', 'Subject: Undelivered Mail'],
    `Message-ID: <${status}-${address}>`,
    ...['Content-Type: multipart/report; report-type=delivery-status; boundary=r', ''],
    ...['--r', 'Content-Type: text/plain', '', 'unknown user'],
    ...['--r', 'Content-Type: message/delivery-status', '', statusOf(address, status)],
    ...['--r', 'Content-Type: text/rfc822-headers', '', `Message-ID: <${messageId}>`, '', '--r--', ''],
  ].join('\r\n')

async function receive(fields: Record<string, string | File>): Promise<void> {
  const { body, headers } = await form(fields)
  const sent = await server.anonymous.post('//admin/mail/inbound-parse', body, {
    headers: { ...headers, 'x-inbound-secret': secret },
  })
  expect(sent.status).toBe(200)
  await server.work()
}

async function sentEmail(changes: Record<string, unknown> = {}) {
  const letter = { subject: 'Offer', html: '<p>Hi</p>', to: ['gone@example.com', 'bo@example.com'], ...changes }
  const { body } = await server.admin.post('/emails', letter)
  await server.work()
  return body.data as { id: number; message_id: string }
}
const shown = async (id: number) => (await server.admin.get(`/emails/${id}`)).body.data
const suppressed = async (): Promise<[string, string][]> =>
  (await server.admin.get('/settings/marketing/suppressions')).body.data.map(
    ({ address, reason }: { address: string; reason: string }) => [address, reason],
  )

describe('a bounce of a sent e-mail', () => {
  it('is shown with its reason, suppresses the address, and is an event', async () => {
    const mail = await sentEmail()
    server.events()
    await receive({ email: bounce(mail.message_id, 'Gone@example.com', '5.1.1') })
    expect(await shown(mail.id)).toMatchObject({
      status: 'bounced',
      error: 'Bounced for Gone@example.com: 550 5.1.1 unknown',
    })
    expect(await suppressed()).toEqual([['gone@example.com', 'bounced']])
    expect(server.events()).toEqual(
      expect.arrayContaining(['email.update.after', 'email.bounced', 'marketing.suppression.create.after']),
    )
    const ids = async (query: string) =>
      (await server.admin.get(`/emails?${query}`)).body.data.map(({ id }: { id: number }) => id)
    expect(await ids('status=bounced')).toEqual([mail.id])
    expect(await ids(`parent_id=${mail.id}`)).toHaveLength(1)
    expect(await ids('status=sent')).toEqual([])
    server.events()
    await receive({ email: bounce(mail.message_id, 'Gone@example.com', '5.1.1') })
    expect(server.events().filter((name: string) => name.startsWith('email'))).toEqual([])
    await receive({ email: bounce(mail.message_id, 'bo@example.com', '5.2.1') })
    expect((await shown(mail.id)).error).toBe(
      'Bounced for Gone@example.com: 550 5.1.1 unknown; Bounced for bo@example.com: 550 5.2.1 unknown',
    )
    expect(await suppressed()).toHaveLength(2)
  })

  it('is read from the fields of a mail service too', async () => {
    const mail = await sentEmail()
    await receive({
      from: 'MAILER-DAEMON@mx.example',
      subject: 'Undelivered Mail',
      headers: `In-Reply-To: <${mail.message_id}>`,
      'attachment-info': JSON.stringify({ attachment1: { type: 'message/delivery-status' } }),
      attachment1: file('status.txt', statusOf('gone@example.com', '5.1.1')),
    })
    expect((await shown(mail.id)).error).toBe('Bounced for gone@example.com: 550 5.1.1 unknown')
  })

  it('has no effect when it is temporary, or names another e-mail or recipient', async () => {
    const mail = await sentEmail()
    await receive({ email: bounce(mail.message_id, 'gone@example.com', '4.2.2') })
    await receive({ email: bounce('other@localhost', 'gone@example.com', '5.1.1') })
    await receive({ email: bounce(mail.message_id, 'victim@example.com', '5.1.1') })
    expect([(await shown(mail.id)).error, await suppressed()]).toEqual([null, []])
  })

  it('never shows a hidden recipient', async () => {
    const mail = await sentEmail({ to: ['bo@example.com'], bcc: ['gone@example.com'] })
    await receive({ email: bounce(mail.message_id, 'gone@example.com', '5.1.1') })
    expect((await shown(mail.id)).error).toBe('Bounced for a hidden recipient: 550 5.1.1 unknown')
    expect(await suppressed()).toEqual([['gone@example.com', 'bounced']])
  })
})

describe('a bounce of a campaign', () => {
  it('is shown in the ledger, and the next run leaves the address out', async () => {
    await given(server.admin).person({ emails: [{ value: 'gone@example.com', label: 'work' }] })
    const template = await server.admin.post('/settings/email-templates', {
      name: 'A',
      subject: 'A',
      content: '<p>A</p>',
    })
    const sent = { name: 'Spring', subject: 'Hi', is_active: true, email_template_id: template.body.data.id }
    const { id } = (await server.admin.post(campaigns, sent)).body.data
    await server.admin.post(`${campaigns}/${id}/run`)
    await server.work()
    const messageId = /^Message-ID: *<([^>]+)>/im.exec(smtp.received[0]?.raw ?? '')?.[1] ?? ''
    await receive({ email: bounce(messageId, 'gone@example.com', '5.1.1') })
    const ledger = await server.admin.get(`${campaigns}/${id}/sends`)
    expect(ledger.body.data).toMatchObject([{ state: 'failed', error: 'Bounced: 550 5.1.1 unknown' }])
    expect(await suppressed()).toEqual([['gone@example.com', 'bounced']])
  })
})
