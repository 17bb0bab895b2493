// Transactions on PostgreSQL: conflicts are retried without duplicate effects, and lost connections
// cause 503 until the server is back.
import { sql } from 'kysely'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../db/store.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { Problem } from '../../src/kernel/errors.ts'
import { savepoint, transaction } from '../../src/kernel/write/write.ts'
import { sources } from '../../src/resources/sources/resource.ts'
import { seededImage, startServer, type TestServer } from '../support/app.ts'
import { openImage } from '../support/engine.ts'
import { failFirstAttempt, SerializationFailure } from '../support/hostile.ts'
import { signedInPage } from '../support/page.ts'
import { until } from '../support/until.ts'

let database: Store
let server: TestServer
/** The number of next commits that fail with a serialization failure. */
let conflicts = 0
/** Whether the first attempt of every transaction fails. */
let isFirstRefused = false
/** The names of all events, including those of failed attempts. */
let heard: string[]

beforeEach(async () => {
  conflicts = 0
  isFirstRefused = false
  database = await openImage(await seededImage())
  const beforeCommit = (attempt: number) => {
    if (isFirstRefused) failFirstAttempt(attempt)
    if (conflicts > 0) {
      conflicts -= 1
      throw new SerializationFailure()
    }
  }
  heard = []
  server = await startServer({
    open: () => openStore(database.url, { postgres: { max: 8, beforeCommit } }),
    extensions: [(events) => events.on('*', ({ name }) => void heard.push(name))],
  })
})
afterEach(async () => {
  await server.close()
  await database.close()
})

const createSource = (name: string) => server.admin.post('/sources', { name })
const countSources = async (name: string): Promise<number> => {
  const rows = await server.store.db.selectFrom('lead_sources').select('id').where('name', '=', name).execute()
  return rows.length
}

describe('a transaction that conflicts with another one', () => {
  it('runs again and has one row, one pair of events and one row in the event log', async () => {
    // The first request also stores the last use of the token, in a separate transaction.
    await createSource('First')
    heard.length = 0
    conflicts = 3
    const reply = await createSource('Fair')
    expect(reply.status, reply.text).toBe(201)
    expect(heard).toEqual([
      // The `.before` listener runs in each attempt, because it can refuse each attempt.
      ...['settings.source.create.before', 'settings.source.create.before', 'settings.source.create.before'],
      ...['settings.source.create.before', 'settings.source.create.after'],
    ])
    expect(await countSources('Fair')).toBe(1)
    const logged = await server.store.db
      .selectFrom('events')
      .select('id')
      .where('entity_type', '=', 'sources')
      .where('entity_id', '=', reply.body.data.id)
      .execute()
    expect(logged).toHaveLength(1)
    expect(server.store.retries()).toBe(3)
  })

  it('sets the cookies of a session once', async () => {
    isFirstRefused = true
    const { set } = await signedInPage(server)
    expect(server.store.retries()).toBeGreaterThan(0)
    expect(set).toHaveLength(3)
  })

  it('that never ends is answered with 503 and Retry-After, and leaves nothing', async () => {
    conflicts = 1_000
    const reply = await createSource('Fair')
    conflicts = 0
    expect([reply.status, reply.headers['retry-after'], reply.body.code]).toEqual([503, '1', 'unavailable'])
    expect(await countSources('Fair')).toBe(0)
    expect((await createSource('Fair')).status).toBe(201)
  })

  it('counts every one of 64 changes of one lead, in some order', async () => {
    const { body } = await server.admin.post('/leads', {
      ...{ title: 'Deal', lead_value: 1, lead_source_id: 1, lead_type_id: 1 },
      person: { name: 'Ann', emails: [{ value: 'ann@example.com', label: 'work' }] },
    })
    const { id, version } = body.data
    const replies = await Promise.all(
      Array.from({ length: 64 }, (_, index) => server.admin.put(`/leads/${id}`, { lead_value: index + 2 })),
    )
    // The server may refuse some requests under this load. Refused requests do not change data.
    const done = replies.filter(({ status }) => status === 200)
    expect(replies.filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
    expect(done.length).toBeGreaterThan(0)
    const lead = (await server.admin.get(`/leads/${id}`)).body.data
    expect(lead.version).toBe(version + done.length)
    expect(done.map((reply) => reply.body.data.version).sort((one, other) => one - other)).toEqual(
      done.map((_, index) => version + index + 1),
    )
    const last = done.find((reply) => reply.body.data.version === lead.version)
    expect(lead.lead_value).toBe(last?.body.data.lead_value)
  })

  it('never leaves a pipeline without a default when two pipelines become the default at once', async () => {
    const create = (name: string) => server.admin.post('/pipelines', { name, is_default: true })
    const replies = await Promise.all(['A', 'B', 'C'].map(create))
    expect(replies.map(({ status }) => status)).toEqual([201, 201, 201])
    const { rows } = await query('select count(*)::int as count from lead_pipelines where is_default')
    expect(rows).toEqual([{ count: 1 }])
  })
})

describe('a lost connection', () => {
  it('is answered with 503 and Retry-After at most, and later requests succeed without a restart', async () => {
    expect((await createSource('Before')).status).toBe(201)
    await query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'accord' and datname = current_database()",
    )
    const first = await server.admin.get('/sources')
    expect([200, 503]).toContain(first.status)
    if (first.status === 503) expect(first.headers['retry-after']).toBe('5')
    await until(async () => (await createSource('After')).status === 201)
    expect(await countSources('Before')).toBe(1)
  })

  it('during a write loses nothing that was answered', async () => {
    const answered: string[] = []
    let isOver = false
    const writing = (async () => {
      for (let index = 0; !isOver && index < 500; index++)
        if ((await createSource(`Source ${index}`)).status === 201) answered.push(`Source ${index}`)
    })()
    for (let round = 0; round < 5; round++) {
      const before = answered.length
      await until(() => answered.length > before)
      await query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'accord' and datname = current_database()",
      )
    }
    isOver = true
    await writing
    expect(answered.length).toBeGreaterThan(0)
    const names = new Set(
      (await server.store.db.selectFrom('lead_sources').select('name').execute()).map(({ name }) => name),
    )
    expect(answered.filter((name) => !names.has(name))).toEqual([])
  })
})

/** Runs a statement on a separate connection. */
async function query(text: string) {
  const client = new pg.Client(database.url)
  await client.connect()
  try {
    return await client.query(text)
  } finally {
    await client.end()
  }
}

describe('a transaction with a part that failed', () => {
  it('logs its later events in the order of commits', async () => {
    const other = new pg.Client(database.url)
    await other.connect()
    const isFree = async (): Promise<boolean> =>
      (await other.query('select id from commit_order for update skip locked')).rows.length > 0
    const ctx = systemContext(server.app.services, 'api')
    const found: boolean[] = []
    await transaction(ctx, async (ctx) => {
      const lost = savepoint(ctx, async () => {
        await sources.create(ctx, { name: 'Lost' })
        throw new Problem('state_conflict')
      })
      await expect(lost).rejects.toThrow()
      // PostgreSQL releases the locks of the part.
      found.push(await isFree())
      await sources.create(ctx, { name: 'Kept' })
      found.push(await isFree())
    }).finally(() => other.end())
    expect(found).toEqual([true, false])
    const events = await server.store.db
      .selectFrom('events')
      .select('first_event_id')
      .where('name', '=', 'settings.source.create.after')
      .execute()
    expect(events).toEqual([{ first_event_id: null }])
  })
})

describe('a table that a migration changes while the server has prepared statements', () => {
  it('is read and written on, with the answers of before', async () => {
    const { body: created } = await createSource('First')
    const id = (created as { data: { id: number } }).data.id
    const rename = (name: string) => server.admin.put(`/sources/${id}`, { name })
    const show = () => server.admin.get(`/sources/${id}`)
    for (let times = 0; times < 5; times++) {
      expect((await rename(`Before ${times}`)).status).toBe(200)
      expect((await show()).status).toBe(200)
    }
    await sql`alter table lead_sources add column colour text`.execute(server.store.db)
    try {
      for (let times = 0; times < 5; times++) {
        const renamed = await rename(`After ${times}`)
        expect(renamed.status, renamed.text).toBe(200)
        const shown = await show()
        expect([shown.status, (shown.body as { data: { name: string } }).data.name]).toEqual([200, `After ${times}`])
      }
      expect(await statementCount()).toBeGreaterThan(0)
    } finally {
      // Other test files reuse this database.
      await sql`alter table lead_sources drop column colour`.execute(server.store.db)
    }
  })
})

/** The number of prepared statements, of several connections at once: one alone may have none. */
async function statementCount(): Promise<number> {
  const count = sql<{ count: number }>`select count(*) as count from pg_prepared_statements, pg_sleep(0.1)`
  const counts = await Promise.all(Array.from({ length: 4 }, () => count.execute(server.store.db)))
  return counts.reduce((sum, { rows }) => sum + (rows[0]?.count ?? 0), 0)
}
