// A table that another session has locked, such as by ALTER TABLE: requests for it get 503, and all
// others are answered. ACCORD_TEST_FULL=1 locks the table for 30 seconds.
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { adminPassword, startServer, type TestServer } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { given } from '../support/given.ts'
import { needing } from '../support/programs.ts'

const lockedMs = process.env.ACCORD_TEST_FULL === '1' ? 30_000 : 4_000

needing('postgres').describe.runIf(isPostgres)('a locked table', () => {
  let server: TestServer
  beforeAll(async () => {
    server = await startServer()
    await given(server.admin).lead({ title: 'Locked' })
  }, 120_000)
  afterAll(() => server?.close())

  /** Locks the table leads in another session until the returned function is called. */
  async function lockLeads(): Promise<() => Promise<void>> {
    const other = new Client(server.store.url)
    await other.connect()
    await other.query('begin; lock table leads in access exclusive mode')
    return () => other.end()
  }

  it('makes requests for it 503 with Retry-After, and all others are answered', { timeout: 120_000 }, async () => {
    const unlock = await lockLeads()
    let isOver = false
    const refused: { status: number; wait: string | undefined; code: string }[] = []
    const asking = Array.from({ length: 30 }, async (_, index) => {
      while (!isOver) {
        const ask =
          index % 3 === 0 ? server.admin.post('/leads', { title: 'New', lead_value: 1 }) : server.admin.get('/leads')
        const { status, headers, body } = await ask
        refused.push({ status, wait: headers['retry-after'] as string | undefined, code: body.code })
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    })
    const others: Record<string, number[]> = {}
    let longestMs = 0
    const since = performance.now()
    for (let round = 0; round < 3 || performance.now() - since < lockedMs; round++) {
      const began = performance.now()
      const note = (name: string, { status }: { status: number }) => {
        others[name] = [...(others[name] ?? []), status]
      }
      note('list', await server.admin.get('/contacts/persons'))
      note('write', await server.admin.post('/tags', { name: `Tag ${performance.now()}` }))
      note('ready', await server.anonymous.get('//readyz'))
      const login = { email: 'admin@example.com', password: adminPassword, device_name: 'Phone' }
      note('sign-in', await server.anonymous.post('/login', login))
      note('account', await server.admin.get('/account'))
      longestMs = Math.max(longestMs, performance.now() - began)
    }
    isOver = true
    await Promise.all(asking)
    await unlock()
    console.info(
      `${refused.length} requests for the locked table; five other requests took at most ${Math.round(longestMs)} ms`,
    )
    for (const [name, statuses] of Object.entries(others)) {
      const usual = name === 'write' ? 201 : 200
      expect([name, statuses.length >= 3, statuses.filter((status) => status !== usual)]).toEqual([name, true, []])
    }
    expect(refused.length).toBeGreaterThan(30)
    expect(refused.filter(({ status, wait, code }) => status !== 503 || !wait || code !== 'unavailable')).toEqual([])
    await expect.poll(async () => (await server.admin.get('/leads')).status).toBe(200)
    expect((await server.admin.post('/leads', { title: 'After', lead_value: 1 })).status).toBe(201)
  })
})
