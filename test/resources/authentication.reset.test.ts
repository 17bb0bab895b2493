// Forgotten passwords and invitations: the link exists only in a mail, works once and for an hour,
// and replies do not reveal whether an account exists.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createMailer } from '../../src/mail/outbound.ts'
import { adminPassword, startServer, type TestServer } from '../support/app.ts'
import { linkIn, openMailbox } from '../support/mailbox.ts'
import { signedInPage } from '../support/page.ts'
import { password, someone } from '../support/people.ts'
import { statementsOf } from '../support/statements.ts'
import { useOne } from '../support/using.ts'

const appUrl = 'https://crm.example'
const admin = 'admin@example.com'
const fresh = 'quite another password'
let server: TestServer

async function restart(smtpUrl: string | null): Promise<void> {
  await server?.close()
  const mailer = createMailer({ url: smtpUrl, domain: 'crm.example' })
  server = await startServer({ mailer, config: { appUrl, statefulDomains: ['*'] } })
  await server.keep()
}
const mailbox = useOne(openMailbox)
beforeAll(async () => {
  await restart(mailbox.url)
})
afterEach(async () => {
  await server.rewind()
  await mailbox.take()
})
afterAll(async () => {
  await server.close()
})

let caller = 0
/** Sends a request from a new address, unless `from` is given. */
const post = async (path: string, body: object, headers: Record<string, string> = {}, from = `10.0.0.${++caller}`) => {
  const reply = await server.inject({
    method: 'POST',
    url: `/api/admin${path}`,
    headers: { accept: 'application/json', 'content-type': 'application/json', ...headers },
    remoteAddress: from,
    payload: JSON.stringify(body),
  })
  return { status: reply.statusCode, headers: reply.headers, text: reply.body, body: JSON.parse(reply.body) }
}
const forgot = (email: string, headers = {}, from?: string) => post('/forgot-password', { email }, headers, from)
const reset = (changes: object, from?: string) =>
  post('/reset-password', { email: admin, password: fresh, password_confirmation: fresh, ...changes }, {}, from)
const signIn = async (email: string, secret: string) =>
  (await post('/login', { email, password: secret, device_name: 'a' })).status

/** Runs the job that the request queued, and returns the sent mails. */
async function deliver() {
  server.clock.advanceMs(2_000)
  await server.work()
  return mailbox.take()
}

/** Requests a link and returns its token. */
async function tokenFor(email: string): Promise<string> {
  await forgot(email)
  const [mail] = await deliver()
  return new URLSearchParams(linkIn(mail).hash.slice(1)).get('token') ?? ''
}

describe('forgotPassword', () => {
  it('mails a link to the page of this installation, whatever host the caller names, its secret behind the #', async () => {
    const { status, body } = await forgot(' ADMIN@example.com', {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
    })
    expect([status, body]).toEqual([
      200,
      { message: 'If an account has this address, an e-mail with a link is on its way.' },
    ])
    const [mail, ...others] = await deliver()
    const { origin, pathname, search, hash } = linkIn(mail)
    expect([origin, pathname, search]).toEqual([appUrl, '/api/admin/reset-password', ''])
    const link = new URLSearchParams(hash.slice(1))
    expect([link.get('email'), link.get('token')]).toEqual([admin, expect.stringMatching(/^[\w-]{43}$/)])
    expect(others).toEqual([])
    expect(JSON.stringify(mail)).not.toContain('evil')
    expect(mail?.html).toContain(link.get('token'))
    // The token exists only in the mail.
    expect((await server.store.image()).includes(link.get('token') ?? 'none')).toBe(false)
    expect(await server.store.db.selectFrom('emails').select('id').execute()).toEqual([])
    expect(await server.store.db.selectFrom('jobs').select('id').execute()).toEqual([])
    expect(server.events()).toEqual([])
  })

  it('answers unknown addresses and inactive accounts the same, by the same steps, and mails nothing', async () => {
    const ann = await someone(server, [], { is_active: false })
    await forgot('warm@example.com')
    const seen: unknown[] = []
    for (const email of [admin, 'unknown@example.com', ann.email]) {
      let answer: Awaited<ReturnType<typeof forgot>> | undefined
      const statements = await statementsOf(async () => {
        answer = await forgot(email)
      })
      seen.push([answer?.status, answer?.text, Object.keys(answer?.headers ?? {}), statements])
    }
    expect(seen[1]).toEqual(seen[0])
    expect(seen[2]).toEqual(seen[0])
    expect((await deliver()).map(({ to }) => to)).toEqual([[admin]])
  })

  it('takes three an hour from one address', async () => {
    for (let count = 1; count <= 3; count++)
      expect((await forgot(`${count}@example.com`, {}, '203.0.113.7')).status).toBe(200)
    const { status, headers, body } = await forgot(admin, {}, '203.0.113.7')
    expect([status, headers['retry-after'], body.code]).toEqual([429, '1800', 'rate_limited'])
    expect(await deliver()).toEqual([])
    server.clock.set('2026-03-01T10:00:00.000Z')
    expect((await forgot(admin, {}, '203.0.113.7')).status).toBe(200)
  })

  it('is not used up by strangers: they are answered the same, the owner is mailed no more than five times, and every link is good', async () => {
    for (const email of [admin, 'unknown@example.com'])
      for (let count = 1; count <= 30; count++) expect((await forgot(email)).status).toBe(200)
    const mails = await deliver()
    expect(mails.map(({ to }) => to)).toEqual(Array(5).fill([admin]))
    expect((await forgot(admin)).status).toBe(200)
    expect(await deliver()).toEqual([])
    expect(JSON.stringify(await server.store.db.selectFrom('call_counts').selectAll().execute())).not.toMatch(/@/)
    const [first = '', second = ''] = mails.map(
      (mail) => new URLSearchParams(linkIn(mail).hash.slice(1)).get('token') ?? '',
    )
    expect((await reset({ token: first })).status).toBe(200)
    expect((await reset({ token: second })).status).toBe(422)
    // A link was used, so the owner may request another link.
    await forgot(admin)
    expect(await deliver()).toHaveLength(1)
  })

  it('goes on to mail once an hour has passed, so that there always is a link that is good', async () => {
    for (let count = 1; count <= 6; count++) await forgot(admin)
    const [, , , , last] = await deliver()
    server.clock.advanceMs(59 * 60_000)
    await forgot(admin)
    expect(await deliver()).toEqual([])
    const token = new URLSearchParams(linkIn(last).hash.slice(1)).get('token') ?? ''
    server.clock.advanceMs(60_000)
    await forgot(admin)
    expect(await deliver()).toHaveLength(1)
    expect((await reset({ token })).status).toBe(422)
  })

  it('answers the same where no mail can be sent, makes no link, and says so in the log without the address', async () => {
    await restart(null)
    const lines: unknown[] = []
    const log = server.app.services.log
    server.app.services.log = { ...log, warn: (...line) => void lines.push(line), error: log.error, info: log.info }
    expect((await forgot(admin)).status).toBe(200)
    await deliver()
    expect(lines).toHaveLength(1)
    expect(JSON.stringify(lines)).not.toContain('example.com')
    expect(await server.store.db.selectFrom('password_resets').select('id').execute()).toEqual([])
    expect(await server.store.db.selectFrom('jobs').select('id').execute()).toEqual([])
    await restart(mailbox.url)
  })
})

describe('resetPassword', () => {
  it('sets the password once, tells of it, and ends every token, session and other link of the user', async () => {
    const page = await signedInPage(server)
    const token = await tokenFor(admin)
    server.events()
    server.seen.length = 0
    const { status, body } = await reset({ token })
    expect([status, body]).toEqual([200, { message: 'Password set. Sign in with it.' }])
    expect(server.seen.at(-1)?.actor).toMatchObject({ type: 'user', id: 1 })
    expect(JSON.stringify(server.seen)).not.toMatch(new RegExp(`${fresh}|${token}`))
    expect(server.events()).toEqual([
      'user.account.update-password.before',
      'user.token.delete.before',
      'user.session.delete.before',
      'user.account.update-password.after',
      'user.account.update-password',
      'user.token.delete.after',
      'user.session.delete.after',
    ])
    expect([(await page.get('/session')).status, (await server.admin.get('/account')).status]).toEqual([401, 401])
    expect([await signIn(admin, adminPassword), await signIn(admin, fresh)]).toEqual([401, 200])
    const rows = await server.store.db.selectFrom('events').select(['name', 'after']).execute()
    expect(rows.map(({ name }) => name)).toContain('user.account.update-password')
    expect(JSON.stringify(rows)).not.toContain(token)
    const again = await reset({ token })
    expect([again.status, Object.keys(again.body.errors)]).toEqual([422, ['token']])
  })

  it('is done by one of two who use a link at the same moment', async () => {
    const token = await tokenFor(admin)
    const answers = await Promise.all([reset({ token }), reset({ token })])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 422])
  })

  it('refuses a wrong, expired or foreign link with the same answer, and keeps an earlier one valid', async () => {
    const ann = await someone(server, [])
    const old = await tokenFor(admin)
    server.clock.advanceMs(30 * 60_000)
    const earlier = await tokenFor(ann.email)
    const hers = await tokenFor(ann.email)
    server.clock.advanceMs(30 * 60_000)
    const bad = [{ token: 'x' }, { token: old }, { token: hers }, { email: 'unknown@example.com', token: hers }]
    const answers: unknown[] = []
    for (const each of bad) {
      const { status, body } = await reset(each)
      answers.push([status, body.errors])
    }
    const same = [422, { token: ['The link is invalid, used or expired. Request a new one.'] }]
    expect(answers).toEqual(bad.map(() => same))
    expect(await signIn(admin, adminPassword)).toBe(200)
    expect((await reset({ email: ann.email, token: earlier })).status).toBe(200)
    expect((await reset({ email: ann.email, token: hers })).status).toBe(422)
  })

  it.each([
    ['the account is made inactive', { is_active: false }],
    ['an administrator sets the password', { password: 'set by another', password_confirmation: 'set by another' }],
    ['the address of the account changes', { email: 'elsewhere@example.com' }],
  ])('refuses a link after %s', async (_what, changes) => {
    const ann = await someone(server, [])
    const token = await tokenFor(ann.email)
    expect((await server.admin.put(`/settings/users/${ann.id}`, changes)).status).toBe(200)
    for (const email of [ann.email, 'elsewhere@example.com'])
      expect((await reset({ email, token })).body.errors).toEqual({ token: [expect.any(String)] })
  })

  it('stays good for a link while an administrator changes something else', async () => {
    const ann = await someone(server, [])
    const token = await tokenFor(ann.email)
    await server.admin.put(`/settings/users/${ann.id}`, { name: 'Anna', email: ann.email })
    expect((await reset({ email: ann.email, token })).status).toBe(200)
    expect(await signIn(ann.email, fresh)).toBe(200)
  })

  it('says all that is wrong with the password, and leaves the link good', async () => {
    const token = await tokenFor(admin)
    const twice = await reset({ token, password: 'Admin@example.com', password_confirmation: 'other' })
    expect([twice.status, twice.body.errors]).toEqual([
      422,
      { password: ['Must not equal the e-mail address.'], password_confirmation: ['Must repeat the password.'] },
    ])
    expect(
      Object.keys((await reset({ token, password: 'short', password_confirmation: 'short' })).body.errors),
    ).toEqual(['password'])
    expect((await reset({ token })).status).toBe(200)
  })

  it('answers 429 after five wrong links for an account from one address, whether there is one or not', async () => {
    for (const email of [admin, 'unknown@example.com']) {
      const from = `10.9.0.${++caller}`
      for (let tries = 0; tries < 5; tries++) expect((await reset({ email, token: 'x' }, from)).status).toBe(422)
      const { status, headers } = await reset({ email, token: 'x' }, from)
      expect([status, headers['retry-after']]).toEqual([429, '60'])
    }
  })

  it('lets the owner use a link while strangers try wrong ones and guess the password, and then sign in from there', async () => {
    const token = await tokenFor(admin)
    for (let tries = 0; tries < 25; tries++) expect((await reset({ token: 'x' })).status).toBe(422)
    for (let tries = 0; tries < 25; tries++) await signIn(admin, `guess ${tries}`)
    const { status, headers } = await reset({ token })
    expect(status).toBe(200)
    // The browser is known from now on, so its sign-in goes before those of strangers.
    const [cookie = ''] = [headers['set-cookie'] ?? []].flat().map((each) => each.split(';')[0] ?? '')
    expect(cookie).toMatch(/^__Host-accord_device=/)
    const order: string[] = []
    const strangers = Array.from({ length: 5 }, (_, index) => signIn(admin, `further guess ${index}`))
    await Promise.all([
      Promise.all(strangers).then((statuses) => order.push(...statuses.map(String))),
      post('/login', { email: admin, password: fresh, device_name: 'a' }, { cookie }).then((own) =>
        order.push(`owner ${own.status}`),
      ),
    ])
    expect(order).toEqual(['owner 200', ...Array(5).fill('401')])
  })
})

describe('getResetPasswordPage', () => {
  it('is a page of its own, that loads nothing, stands in no frame and is kept nowhere', async () => {
    const { status, headers, text } = await server.anonymous.get('/reset-password')
    expect([status, headers['content-type'], headers['cache-control'], headers['referrer-policy']]).toEqual([
      200,
      'text/html; charset=utf-8',
      'no-store',
      'no-referrer',
    ])
    expect(headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'; connect-src 'self';.*frame-ancestors 'none'$/,
    )
    expect(text).not.toMatch(/https?:\/\/|src=/)
    expect(text).toContain('<noscript>')
  })

  it.each([
    ['de', 'Neues Passwort wählen', 'Der Link ist ungültig'],
    ['fr', 'Choisir un nouveau mot de passe', 'Le lien n’est pas valide'],
    ['es', 'Elegir una contraseña nueva', 'El enlace no es válido'],
  ])('is in the language of the mail with the link: %s', async (locale, title, refusal) => {
    const values = { 'general.general.locale_settings.locale': locale }
    expect((await server.admin.put('/settings/configuration', { values })).status).toBe(200)
    const { text } = await server.anonymous.get('/reset-password')
    expect(text).toContain(`<html lang="${locale}" dir="ltr">`)
    expect(text).toContain(`<h1>${title}</h1>`)
    expect(text).toContain(refusal)
    expect(text).not.toMatch(/Repeat|Set password|expired/)
  })
})

describe('a user who is created without a password', () => {
  const body = { name: 'Ada Lovelace', email: 'ada@example.com', role_id: 1 }

  it('is mailed a link to choose one, once, in no hurry of the administrator', async () => {
    expect((await server.admin.post('/settings/users', body, { headers: { 'accord-dry-run': 'true' } })).status).toBe(
      200,
    )
    expect(await deliver()).toEqual([])
    expect((await server.admin.post('/settings/users', body)).status).toBe(201)
    const [mail, ...others] = await deliver()
    expect([mail?.to, mail?.text?.includes('an account was created for you'), others]).toEqual([[body.email], true, []])
    expect(mail?.text).toContain('72 hours')
    const link = new URLSearchParams(linkIn(mail).hash.slice(1))
    server.clock.advanceMs(71 * 3_600_000)
    expect((await reset({ email: link.get('email'), token: link.get('token') })).status).toBe(200)
    expect(await signIn(body.email, fresh)).toBe(200)
  })

  it('is sent nothing when there is a password, or the account is not active', async () => {
    await server.admin.post('/settings/users', { ...body, password, password_confirmation: password })
    await server.admin.post('/settings/users', { ...body, email: 'off@example.com', is_active: false })
    expect(await deliver()).toEqual([])
  })

  it('is sent the link once there is a server for mail, unless there is a password by then', async () => {
    await restart(null)
    const { mailer } = server.app.services
    const made = await server.admin.post('/settings/users', body)
    await server.admin.post('/settings/users', { ...body, email: 'bob@example.com' })
    await server.admin.put(`/settings/users/${made.body.data.id}`, { password, password_confirmation: password })
    expect(await deliver()).toEqual([])
    server.app.services.mailer = createMailer({ url: mailbox.url, domain: 'crm.example' })
    expect((await deliver()).map(({ to }) => to)).toEqual([['bob@example.com']])
    server.app.services.mailer = mailer
    await restart(mailbox.url)
  })
})
