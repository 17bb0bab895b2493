// Guessing who has an account, and with which password. Every day: all doors count together, in whatever order and however many at
// once. ACCORD_TEST_FULL=1 also measures whether an answer takes longer for an address that is known, and prints what it found.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { adminPassword, startServer, type TestServer } from '../support/app.ts'
import { openPage, type Page } from '../support/page.ts'
import { password, someone } from '../support/people.ts'

const isFull = process.env.ACCORD_TEST_FULL === '1'
/** As in production. */
const memoryKiB = 19 * 1024
const email = 'admin@example.com'

let server: TestServer
let page: Page
beforeEach(async () => {
  server = await startServer()
  page = openPage(server)
  await page.get('/csrf-cookie')
})
afterEach(() => server.close())

/** Three ways to ask whether a password is right, each answered with its status. */
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

  it('gets twenty tries in all from one address, and the twenty-first is refused for an account nobody has guessed at', async () => {
    const ann = await someone(server, ['leads'])
    const statuses: number[] = []
    for (let tries = 0; tries < 21; tries++) {
      const body = { email: `nobody-${tries}@example.com`, password: 'a guess', device_name: 'Phone' }
      statuses.push((await server.anonymous.post('/login', body)).status)
    }
    expect(statuses).toEqual([...Array<number>(20).fill(401), 429])
    const body = { email: ann.email, password, device_name: 'Phone' }
    expect((await server.anonymous.post('/login', body)).status).toBe(429)
    const elsewhere = { method: 'POST' as const, url: '/api/admin/login', remoteAddress: '203.0.113.9', payload: body }
    expect((await server.inject(elsewhere)).statusCode).toBe(200)
  })
})

describe('an answer to whoever guesses at addresses', () => {
  it('says the same of one that is known and of one that is not, but for the time', async () => {
    const said = async (path: string, body: object) => {
      const { status, body: answer, headers } = await server.anonymous.post(path, body)
      const { request_id, ...problem } = answer
      return { status, problem, names: Object.keys(headers).sort() }
    }
    const login = (email: string) => said('/login', { email, password: 'a guess', device_name: 'Phone' })
    expect(await login(email)).toEqual(await login('nobody@example.com'))
    expect(await said('/forgot-password', { email })).toEqual(
      await said('/forgot-password', { email: 'nobody@example.com' }),
    )
  })

  it('takes as long for one as for the other', async () => {
    const pairs = isFull ? 500 : 3
    const timed = await startServer({ config: { passwordMemoryKiB: memoryKiB, smtpUrl: 'smtp://127.0.0.1:9' } })
    try {
      // A password of today's parameters; the seeded one is cheap.
      const known = await someone(timed, ['leads'])
      let calls = 0
      const measured = async (path: string, body: object): Promise<number> => {
        // From another address, and behind every window.
        timed.clock.advanceMs(3_600_001)
        const remoteAddress = `198.51.${(++calls >> 8) % 256}.${calls % 256}`
        const payload = JSON.stringify(body)
        const headers = { 'content-type': 'application/json', accept: 'application/json' }
        const since = performance.now()
        const { statusCode } = await timed.inject({
          method: 'POST',
          url: `/api/admin${path}`,
          remoteAddress,
          headers,
          payload,
        })
        const ms = performance.now() - since
        expect(statusCode).toBe(path === '/login' ? 401 : 200)
        return ms
      }
      const ways: [name: string, call: (email: string) => Promise<number>][] = [
        ['login', (email) => measured('/login', { email, password: 'a wrong guess', device_name: 'Phone' })],
        ['forgot-password', (email) => measured('/forgot-password', { email })],
      ]
      for (const [name, call] of ways) {
        const times: { known: number[]; unknown: number[] } = { known: [], unknown: [] }
        for (let pair = -5; pair < pairs; pair++) {
          const order = pair % 2 === 0 ? (['known', 'unknown'] as const) : (['unknown', 'known'] as const)
          for (const kind of order) {
            const ms = await call(kind === 'known' ? known.email : `person${pair + 1000}@example.com`)
            // The first ones compile and make the decoy.
            if (pair >= 0) times[kind].push(ms)
          }
        }
        if (!isFull) continue
        const z = mannWhitney(times.known, times.unknown)
        const [one, other] = [median(times.known), median(times.unknown)]
        console.info(
          `${name}: ${pairs} pairs; median known ${one.toFixed(3)} ms, unknown ${other.toFixed(3)} ms, ` +
            `difference ${(one - other).toFixed(3)} ms; Mann-Whitney U: z = ${z.toFixed(2)} (|z| must be below ${critical})`,
        )
        expect(Math.abs(z), name).toBeLessThan(critical)
      }
    } finally {
      timed.app.services.mailer.close()
      await timed.close()
    }
  }, 600_000)
})

/** Two samples of one distribution are further apart than this once in a thousand times. */
const critical = 3.29

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** How many standard deviations the ranks of two samples are apart; needs no shape of their distribution. */
function mannWhitney(one: readonly number[], other: readonly number[]): number {
  const all = [...one.map((ms) => ({ ms, own: true })), ...other.map((ms) => ({ ms, own: false }))].sort(
    (a, b) => a.ms - b.ms,
  )
  const ranks = all.reduce((sum, { own }, index) => sum + (own ? index + 1 : 0), 0)
  const [n, m] = [one.length, other.length]
  const u = ranks - (n * (n + 1)) / 2
  return (u - (n * m) / 2) / Math.sqrt((n * m * (n + m + 1)) / 12)
}
