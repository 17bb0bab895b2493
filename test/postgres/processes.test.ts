// Several processes on one PostgreSQL database, directly and through PgBouncer: all processes see a
// write within a second, jobs run once, and readers of the event log miss no events.
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { claim } from '../../src/jobs/leases.ts'
import { acquireLock, releaseLock } from '../../src/jobs/locks.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { administrate, databaseUrl } from '../support/engine.ts'
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts'
import { startTwoServers, type TwoServers } from '../support/processes.ts'
import { needing } from '../support/programs.ts'
import { until } from '../support/until.ts'

/**
 * The number of server connections of the pooler, fewer than the two processes open to the pooler.
 */
const connections = 5

describe('two processes that connect directly', () => testProcesses(false))
needing('pgbouncer').describe('two processes that connect through PgBouncer in transaction mode', () =>
  testProcesses(true),
)

function testProcesses(isPooled: boolean): void {
  let both: TwoServers
  let pooler: PgBouncer | undefined
  beforeAll(async () => {
    if (!isPooled) return
    const server = new URL(databaseUrl('postgres'))
    await administrate(`alter role "${server.username}" set timezone = 'UTC'`)
    pooler = await startPgBouncer(server, connections)
  })
  afterAll(() => pooler?.stop())
  beforeEach(async () => {
    both = await startTwoServers({ isPooled }, pooler?.through)
  })
  afterEach(() => both.close())

  /** The guarantee is one second. The test allows more, because the machine may be busy. */
  const soon = { timeout: 5_000 }

  describe('both', () => {
    it('both know at once what one of them has written', async () => {
      const made = await both.one.admin.post('/sources', { name: 'Fair' })
      expect((await both.two.admin.get(`/sources/${made.body.data.id}`)).body.data.name).toBe('Fair')
    })

    it('refuse a token that the other one has revoked, within a second', async () => {
      const user = await both.one.as(1)
      const made = await user.post('/tokens', { name: 'script', abilities: ['*'] })
      expect(made.status, made.text).toBe(201)
      const caller = both.two.caller(made.body.data.token)
      expect((await caller.get('/leads')).status).toBe(200)
      const revoked = await both.one.admin.delete(`/tokens/${made.body.data.id}`)
      expect(revoked.status, revoked.text).toBe(200)
      await expect.poll(async () => (await caller.get('/leads')).status, soon).toBe(401)
    })

    it('follow a change of a role, an attribute and the configuration within a second', async () => {
      const attribute = await both.one.admin.post('/settings/attributes', {
        ...{ code: 'industry', name: 'Industry', type: 'text', entity_type: 'organizations' },
      })
      expect(attribute.status, attribute.text).toBe(201)
      const create = () =>
        both.two.admin.post('/contacts/organizations', { name: 'Acme', custom_attributes: { industry: 'Logistics' } })
      await expect.poll(async () => (await create()).status, soon).toBe(201)
    })

    it('show a write of the other one in the feed of events', async () => {
      const before = (await both.two.admin.get('/events?limit=1')).body
      await both.one.admin.post('/sources', { name: 'Fair' })
      await expect
        .poll(async () => {
          const { body } = await both.two.admin.get('/events', { query: { entity_type: 'sources' } })
          return (body.data as { name: string }[]).map(({ name }) => name)
        }, soon)
        .toContain('settings.source.create.after')
      expect(before).toBeDefined()
    })

    it('answer a repeated Idempotency-Key with the answer that the other one gave', async () => {
      const headers = { 'idempotency-key': 'one-key' }
      const first = await both.one.admin.post('/sources', { name: 'Fair' }, { headers })
      const same = both.two.caller(both.one.admin.token)
      const second = await same.post('/sources', { name: 'Fair' }, { headers })
      expect([first.status, second.status]).toEqual([201, 201])
      expect(second.body.data.id).toBe(first.body.data.id)
    })

    it('claim each job once, however often both look for work at the same time', async () => {
      await both.store.transaction(async (db) => {
        const now = both.one.clock.now().toISOString()
        const row = {
          kind: 'test',
          payload: '{}',
          state: 'waiting',
          run_at: now,
          created_at: now,
          updated_at: now,
        } as const
        for (let index = 0; index < 40; index++) await db.insertInto('jobs').values(row).execute()
      })
      const claimOnce = (index: number) => {
        const { services } = (index % 2 === 0 ? both.one : both.two).app
        return claim(systemContext(services, 'api'), `worker-${index}`, new Map([['test', 5]]), 50)
      }
      const ids: number[] = []
      // A worker skips rows that another worker has locked, so a round may leave some.
      for (let round = 0; round < 20 && ids.length < 40; round++) {
        const claimed = await Promise.all(Array.from({ length: 12 }, (_, index) => claimOnce(index)))
        ids.push(...claimed.flat().map(({ id }) => id))
      }
      expect(new Set(ids).size).toBe(ids.length)
      expect(ids).toHaveLength(40)
    })

    it('never hold the same lock', async () => {
      const take = (index: number) => {
        const { services } = (index % 2 === 0 ? both.one : both.two).app
        return acquireLock(systemContext(services, 'api'), 'one', `owner-${index}`, 60_000)
      }
      const taken = await Promise.all(Array.from({ length: 10 }, (_, index) => take(index)))
      expect(taken.filter(Boolean)).toHaveLength(1)
      const holder = taken.indexOf(true)
      await releaseLock(systemContext(both.one.app.services, 'api'), 'one', `owner-${holder}`)
      expect(await take(99)).toBe(true)
    })
  })

  describe('ids of events', () => {
    it('appear in their order, so a reader that continues after the last id misses none', async () => {
      const seen: number[] = []
      let last = 0
      let isOver = false
      const reading = (async () => {
        while (!isOver || (await newest()) > last) {
          const rows = await both.store.db
            .selectFrom('events')
            .select('id')
            .where('id', '>', last)
            .orderBy('id')
            .execute()
          for (const { id } of rows) seen.push(id)
          last = rows.at(-1)?.id ?? last
          await sleep(1)
        }
      })()
      const writers = [both.one, both.two, both.one, both.two].map(async ({ admin }, writer) => {
        for (let index = 0; index < 15; index++) await admin.post('/sources', { name: `Source ${writer} ${index}` })
      })
      await Promise.all(writers)
      isOver = true
      await reading
      const all = await both.store.db.selectFrom('events').select('id').orderBy('id').execute()
      expect(seen).toEqual(all.map(({ id }) => id))
      expect(seen.length).toBeGreaterThanOrEqual(60)
    })

    const newest = async (): Promise<number> =>
      (
        await both.store.db
          .selectFrom('events')
          .select((eb) => eb.fn.max('id').as('id'))
          .executeTakeFirst()
      )?.id ?? 0
  })

  describe('the totals of leads', () => {
    it('are right after many processes have written leads, and after the differences are summed up', async () => {
      const create = (admin: typeof both.one.admin, index: number) =>
        admin.post('/leads', {
          ...{ title: `Deal ${index}`, lead_value: index, lead_source_id: 1, lead_type_id: 1 },
          person: { name: `P${index}`, emails: [{ value: `p${index}@example.com`, label: 'work' }] },
        })
      const replies = await Promise.all(
        Array.from({ length: 16 }, (_, index) => create((index % 2 ? both.one : both.two).admin, index)),
      )
      // A busy server may refuse some requests. Refused requests must not change data.
      const made = replies.filter(({ status }) => status === 201)
      expect(replies.filter(({ status }) => status !== 201 && status !== 503)).toEqual([])
      const value = made.reduce((sum, { body }) => sum + body.data.lead_value, 0)
      const totals = () => both.store.db.selectFrom('lead_totals').select(['count', 'units']).execute()
      expect(await totals()).toEqual([{ count: made.length, units: value }])
      await both.store.transaction((db) => sql`select accord_fold_totals(0)`.execute(db))
      expect(await totals()).toEqual([{ count: made.length, units: value }])
      const { rows } = await sql`select count(*) as count from lead_total_changes`.execute(both.store.db)
      expect(rows).toEqual([{ count: 1 }])
      await until(async () => (await both.two.admin.get('/leads')).body.meta.total === made.length)
    })
  })
}
