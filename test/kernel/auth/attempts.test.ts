// Protection against guessing the password of an account from many addresses: a sign-in waits for
// its turn, no caller is refused because others guess, known devices do not wait, and unknown
// accounts behave like known ones.
import { describe, expect, it } from 'vitest'
import { createMailer } from '../../../src/mail/outbound.ts'
import { adminPassword } from '../../support/app.ts'
import { openMailbox } from '../../support/mailbox.ts'
import { openPage } from '../../support/page.ts'
import { password, someone } from '../../support/people.ts'
import { useNew, useNewServers } from '../../support/using.ts'

const mailbox = useNew(openMailbox)
const server = useNewServers(() => ({
  mailer: createMailer({ url: mailbox.url, domain: 'crm.example' }),
  config: { appUrl: 'http://localhost' },
}))

const admin = 'admin@example.com'
const home = '203.0.113.7'

let addresses = 0
const elsewhere = (): string => `198.51.${++addresses >> 8}.${addresses & 255}`

interface From {
  remoteAddress?: string
  device_token?: string
}

/** Signs in from a new address, unless one is given. */
async function login(email: string, word: string, { remoteAddress = elsewhere(), device_token }: From = {}) {
  const payload = { email, password: word, device_name: 'Phone', ...(device_token && { device_token }) }
  const headers = { accept: 'application/json', 'user-agent': 'A telephone' }
  const reply = await server.inject({ method: 'POST', url: '/api/admin/login', remoteAddress, headers, payload })
  const body = JSON.parse(reply.body)
  return {
    status: reply.statusCode,
    wait: Number(reply.headers['retry-after'] ?? 0),
    body,
    device: body.meta?.device_token as string,
  }
}
const guess = (email: string, times: number, from: () => From = () => ({})) =>
  Promise.all(Array.from({ length: times }, (_, index) => login(email, `guess ${index}`, from())))
const statusesOf = (answers: readonly { status: number }[]): number[] => answers.map(({ status }) => status)
const devices = () => server.store.db.selectFrom('sign_in_devices').select(['id', 'user_id']).execute()

describe('guessing one account', () => {
  it('from many addresses slows it down and shuts out no caller, not even at once', async () => {
    expect(statusesOf(await guess(admin, 60))).toEqual(Array(60).fill(401))
    expect((await login(admin, adminPassword)).status).toBe(200)
    const [answers, own] = await Promise.all([guess(admin, 60), login(admin, adminPassword)])
    expect(statusesOf(answers)).toEqual(Array(60).fill(401))
    expect(own.status).toBe(200)
  })

  it('lets an address without failures go before those with failures, which take turns', async () => {
    const networks = Array.from({ length: 20 }, elsewhere)
    await guess(admin, 20, () => ({ remoteAddress: networks.pop() as string }))
    const failed = Array.from({ length: 3 }, elsewhere)
    for (const remoteAddress of failed) await login(admin, 'a guess', { remoteAddress })
    const order: string[] = []
    const told = (name: string, answer: Promise<{ status: number }>) =>
      answer.then(({ status }) => order.push(`${name} ${status}`))
    const [first = '', second = '', third = ''] = failed
    await Promise.all([
      // The others arrive while this one has its turn.
      told('third', login(admin, 'guess 0', { remoteAddress: third })),
      told('first', login(admin, 'guess 1', { remoteAddress: first })),
      told('first again', login(admin, 'guess 2', { remoteAddress: first })),
      told('second', login(admin, 'guess 3', { remoteAddress: second })),
      told('owner', login(admin, adminPassword)),
    ])
    expect(order).toEqual(
      expect.arrayContaining(['third 401', 'first 401', 'owner 200', 'second 401', 'first again 401']),
    )
    expect(order.indexOf('owner 200')).toBeLessThan(order.indexOf('second 401'))
    expect(order.indexOf('second 401')).toBeLessThan(order.indexOf('first again 401'))
  })

  it('says and does the same for an account that does not exist', async () => {
    const answers = async (email: string) => {
      const seen: unknown[] = []
      for (let tries = 0; tries < 23; tries++) {
        const { status, wait, body } = await login(email, `guess ${tries}`)
        const { request_id: _, ...problem } = body
        seen.push({ status, wait, problem })
      }
      return seen
    }
    expect(await answers('unknown@example.com')).toEqual(await answers(admin))
  })

  it('slows down no other account, and stores no attempt in clear text', async () => {
    await guess('a.typed.secret@example.com', 25)
    expect((await login(admin, adminPassword)).status).toBe(200)
    expect((await server.store.image()).includes('a.typed.secret')).toBe(false)
  })

  it('counts the current password asked for by the own account as well, in a rehearsal too', async () => {
    const body = {
      ...{ password: 'another password', password_confirmation: 'another password' },
      current_password: 'x',
    }
    const statuses: number[] = []
    for (let tries = 0; tries < 6; tries++)
      statuses.push((await server.admin.put('/account', body, { headers: { 'accord-dry-run': 'true' } })).status)
    expect(statuses).toEqual([422, 422, 422, 422, 422, 429])
  })
})

describe('a device token', () => {
  it('spares its account the wait, also where strangers share its address', async () => {
    const ann = await someone(server, ['leads'])
    const { device: device_token } = await login(ann.email, password, { remoteAddress: home })
    expect(device_token).toMatch(/^[\w-]{43}$/)
    await guess(ann.email, 20)
    expect(statusesOf(await guess(ann.email, 5, () => ({ remoteAddress: home })))).toEqual(Array(5).fill(401))
    expect((await login(ann.email, password, { remoteAddress: home })).status).toBe(429)
    const own = await login(ann.email, password, { remoteAddress: home, device_token })
    expect([own.status, own.device]).toEqual([200, device_token])
  })

  it('goes before all strangers, however many wait', async () => {
    const ann = await someone(server, ['leads'])
    const { device: device_token } = await login(ann.email, password)
    await guess(ann.email, 20)
    const order: string[] = []
    await Promise.all([
      guess(ann.email, 10).then(() => order.push('strangers')),
      login(ann.email, password, { device_token }).then(({ status }) => order.push(`owner ${status}`)),
    ])
    expect(order).toEqual(['owner 200', 'strangers'])
  })

  it('has its own limit, belongs to one account, and ends with the password', async () => {
    const ann = await someone(server, ['leads'])
    const { device: device_token } = await login(ann.email, password)
    for (let tries = 0; tries < 5; tries++)
      expect((await login(ann.email, 'a guess', { device_token })).status).toBe(401)
    expect((await login(ann.email, password, { device_token })).status).toBe(429)
    // The token of another account is like none: the sign-in gets a new one.
    const other = await login(admin, adminPassword, { device_token })
    expect([other.status, other.device === device_token]).toEqual([200, false])

    const fresh = { password: 'another password', password_confirmation: 'another password' }
    expect((await server.admin.put(`/settings/users/${ann.id}`, fresh)).status).toBe(200)
    expect((await devices()).filter(({ user_id }) => user_id === ann.id)).toEqual([])
    const again = await login(ann.email, fresh.password, { device_token })
    expect([again.status, again.device === device_token]).toEqual([200, false])
  })

  it('is a cookie for a browser, which keeps it when its session ends', async () => {
    const page = openPage(server)
    await page.get('/csrf-cookie')
    const signIn = () => page.post('/session', { email: admin, password: adminPassword })
    expect((await signIn()).status).toBe(200)
    const cookie = page.set.find((each) => each.startsWith('accord_device='))
    expect(cookie).toMatch(/^accord_device=[\w-]{43}; Path=\/; SameSite=Lax; Max-Age=7776000; HttpOnly$/)
    const before = await devices()
    await page.call('DELETE', '/session')
    await page.get('/csrf-cookie')
    expect((await signIn()).status).toBe(200)
    expect(await devices()).toEqual(before)
    // A change of the own password forgets all other devices.
    await login(admin, adminPassword)
    const fresh = { password: 'another password', password_confirmation: 'another password' }
    const change = { ...fresh, current_password: adminPassword }
    expect((await page.call('PUT', '/account', change)).status).toBe(200)
    expect(await devices()).toEqual(before)
  })

  it('is kept for the last 20 devices of an account', async () => {
    const { device: first } = await login(admin, adminPassword)
    server.clock.advanceMs(1_000)
    for (let count = 0; count < 20; count++) await login(admin, adminPassword)
    expect(await devices()).toHaveLength(20)
    expect((await login(admin, adminPassword, { device_token: first })).device).not.toBe(first)
  })
})

describe('a notice', () => {
  const mails = async () => {
    await server.work()
    return (await mailbox.take()).map((mail) => String(mail.subject))
  }
  const dayMs = 24 * 60 * 60 * 1000

  it('tells the owner of an account once a day that it is guessed, and of a sign-in meanwhile', async () => {
    await login(admin, adminPassword)
    await guess(admin, 20)
    expect(await mails()).toEqual([])
    await guess(admin, 3)
    expect(await mails()).toEqual(['Many failed sign-ins to your account at Accord CRM'])
    await guess(admin, 3)
    expect(await mails()).toEqual([])
    await login(admin, adminPassword)
    expect(await mails()).toEqual(['A sign-in to your account at Accord CRM from a new device'])
    server.clock.advanceMs(dayMs)
    await guess(admin, 20)
    await guess(admin, 1)
    expect(await mails()).toEqual(['Many failed sign-ins to your account at Accord CRM'])
  })

  it('tells of a browser that the account does not know, but not of the first one', async () => {
    const signIn = async () => {
      const page = openPage(server)
      await page.get('/csrf-cookie')
      expect((await page.post('/session', { email: admin, password: adminPassword })).status).toBe(200)
    }
    await signIn()
    expect(await mails()).toEqual([])
    await signIn()
    expect(await mails()).toEqual(['A sign-in to your account at Accord CRM from a new device'])
    await signIn()
    expect(await mails()).toEqual([])
  })
})
