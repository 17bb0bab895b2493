// Sending to a misbehaving SMTP server: at most one copy is sent, and every failure has the right
// reason.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createMailer, MailDeferred, type Mailer, MailRefused, type MailTimeouts } from '../../src/mail/outbound.ts'
import { type SmtpMode, type SmtpServer, startSmtp } from '../support/smtp.ts'
import { until } from '../support/until.ts'
import { attached, outbound } from './given.ts'

/** Long timeouts for servers that respond, because the machine may be busy. */
const patient: MailTimeouts = { connectMs: 20_000, greetingMs: 20_000, socketMs: 20_000, totalMs: 40_000, idleMs: 500 }
const never = new AbortController().signal

let smtp: SmtpServer
let mailer: Mailer
const mailerFor = (url: string, timeouts = patient): Mailer =>
  createMailer({ url, domain: 'crm.example.com', timeouts })
/** Returns the error of a failed mail. Throws if it did not fail. */
const failure = async (sent: Promise<unknown>): Promise<Error> => {
  const error = await sent.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof Error)) throw new Error('It was sent.')
  return error
}
/** Sets short timeouts, for servers that do not respond and for idle connections. */
function impatient(timeouts: MailTimeouts): void {
  mailer.close()
  mailer = mailerFor(smtp.url, { ...patient, ...timeouts })
}

beforeEach(async () => {
  smtp = await startSmtp()
  mailer = mailerFor(smtp.url)
})
afterEach(async () => {
  mailer.close()
  await smtp.close()
})

describe('send', () => {
  it('hands the mail over once, with the envelope it names, and answers what the server said', async () => {
    const sent = await mailer.send(outbound({ cc: ['bob@example.com'] }), never)
    expect(sent).toEqual({ response: '250 Taken', refused: [] })
    expect(smtp.received).toHaveLength(1)
    expect(smtp.received[0]).toMatchObject({
      from: 'no-reply@crm.example.com',
      to: ['ada@example.com', 'bob@example.com'],
    })
    expect(smtp.received[0]?.raw).toContain('Message-ID: <0197a3f2-1111-7000-8000-000000000001@crm.example.com>')
  })

  it('uses one connection for mails that follow each other, and leaves it when it is idle', async () => {
    impatient({ idleMs: 2_000 })
    for (const n of [1, 2, 3]) await mailer.send(outbound({ messageId: `${n}@crm.example.com` }), never)
    expect(smtp.connections().total).toBe(1)
    await until(() => smtp.connections().open === 0)
    await mailer.send(outbound(), never)
    expect(smtp.received.map(({ connection }) => connection)).toEqual([1, 1, 1, 2])
  })

  it('sends a mail once over a new connection when the server has dropped the idle one', async () => {
    mailer.close()
    mailer = mailerFor(smtp.url, { ...patient, idleMs: 20_000 })
    await mailer.send(outbound({ messageId: '1@crm.example.com' }), never)
    smtp.disconnect()
    await mailer.send(outbound({ messageId: '2@crm.example.com' }), never)
    expect(smtp.received).toHaveLength(2)
  })

  it('sends several at the same time, each once', async () => {
    const ids = Array.from({ length: 20 }, (_, n) => `${n}@crm.example.com`)
    await Promise.all(ids.map((messageId) => mailer.send(outbound({ messageId }), never)))
    const taken = smtp.received.map(({ raw }) => /Message-ID: <([^>]*)>/.exec(raw)?.[1])
    expect(taken.sort()).toEqual(ids.sort())
    expect(smtp.connections().total).toBeLessThanOrEqual(2)
  })

  it('names the recipients the server would not take, and sends to the others', async () => {
    smtp.behave({ refuseRecipient: 'nobody@xn--bcher-kva.example' })
    const sent = await mailer.send(outbound({ to: ['ada@example.com'], bcc: ['nobody@Bücher.example'] }), never)
    expect(sent.refused).toEqual([
      { address: 'nobody@Bücher.example', reason: '550 nobody@xn--bcher-kva.example is unknown here' },
    ])
    expect(smtp.received).toHaveLength(1)
    expect(smtp.received[0]?.to).toEqual(['ada@example.com'])
  })

  const refusals: [string, SmtpMode][] = [
    ['every recipient', 'refuse'],
    ['the sender', { reply: 550, at: 'mail' }],
    ['the message', { reply: 554, at: 'data' }],
    ['its size', { reply: 552, at: 'data' }],
  ]
  it.each(refusals)('is refused for good when the server refuses %s', async (_what, mode) => {
    smtp.behave(mode)
    expect(await failure(mailer.send(outbound(), never))).toBeInstanceOf(MailRefused)
    expect(smtp.received).toEqual([])
    smtp.behave('accept')
    await mailer.send(outbound(), never)
    expect(smtp.received).toHaveLength(1)
  })

  const delays: [string, SmtpMode][] = [
    ['greylists', 'greylist'],
    ['is full', { reply: 452, at: 'data' }],
    ['shuts down', { reply: 421, at: 'mail' }],
    ['has no time for anybody', { reply: 554, at: 'connect' }],
    ['wants a login', { reply: 530, at: 'mail' }],
    ['loses the thread', { reply: 503, at: 'mail' }],
    ['says nothing', 'hang'],
  ]
  it.each(delays)('is put off, and has not arrived, when the server %s', async (_what, mode) => {
    smtp.behave(mode)
    if (mode === 'hang') impatient({ greetingMs: 300 })
    const error = await failure(mailer.send(outbound(), never))
    expect(error).toBeInstanceOf(MailDeferred)
    expect((error as MailDeferred).mayHaveArrived).toBe(false)
    expect(error.message).toMatch(/^[^\n]{5,300}$/)
    expect(smtp.received).toEqual([])
    await until(() => smtp.connections().open === 0)
  })

  it('is put off, and has not arrived, when the server breaks off in the middle of the message', async () => {
    smtp.behave('drop')
    const large = outbound({ attachments: [attached({ bytes: Buffer.alloc(20_000_000) })] })
    expect(await failure(mailer.send(large, never))).toMatchObject({ name: 'MailDeferred', mayHaveArrived: false })
    expect(smtp.received).toEqual([])
  })

  it('is put off and says that it may have arrived when the server has the message and never says so', async () => {
    smtp.behave('half-accept')
    const error = await failure(mailer.send(outbound(), never))
    expect(error).toBeInstanceOf(MailDeferred)
    expect((error as MailDeferred).mayHaveArrived).toBe(true)
    await until(() => smtp.connections().open === 0)
    expect(smtp.received).toHaveLength(1)
  })

  it('never gives a second copy by itself, also over a connection that has carried others', async () => {
    await mailer.send(outbound({ messageId: 'first@crm.example.com' }), never)
    smtp.behave('half-accept')
    const error = await failure(mailer.send(outbound(), never))
    expect((error as MailDeferred).mayHaveArrived).toBe(true)
    await new Promise((resolve) => setTimeout(resolve, 400))
    expect(smtp.received).toHaveLength(2)
  })

  it('does not wait longer than it should for the answer to a message', async () => {
    smtp.behave('hang-data')
    impatient({ socketMs: 1_500 })
    const error = await failure(mailer.send(outbound(), never))
    expect(error).toMatchObject({ name: 'MailDeferred', mayHaveArrived: true })
    expect(error.message).toBe('The server did not answer in time.')
  })

  it('is put off when unhandled rejection', async () => {
    await smtp.close()
    expect(await failure(mailer.send(outbound(), never))).toBeInstanceOf(MailDeferred)
    smtp = await startSmtp()
  })

  it('waits for a slow server', async () => {
    smtp.behave('slow')
    await mailer.send(outbound(), never)
    expect(smtp.received).toHaveLength(1)
  })

  it('ends when it is told to, and sends nothing afterwards', async () => {
    const stop = new AbortController()
    smtp.behave('slow')
    const sent = failure(mailer.send(outbound(), stop.signal))
    await until(() => smtp.connections().total === 1)
    stop.abort()
    expect(await sent).toMatchObject({ name: 'MailDeferred', message: 'Sending was stopped.' })
    expect(await failure(mailer.send(outbound(), stop.signal))).toMatchObject({ message: 'Sending was stopped.' })
    expect(smtp.received).toEqual([])
  })

  it('has an end for servers that are never silent', async () => {
    mailer.close()
    mailer = mailerFor(smtp.url, { ...patient, totalMs: 120 })
    smtp.behave('slow')
    expect(await failure(mailer.send(outbound(), never))).toMatchObject({
      name: 'MailDeferred',
      message: 'The server took too long.',
    })
  })
})
