// Protection against guessing the password of an account from many addresses: the wait grows with
// each attempt, users are not locked out, and unknown accounts behave like known ones.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { adminPassword, startServer, type TestServer } from '../../support/app.ts'
import { password, someone } from '../../support/people.ts'

let server: TestServer
beforeEach(async () => {
  server = await startServer()
})
afterEach(() => server.close())

const admin = 'admin@example.com'

/** Signs in from a new address, unless one is given. */
let addresses = 0
async function login(email: string, word: string, remoteAddress = `198.51.${++addresses >> 8}.${addresses & 255}`) {
  const payload = { email, password: word, device_name: 'Phone' }
  const headers = { accept: 'application/json' }
  const reply = await server.inject({ method: 'POST', url: '/api/admin/login', remoteAddress, headers, payload })
  return { status: reply.statusCode, wait: Number(reply.headers['retry-after'] ?? 0), text: reply.body }
}

describe('guessing one account', () => {
  it('from 400 addresses gets 20 tries, one after another or at once', async () => {
    const statuses: number[] = []
    for (let tries = 0; tries < 400; tries++) statuses.push((await login(admin, `guess ${tries}`)).status)
    expect(statuses).toEqual([...Array<number>(20).fill(401), ...Array<number>(380).fill(429)])

    const ann = await someone(server, ['leads'])
    const guesses = Array.from({ length: 60 }, (_, index) =>
      login(ann.email, index === 59 ? password : `guess ${index}`),
    )
    const answers = await Promise.all(guesses)
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(20)
    expect(answers.at(-1)?.status).toBe(429)
  })

  it('waits for twice as long after each further failure, up to five minutes, and a caller who waited is heard', async () => {
    for (let tries = 0; tries < 20; tries++) await login(admin, `guess ${tries}`)
    const waits: number[] = []
    for (let tries = 0; tries < 11; tries++) {
      const { status, wait } = await login(admin, adminPassword)
      expect(status).toBe(429)
      waits.push(wait)
      server.clock.advanceMs(wait * 1000)
      if (tries < 10) expect((await login(admin, `further guess ${tries}`)).status).toBe(401)
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
    expect((await login(admin, adminPassword)).status).toBe(200)
  })

  it('says and does the same for an account that does not exist', async () => {
    const answers = async (email: string) => {
      const seen: unknown[] = []
      for (let tries = 0; tries < 23; tries++) {
        const { status, wait, text } = await login(email, `guess ${tries}`)
        const { request_id: _, ...problem } = JSON.parse(text)
        seen.push({ status, wait, problem })
        if (tries === 21) server.clock.advanceMs(wait * 1000)
      }
      return seen
    }
    expect(await answers('nobody@example.com')).toEqual(await answers(admin))
  })

  it('does not slow down an account where it has signed in before, until its password is set again', async () => {
    const ann = await someone(server, ['leads'])
    const home = '203.0.113.7'
    expect((await login(ann.email, password, home)).status).toBe(200)
    for (let tries = 0; tries < 30; tries++) await login(ann.email, `guess ${tries}`)
    expect((await login(ann.email, password)).status).toBe(429)
    expect((await login(ann.email, password, home)).status).toBe(200)
    // An address that is known for another user is not known for Ann.
    expect((await login(admin, adminPassword, '203.0.113.8')).status).toBe(200)
    expect((await login(ann.email, password, '203.0.113.8')).status).toBe(429)
    // A known address also has the limit of five attempts a minute.
    for (let tries = 0; tries < 5; tries++) expect((await login(ann.email, 'a guess', home)).status).toBe(401)
    expect((await login(ann.email, password, home)).status).toBe(429)

    const fresh = { password: 'another password', password_confirmation: 'another password' }
    expect((await server.admin.put(`/settings/users/${ann.id}`, fresh)).status).toBe(200)
    server.clock.advanceMs(60_001)
    expect((await login(ann.email, 'one more guess')).status).toBe(401)
    expect((await login(ann.email, fresh.password, home)).status).toBe(429)
  })

  it('slows down no other account, and stores no attempt in clear text', async () => {
    for (let tries = 0; tries < 25; tries++) await login('a.typed.secret@example.com', `guess ${tries}`)
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
