// The settings for sending: logins, encryption, readiness, and the folder for development. No error
// message contains a secret.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createMailer, type Mailer } from '../../src/mail/outbound.ts'
import { useNewFolder } from '../support/folders.ts'
import { startSmtp } from '../support/smtp.ts'
import { useNew } from '../support/using.ts'
import { attached, outbound } from './given.ts'

const never = new AbortController().signal
const login = { user: 'crm-user', pass: 'p@ss/w:rd"1' }
const mailerFor = (url: string | null): Mailer =>
  createMailer({
    url,
    domain: 'crm.example.com',
    timeouts: { idleMs: 50, checkMs: 0 },
  })
const failure = (sent: Promise<unknown>): Promise<Error> =>
  sent.then(
    () => new Error('It was sent.'),
    (error) => error,
  )

describe('a server with a login', () => {
  const smtp = useNew(() => startSmtp({ login }))

  it('takes mail and is ready', async () => {
    const mailer = mailerFor(smtp.url)
    expect(await mailer.check()).toBeNull()
    await mailer.send(outbound(), never)
    expect(smtp.received).toHaveLength(1)
    mailer.close()
  })

  it('that does not know us puts the mail off, for it is not the fault of the mail, and no secret is told', async () => {
    const wrong = 'wr0ng-s3cret'
    const mailer = mailerFor(smtp.url.replace(/:[^:@]*@/, `:${wrong}@`))
    const error = await failure(mailer.send(outbound(), never))
    const sentence = await mailer.check()
    expect(error).toMatchObject({ name: 'MailDeferred', message: 'The server did not accept user name and password.' })
    expect(sentence).toBe('Outgoing mail: The server did not accept user name and password.')
    for (const secret of [wrong, Buffer.from(wrong).toString('base64'), login.user])
      expect(inspect(error, { depth: 9 }) + sentence).not.toContain(secret)
    expect(smtp.received).toEqual([])
    mailer.close()
  })
})

describe('a protected connection', () => {
  it('is not made with an untrusted server, and the mail is put off', async () => {
    const smtp = await startSmtp({ offersTls: true })
    const strict = mailerFor(`${smtp.url}?requireTLS=true`)
    const trusting = mailerFor(`${smtp.url}?requireTLS=true&tls.rejectUnauthorized=false`)
    expect(await failure(strict.send(outbound(), never))).toMatchObject({ name: 'MailDeferred' })
    expect(smtp.received).toEqual([])
    await trusting.send(outbound(), never)
    expect(smtp.received).toHaveLength(1)
    strict.close()
    trusting.close()
    await smtp.close()
  })
})

describe('createMailer', () => {
  it('without a server is not configured, says so, and sends nothing', async () => {
    const mailer = mailerFor(null)
    expect(mailer.isConfigured).toBe(false)
    expect(await mailer.check()).toBe('No server for outgoing mail is set.')
    expect(await failure(mailer.send(outbound(), never))).toMatchObject({ name: 'MailDeferred' })
  })

  it.each(['http://mail.example.com', 'smtp://', 'smtp:mail', 'mail', 'file:'])('refuses %s', (url) => {
    expect(() => mailerFor(url)).toThrow(/The address for outgoing mail must/)
  })

  it('says in one sentence that unhandled rejection', async () => {
    const smtp = await startSmtp()
    await smtp.close()
    const sentence = await mailerFor(smtp.url).check()
    expect(sentence).toBe('Outgoing mail: The server cannot be reached, or the connection broke.')
  })

  it('asks the server again only after a while', async () => {
    const smtp = await startSmtp()
    const mailer = createMailer({ url: smtp.url, domain: 'crm.example.com', timeouts: { checkMs: 60_000 } })
    await Promise.all([mailer.check(), mailer.check()])
    await mailer.check()
    expect(smtp.connections().total).toBe(1)
    mailer.close()
    await smtp.close()
  })
})

describe('the folder of development', () => {
  const folder = useNewFolder('mail')

  it('gets one file per mail, complete, and the same mail again is the same file', async () => {
    const mailer = mailerFor(`file:${join(folder, 'out', 'box')}`)
    expect(await mailer.check()).toBeNull()
    const message = outbound({ bcc: ['secret@example.com'], attachments: [attached()] })
    await mailer.send(message, never)
    await mailer.send(message, never)
    const names = readdirSync(join(folder, 'out', 'box'))
    expect(names).toEqual(['0197a3f2-1111-7000-8000-000000000001@crm.example.com.eml'])
    const written = readFileSync(join(folder, 'out', 'box', names[0] ?? ''), 'utf8')
    // A mail may contain the link that resets a password.
    const modeOf = (path: string): number => statSync(path).mode & 0o777
    expect([modeOf(join(folder, 'out', 'box')), modeOf(join(folder, 'out', 'box', names[0] ?? ''))]).toEqual([
      0o700, 0o600,
    ])
    expect(written).toContain('Subject: Your offer')
    expect(written).not.toContain('secret@example.com')
  })

  it('is never left by a message id', async () => {
    const mailer = mailerFor(`file://${folder}`)
    await mailer.send(outbound({ messageId: '../../../etc/x@crm.example.com' }), never)
    expect(readdirSync(folder)).toHaveLength(1)
    expect(readdirSync(folder)[0]).not.toContain('/')
  })

  it('that cannot be written puts mails off and is not ready', async () => {
    writeFileSync(join(folder, 'file'), '')
    const mailer = mailerFor(`file:${join(folder, 'file', 'box')}`)
    expect(await mailer.check()).toBe('Outgoing mail: the folder for it cannot be written.')
    expect(await failure(mailer.send(outbound(), never))).toMatchObject({ name: 'MailDeferred' })
  })
})
