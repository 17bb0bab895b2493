// The reply time of a sign-in. The short run checks that many concurrent strangers do not keep
// users out. ACCORD_TEST_FULL=1 also measures whether the reply time differs for known addresses,
// and prints the result.
import { afterEach, describe, expect, it } from 'vitest'
import { adminPassword } from '../support/app.ts'
import { someone } from '../support/people.ts'
import { useNewServers } from '../support/using.ts'

const isFull = process.env.ACCORD_TEST_FULL === '1'
/** The value of production. */
const passwordMemoryKiB = 19 * 1024

const admin = 'admin@example.com'

const server = useNewServers({ config: { passwordMemoryKiB, smtpUrl: 'smtp://127.0.0.1:9' } })
afterEach(() => {
  server.app.services.mailer.close()
})

async function ask(path: string, body: object, remoteAddress: string) {
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const payload = JSON.stringify(body)
  const since = performance.now()
  const reply = await server.inject({ method: 'POST', url: `/api/admin${path}`, remoteAddress, headers, payload })
  const ms = performance.now() - since
  return { status: reply.statusCode, wait: Number(reply.headers['retry-after'] ?? 0), ms }
}

/** Returns a new address. */
let addresses = 0
const elsewhere = (): string => `198.51.${(++addresses >> 8) % 256}.${addresses % 256}`

describe('a reply to a caller who guesses addresses', () => {
  it('takes as long for one that is known as for one that is not', async () => {
    const pairs = isFull ? 500 : 3
    // This password is hashed with the parameters above, unlike the seeded one.
    const known = await someone(server, ['leads'])
    const ways = [
      { path: '/login', status: 401, more: { password: 'a wrong guess', device_name: 'Phone' } },
      { path: '/forgot-password', status: 200, more: {} },
    ]
    for (const { path, status, more } of ways) {
      const times: { known: number[]; unknown: number[] } = { known: [], unknown: [] }
      for (let pair = -5; pair < pairs; pair++) {
        const order = pair % 2 === 0 ? (['known', 'unknown'] as const) : (['unknown', 'known'] as const)
        for (const kind of order) {
          // Advances the clock past all rate-limit windows.
          server.clock.advanceMs(3_600_001)
          const email = kind === 'known' ? known.email : `person${pair + 1000}@example.com`
          const answer = await ask(path, { email, ...more }, elsewhere())
          expect(answer.status).toBe(status)
          // The first requests are a warm-up: they compile code and create the dummy hash.
          if (pair >= 0) times[kind].push(answer.ms)
        }
      }
      if (!isFull) continue
      const z = mannWhitney(times.known, times.unknown)
      const [one, other] = [median(times.known), median(times.unknown)]
      console.info(
        `${path}: ${pairs} pairs; median known ${one.toFixed(3)} ms, unknown ${other.toFixed(3)} ms, ` +
          `difference ${(one - other).toFixed(3)} ms; Mann-Whitney U: z = ${z.toFixed(2)} (|z| must be below ${critical})`,
      )
      expect(Math.abs(z), path).toBeLessThan(critical)
    }
  }, 600_000)
})

const login = (email: string, password: string, remoteAddress: string) =>
  ask('/login', { email, password, device_name: 'Phone' }, remoteAddress)

describe('sign-ins of strangers', { timeout: 120_000 }, () => {
  it('130 at once are all answered, and so is a user from a new address', async () => {
    const strangers = Array.from({ length: 130 }, (_, index) =>
      login(`unknown-${index}@example.com`, 'a guess', elsewhere()),
    )
    const own = await Promise.all([1, 2, 3].map(() => login(admin, adminPassword, elsewhere())))
    expect(own.map(({ status }) => status)).toEqual([200, 200, 200])
    const answers = await Promise.all(strangers)
    expect(answers.map(({ status }) => status)).toEqual(Array(130).fill(401))
  })

  it('200 that guess one account without a pause do not keep its owner out, who comes from a new address', async () => {
    let isOver = false
    let guesses = 0
    const stranger = async (): Promise<void> => {
      const from = elsewhere()
      while (!isOver) {
        const { status, wait } = await login(admin, 'a guess', from)
        if (status === 401) guesses++
        // A refused stranger goes on from another address.
        else if (wait > 0) return stranger()
      }
    }
    const strangers = Array.from({ length: 200 }, stranger)
    while (guesses < 50) await new Promise((resolve) => setTimeout(resolve, 10))
    const tries = [await login(admin, adminPassword, elsewhere()), await login(admin, adminPassword, elsewhere())]
    isOver = true
    console.info(
      `The owner signed in after ${tries.map(({ ms }) => Math.round(ms)).join(' and ')} ms; ${guesses} guesses`,
    )
    expect(tries.map(({ status }) => status)).toEqual([200, 200])
    await Promise.all(strangers)
  })
})

/**
 * Two samples of the same distribution exceed this value with a probability of one in a thousand.
 */
const critical = 3.29

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/**
 * Returns the Mann-Whitney statistic of two samples in standard deviations, which assumes no
 * particular distribution.
 */
function mannWhitney(one: readonly number[], other: readonly number[]): number {
  const all = [...one.map((ms) => ({ ms, own: true })), ...other.map((ms) => ({ ms, own: false }))].sort(
    (a, b) => a.ms - b.ms,
  )
  const ranks = all.reduce((sum, { own }, index) => sum + (own ? index + 1 : 0), 0)
  const [n, m] = [one.length, other.length]
  const u = ranks - (n * (n + 1)) / 2
  return (u - (n * m) / 2) / Math.sqrt((n * m * (n + m + 1)) / 12)
}
