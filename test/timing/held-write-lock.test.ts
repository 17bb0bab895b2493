// Another process holds the write lock for long: /healthz and reads are not affected, and writes
// wait up to 5 s and are then refused.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { environment, isFull } from '../faults/serving.ts'
import { accordServing, type Serving } from '../support/accord.ts'
import { workingFolder } from '../support/installed.ts'

const heldMs = isFull ? 20_000 : 7_000
/** The short run allows more, because earlier tests may still be ending. */
const maxSilenceMs = isFull ? 100 : 2_500

let folder: string
let serving: Serving | undefined
beforeEach(async () => {
  folder = await workingFolder()
})
afterEach(async () => {
  await serving?.stop()
  rmSync(folder, { recursive: true, force: true })
})

it(
  'answers /healthz and reads at once while another process holds the write lock',
  async () => {
    serving = await accordServing(folder, 'serve', environment)
    const { url } = serving
    const call = (path: string, method = 'GET', body?: object, token = '') =>
      fetch(url + path, {
        method,
        headers: { accept: 'application/json', 'content-type': 'application/json', authorization: `Bearer ${token}` },
        ...(body && { body: JSON.stringify(body) }),
      })
    const account = { email: 'admin@example.com', password: environment.ACCORD_ADMIN_PASSWORD, device_name: 'test' }
    const signedIn = await call('/api/admin/login', 'POST', account)
    const { token } = ((await signedIn.json()) as { data: { token: string } }).data
    const write = async (name: string) => {
      const since = performance.now()
      const status = await call('/api/admin/sources', 'POST', { name }, token).then(
        (answer) => answer.arrayBuffer().then(() => answer.status),
        () => 'not answered',
      )
      return { status, ms: performance.now() - since }
    }
    expect((await write('before')).status).toBe(201)

    const holding = new Sqlite(join(folder, 'data', 'accord.db'))
    holding.exec('begin immediate')
    const until = performance.now() + heldMs
    const longest = { health: 0, read: 0 }
    const watch = async (what: keyof typeof longest, path: string) => {
      while (performance.now() < until) {
        const since = performance.now()
        const answer = await call(path, 'GET', undefined, token)
        await answer.arrayBuffer()
        expect(answer.status).toBe(200)
        longest[what] = Math.max(longest[what], performance.now() - since)
        await pause(10)
      }
    }
    const writes: ReturnType<typeof write>[] = []
    const writing = async () => {
      for (let count = 0; performance.now() < until; count++) {
        writes.push(write(`held ${count}`))
        await pause(10)
      }
    }
    try {
      await Promise.all([watch('health', '/healthz'), watch('read', '/api/admin/sources'), writing()])
    } finally {
      holding.close()
    }
    const done = await Promise.all(writes)
    const refused = done.filter(({ status }) => status === 503)
    console.log(
      `write lock held for ${heldMs} ms: longest answer ${JSON.stringify(longest)} ms, ${done.length} writes, ${refused.length} refused, longest ${Math.max(...done.map(({ ms }) => ms))} ms`,
    )
    expect(new Set(done.map(({ status }) => status))).toEqual(new Set([201, 503]))
    expect(Math.max(...done.map(({ ms }) => ms))).toBeLessThan(5_000 + 2 * maxSilenceMs)
    expect(longest.health).toBeLessThan(maxSilenceMs)
    expect(longest.read).toBeLessThan(maxSilenceMs)
  },
  heldMs + 60_000,
)
