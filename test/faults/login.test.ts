// Guessing accounts and passwords: attempts at all endpoints that check a password count together,
// also when they are concurrent. test/timing/login.test.ts measures the reply time.
import { beforeEach, describe, expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { openPage, type Page } from '../support/page.ts'
import { password, someone } from '../support/people.ts'
import { useNewServers } from '../support/using.ts'

const email = 'admin@example.com'

let page: Page
const server = useNewServers()
beforeEach(async () => {
  page = openPage(server)
  await page.get('/csrf-cookie')
})

/** Three endpoints that check a password. Each function returns the status. */
const doors: ((guess: string) => Promise<number>)[] = [
  async (guess) => (await server.anonymous.post('/login', { email, password: guess, device_name: 'Phone' })).status,
  async (guess) => (await page.post('/session', { email, password: guess })).status,
  async (guess) =>
    (
      await server.admin.put('/account', {
        password: 'another password',
        password_confirmation: 'another password',
        current_password: guess,
      })
    ).status,
]
const door = (index: number, guess: string): Promise<number> =>
  (doors[index % doors.length] as (typeof doors)[0])(guess)

describe('guessing a password', () => {
  it('ends with the fifth wrong one, by whichever doors they came: the right one is refused at all of them for a minute', async () => {
    const wrong: number[] = []
    for (let tries = 0; tries < 5; tries++) wrong.push(await door(tries, `guess ${tries}`))
    expect(wrong).toEqual([401, 401, 422, 401, 401])
    for (const ask of doors) expect(await ask(adminPassword)).toBe(429)
    server.clock.advanceMs(59_999)
    for (const ask of doors) expect(await ask(adminPassword)).toBe(429)
    server.clock.advanceMs(2)
    expect(await door(0, adminPassword)).toBe(200)
  })

  it('gets no more tries when many come at once through all doors: the right one behind them is not heard', async () => {
    const guesses = Array.from({ length: 29 }, (_, index) => door(index, `guess ${index}`))
    const right = doors.map((ask) => ask(adminPassword))
    const statuses = await Promise.all(guesses)
    expect(await Promise.all(right)).toEqual([429, 429, 429])
    expect(statuses.filter((status) => status !== 429)).toHaveLength(5)
    expect(server.events()).toEqual(['user.session.failed'])
  })

  it('gets twenty tries in all from one address, and the twenty-first is refused for an account without guesses', async () => {
    const ann = await someone(server, ['leads'])
    const statuses: number[] = []
    for (let tries = 0; tries < 21; tries++) {
      const body = { email: `unknown-${tries}@example.com`, password: 'a guess', device_name: 'Phone' }
      statuses.push((await server.anonymous.post('/login', body)).status)
    }
    expect(statuses).toEqual([...Array<number>(20).fill(401), 429])
    const body = { email: ann.email, password, device_name: 'Phone' }
    expect((await server.anonymous.post('/login', body)).status).toBe(429)
    const elsewhere = { method: 'POST' as const, url: '/api/admin/login', remoteAddress: '203.0.113.9', payload: body }
    expect((await server.inject(elsewhere)).statusCode).toBe(200)
  })
})

describe('a reply to a caller who guesses addresses', () => {
  it('says the same of one that is known and of one that is not, but for the time', async () => {
    const said = async (path: string, body: object) => {
      const { status, body: answer, headers } = await server.anonymous.post(path, body)
      const { request_id, ...problem } = answer
      return { status, problem, names: Object.keys(headers).sort() }
    }
    const login = (email: string) => said('/login', { email, password: 'a guess', device_name: 'Phone' })
    expect(await login(email)).toEqual(await login('unknown@example.com'))
    expect(await said('/forgot-password', { email })).toEqual(
      await said('/forgot-password', { email: 'unknown@example.com' }),
    )
  })
})
