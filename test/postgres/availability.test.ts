// Availability with a primary and a hot standby: Accord finds the server that accepts writes,
// replies 503 while there is none, and reads from a replica only when it is up to date.
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { type Db, openStore, type PostgresOptions, type Store } from '../../db/store.ts'
import { checkReplica } from '../../src/commands/doctor/records.ts'
import { prepareStore, startServer, type TestServer } from '../support/app.ts'
import { type Cluster, configure, hasReplayed, startCluster, startStandby } from '../support/postgres-cluster.ts'
import { needing } from '../support/programs.ts'
import { startProxy, type TcpProxy } from '../support/proxy.ts'
import { until } from '../support/until.ts'

const { describe } = needing('pg_basebackup')

let primary: Cluster
let standby: Cluster
let proxy: TcpProxy
let server: TestServer

beforeAll(async () => {
  primary = await startCluster({ settings: ['fsync = off', 'shared_buffers = 64MB'] })
  standby = await startStandby(primary, 'standby')
  await primary.query('postgres', 'create database crm')
  const store = openStore(primary.url('crm'))
  await prepareStore(store)
  await store.close()
}, 300_000)
afterAll(() => {
  standby?.stop()
  primary?.stop()
})
afterEach(() => server?.close())

const serve = async (url: string, postgres: PostgresOptions = {}): Promise<void> => {
  server = await startServer({ open: () => openStore(url, { postgres: { max: 4, ...postgres } }) })
}
const urlOf = (...ports: number[]): string =>
  `postgres://accord@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/crm?target_session_attrs=read-write`

let names = 0
const createSource = (headers: Record<string, string> = {}, name = `Source ${++names}`) =>
  server.admin.post('/sources', { name }, { headers })
const readyz = async () => {
  // The server caches the result for a second.
  server.clock.advanceMs(1_000)
  const { status, headers, body } = await server.anonymous.get('//readyz')
  return [status, headers['retry-after'], body.database_role ?? body.checks.database_role]
}
const hasCaughtUp = (): Promise<boolean> => hasReplayed(standby, primary)

describe('a URL with several hosts', () => {
  it('leads to the primary, wherever it stands in the list', async () => {
    await until(hasCaughtUp)
    await serve(urlOf(standby.port, primary.port))
    expect((await createSource()).status).toBe(201)
    expect((await server.admin.get('/sources')).status).toBe(200)
    expect(await readyz()).toEqual([200, undefined, 'primary'])
  })

  it('leads past a host that does not answer', async () => {
    await serve(urlOf(1, standby.port, primary.port))
    expect((await createSource()).status).toBe(201)
  })
})

describe('a server that falls silent', () => {
  beforeEach(async () => {
    proxy = await startProxy(primary.port)
    await serve(urlOf(proxy.port, primary.port), { max: 2 })
  })
  afterEach(() => proxy.close())

  it('is given up, also when all connections wait for it, and the next host answers', async () => {
    await createSource()
    proxy.isFrozen = true
    const waiting = Array.from({ length: 6 }, () => createSource())
    const answers = await Promise.all(waiting)
    expect(answers.filter(({ status }) => status !== 201 && status !== 503)).toEqual([])
    expect(answers.filter(({ status, headers }) => status === 503 && !headers['retry-after'])).toEqual([])
    await expect.poll(async () => (await createSource()).status, { timeout: 30_000 }).toBe(201)
    expect(await readyz()).toEqual([200, undefined, 'primary'])
  })
})

describe('a connection that is lost during a commit', () => {
  beforeEach(async () => {
    proxy = await startProxy(primary.port)
    await serve(urlOf(proxy.port))
  })
  afterEach(() => proxy.close())

  it('leaves the outcome open, and a repeat with the same Idempotency-Key finds the record', async () => {
    await createSource()
    let isArmed = false
    let cuts = 0
    proxy.cutsAfter = (sent) => {
      if (sent.includes('insert into "lead_sources"')) isArmed = true
      if (!isArmed || !sent.includes('commit\0')) return false
      isArmed = false
      cuts += 1
      return cuts === 1
    }
    const headers = { 'idempotency-key': 'cut' }
    const first = await createSource(headers, 'Cut')
    expect([first.status, first.headers['retry-after']]).toEqual([503, '5'])
    expect(first.body.detail).toBe(
      'The database did not confirm the change, which may be kept; only a repeat with the same Idempotency-Key is safe.',
    )
    const second = await createSource(headers, 'Cut')
    expect([second.status, second.headers['idempotency-replayed'], cuts]).toEqual([201, 'true', 1])
    const stored = await primary.query('crm', `select id from lead_sources where name = 'Cut'`)
    expect(stored).toEqual([{ id: String(second.body.data.id) }])
  })
})

describe('a read replica', () => {
  const isStandby = async (db: Db): Promise<boolean> => {
    const { rows } = await sql<{ is: number }>`select pg_is_in_recovery() as "is"`.execute(db)
    return rows[0]?.is === 1
  }
  const replica = () => ({ replicaUrl: standby.url('crm') })
  const replicaState = async () => {
    server.clock.advanceMs(1_000)
    return (await server.anonymous.get('//readyz')).body.checks.replica
  }
  const lastSource = (db: Db) =>
    db.selectFrom('lead_sources').select('name').orderBy('id', 'desc').limit(1).executeTakeFirst()

  it('answers with everything that was written before, also at another process', async () => {
    await serve(primary.url('crm'), replica())
    const other: Store = openStore(primary.url('crm'), { postgres: replica() })
    let answers = 0
    for (let round = 0; round < 30; round++) {
      const { body } = await createSource()
      const seen = await other.onReplica(async (db) => {
        if (await isStandby(db)) answers += 1
        return lastSource(db)
      })
      expect(seen?.name).toBe(body.data.name)
    }
    await other.close()
    expect(answers).toBeGreaterThan(0)
    expect(await replicaState()).toBe('ok')
  })

  it('answers exports and reports', async () => {
    await serve(primary.url('crm'), replica())
    const { body } = await server.admin.post('/contacts/persons', { name: 'Ada' })
    const scans = async () => {
      const [row] = await standby.query<{ rows: number }>(
        'crm',
        `select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_user_tables where relname = 'persons'`,
      )
      return row?.rows ?? 0
    }
    const before = await scans()
    const exported = await server.admin.get('/contacts/persons/export', { query: { format: 'ndjson' } })
    expect(exported.text).toContain(`"id":${body.data.id},`)
    expect((await server.admin.get('/reports/overview')).status).toBe(200)
    // PostgreSQL reports scans only when the server process is idle or ends.
    await expect.poll(scans).toBeGreaterThan(before)
  })

  it('is not used while it lacks a change, and again afterwards', async () => {
    await serve(primary.url('crm'), replica())
    await standby.query('crm', 'select pg_wal_replay_pause()')
    try {
      const { body } = await createSource()
      const seen = await server.store.onReplica(async (db) => [await isStandby(db), (await lastSource(db))?.name])
      expect(seen).toEqual([false, body.data.name])
      expect(await replicaState()).toBe('behind')
    } finally {
      await standby.query('crm', 'select pg_wal_replay_resume()')
    }
    await expect.poll(replicaState).toBe('ok')
  })

  it('without hot_standby_feedback gets a hint of doctor', async () => {
    await serve(primary.url('crm'), replica())
    await until(async () => (await replicaState()) === 'ok')
    expect(await checkReplica(server.store)).toMatchObject({
      sentence: expect.stringContaining('hot_standby_feedback is off'),
    })
    configure(standby, ['hot_standby_feedback = on'])
    await expect.poll(() => checkReplica(server.store)).toBeNull()
  })

  it('of another timeline is not used, however far it is', async () => {
    const promoted = await startStandby(primary, 'promoted')
    try {
      await promoted.promote()
      await serve(primary.url('crm'))
      for (let round = 0; round < 10; round++) await createSource()
      await until(hasCaughtUp)
      await server.close()
      await serve(promoted.url('crm'), replica())
      expect(await server.store.onReplica(isStandby)).toBe(false)
      expect(await replicaState()).toBe('behind')
    } finally {
      promoted.stop()
    }
  })

  it('that cancels a query or does not answer is replaced by the primary', async () => {
    await serve(primary.url('crm'), replica())
    await until(async () => (await replicaState()) === 'ok')
    const ran: boolean[] = []
    const cancelled = await server.store.onReplica(async (db) => {
      ran.push(await isStandby(db))
      if (ran.at(-1)) await sql`do $$ begin raise 'conflict with recovery' using errcode = '40001'; end $$`.execute(db)
      return 'done'
    })
    expect([cancelled, ran]).toEqual(['done', [true, false]])

    await server.close()
    await serve(primary.url('crm'), { replicaUrl: urlOf(1) })
    expect(await server.store.onReplica(isStandby)).toBe(false)
    expect(await replicaState()).toBe('unreachable')
    expect((await server.admin.get('/contacts/persons/export')).status).toBe(200)
  })
})

describe('an address that leads to a standby', () => {
  beforeEach(async () => {
    proxy = await startProxy(primary.port)
    await serve(`postgres://accord@127.0.0.1:${proxy.port}/crm`)
    await createSource()
    await until(hasCaughtUp)
    proxy.target = standby.port
    proxy.cut()
  })
  afterEach(() => proxy.close())

  const refused = async () => {
    const { status, headers, body } = await createSource()
    return [status, headers['retry-after'], body.detail]
  }
  const readOnly = [503, '5', 'The database server is a standby, which only reads; nothing was written.']

  it('still reads, refuses writes with 503, and leaves no connection to the standby behind', async () => {
    await until(async () => (await server.admin.get('/sources')).status === 200)
    expect(await refused()).toEqual(readOnly)
    proxy.target = primary.port
    const made = await createSource()
    expect(made.status, made.text).toBe(201)
    await standby.query('crm', 'select pg_wal_replay_pause()')
    try {
      const { body } = await createSource()
      expect((await server.admin.get(`/sources/${body.data.id}`)).status).toBe(200)
    } finally {
      await standby.query('crm', 'select pg_wal_replay_resume()')
    }
  })

  it('accepts writes once the standby is promoted, without a restart', async () => {
    await until(async () => (await server.admin.get('/sources')).status === 200)
    expect(await refused()).toEqual(readOnly)
    expect(await readyz()).toEqual([503, '5', 'standby'])
    await standby.promote()
    expect((await createSource()).status).toBe(201)
    await expect.poll(readyz).toEqual([200, undefined, 'primary'])
    proxy.target = 1
    proxy.cut()
    await expect.poll(readyz).toEqual([503, '5', 'unreachable'])
    expect((await server.admin.get('/sources')).headers['retry-after']).toBe('5')
  })
})
