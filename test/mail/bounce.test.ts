// Bounces: what mail servers report of e-mails that they could not deliver.
import { describe, expect, it } from 'vitest'
import { parseMail } from '../../src/mail/parse/parse.ts'

const head = ['From: MAILER-DAEMON@mx.example', 'To: crm@x.example', 'Subject: Undelivered Mail']

function report(status: readonly string[], original: readonly string[] = ['Message-ID: <ours@x.example>']): string {
  return [
    ...head,
    'Content-Type: multipart/report; report-type=delivery-status; boundary=r',
    '',
    ...['--r', 'Content-Type: text/plain', '', 'unknown user'],
    ...['--r', 'Content-Type: message/delivery-status', '', 'Reporting-MTA: dns; mx.example', '', ...status, ''],
    ...['--r', 'Content-Type: text/rfc822-headers', '', ...original, ''],
    '--r--',
  ].join('\r\n')
}

const recipient = (address: string, action: string, status: string, more: string[] = []): string[] => [
  `Final-Recipient: rfc822; ${address}`,
  `Action: ${action}`,
  `Status: ${status}`,
  ...more,
]

const bounceIn = async (text: string) => (await parseMail(Buffer.from(text))).bounce

describe('a delivery status notification', () => {
  it('names the e-mail, the recipients and the words of the server', async () => {
    const diagnostic = ['Diagnostic-Code: smtp; 550 5.1.1 <gone@y.example>:', '  unknown user']
    const status = [
      ...recipient('gone@y.example', 'failed', '5.1.1', diagnostic),
      '',
      ...recipient('b@y.example', 'Failed', '5.2.1'),
    ]
    expect(await bounceIn(report(status))).toEqual({
      messageIds: ['ours@x.example'],
      recipients: [
        { address: 'gone@y.example', reason: '550 5.1.1 <gone@y.example>: unknown user' },
        { address: 'b@y.example', reason: '5.2.1' },
      ],
    })
  })

  it('is read by the address to which the e-mail was sent, not by the one it was forwarded to', async () => {
    const status = recipient('elsewhere@z.example', 'failed', '5.0.0', ['Original-Recipient: rfc822;gone@y.example'])
    expect((await bounceIn(report(status)))?.recipients.map(({ address }) => address)).toEqual(['gone@y.example'])
  })

  it.each([
    ['a delay', 'delayed', '4.4.1'],
    ['a temporary failure', 'failed', '4.2.2'],
    ['a delivery', 'delivered', '2.0.0'],
    ['a relay', 'relayed', '2.1.5'],
  ])('is not a bounce for %s', async (_, action, status) => {
    expect(await bounceIn(report(recipient('a@y.example', action, status)))).toBeNull()
  })
})

describe('another report', () => {
  it('of Exim is read by X-Failed-Recipients', async () => {
    const text = [
      'A message could not be delivered.',
      '  gone@y.example',
      '    550 5.1.1 no such user',
      '',
      'Message-ID: <ours@x.example>',
    ]
    const mail = [...head, 'X-Failed-Recipients: gone@y.example', '', ...text].join('\r\n')
    expect(await bounceIn(mail)).toEqual({
      messageIds: ['ours@x.example'],
      recipients: [{ address: 'gone@y.example', reason: '550 5.1.1 no such user' }],
    })
  })

  it('of qmail is read by its text', async () => {
    const text = [
      'Hi. This is the qmail-send program at mx.example.',
      "I'm afraid I wasn't able to deliver your message.",
      '',
      '<gone@y.example>:',
      'Sorry, no mailbox here by that name. (#5.1.1)',
      '',
      '--- Below this line is a copy of the message.',
      '',
      'Message-ID: <ours@x.example>',
    ]
    expect(await bounceIn([...head, '', ...text].join('\r\n'))).toEqual({
      messageIds: ['ours@x.example'],
      recipients: [{ address: 'gone@y.example', reason: 'Sorry, no mailbox here by that name. (#5.1.1)' }],
    })
  })

  it.each(['Out of office', 'It bounced with 550 5.1.1'])('that only says %j is not a bounce', async (text) => {
    expect(await bounceIn([...head, '', text].join('\r\n'))).toBeNull()
  })
})
