// Writes through the kernel, for every resource: listeners cannot change them, dry runs change
// nothing, replies show only what the caller may see, and a locked database causes no 500.

import { afterEach, describe, expect, it } from 'vitest'
import { Sqlite } from '../../../db/sqlite/driver.ts'
import { systemContext } from '../../../src/kernel/context.ts'
import { write } from '../../../src/kernel/write/write.ts'
import { startServer, type TestServer } from '../../support/app.ts'
import { isPostgres } from '../../support/engine.ts'

let server: TestServer
afterEach(() => server.close())

describe('a before listener', () => {
  it('gets a copy: what it does to the input does not reach the write', async () => {
    server = await startServer({
      extensions: [
        (events) => {
          events.on('settings.source.create.before', (event) => {
            ;(event.input as { name: string }).name = 'Changed'
          })
        },
      ],
    })
    const { body } = await server.admin.post('/sources', { name: 'Trade fair' })
    expect(body.data.name).toBe('Trade fair')
  })

  it('that fails is a fault of the server: 500 with the request id, and nothing is written', async () => {
    server = await startServer({
      extensions: [
        (events) => {
          events.on('settings.source.*.before', () => {
            throw new TypeError('A defect.')
          })
        },
      ],
    })
    const before = await server.store.db.selectFrom('lead_sources').selectAll().execute()
    const id = before[0]?.id
    const call = { headers: { 'x-request-id': 'seven' } }
    for (const reply of [
      server.admin.post('/sources', { name: 'Trade fair' }, call),
      server.admin.put(`/sources/${id}`, { name: 'Renamed' }, call),
      server.admin.delete(`/sources/${id}`, call),
    ]) {
      const { status, body } = await reply
      expect([status, body.code, body.request_id]).toEqual([500, 'internal_error', 'seven'])
      expect(JSON.stringify(body)).not.toContain('defect')
    }
    expect(await server.store.db.selectFrom('lead_sources').selectAll().execute()).toEqual(before)
  })
})

describe('the event of a write', () => {
  it('holds no secret, whatever the record or the body says, but for fields that users have called so', async () => {
    const heard: unknown[] = []
    server = await startServer({
      extensions: [(events) => void events.on('settings.source.create.before', ({ input }) => void heard.push(input))],
    })
    const ctx = systemContext(server.app.services, 'cli')
    const hush = {
      password: 'hush 1',
      password_hash: 'hush 2',
      secret: 'hush 3',
      secret_hash: 'hush 4',
      token: 'hush 5',
    }
    const entity = { id: 7, name: 'Fair', ...hush, deep: [{ ...hush }], custom_attributes: { token: 'of a bus' } }
    await write(ctx, 'settings.source.create', { entity: 'sources', input: { name: 'Fair', ...hush } }, async () => ({
      id: 7,
      entity,
    }))
    const { after } = await server.store.db
      .selectFrom('events')
      .select('after')
      .orderBy('id', 'desc')
      .executeTakeFirstOrThrow()
    expect(JSON.parse(after ?? '')).toEqual({
      id: 7,
      name: 'Fair',
      deep: [{}],
      custom_attributes: { token: 'of a bus' },
    })
    // A transaction of PostgreSQL that conflicts asks again.
    expect(heard.length).toBeGreaterThan(0)
    if (!isPostgres) expect(heard).toHaveLength(1)
    for (const input of heard) expect(input).toEqual({ name: 'Fair' })
  })
})

describe('a dry run', () => {
  it('does not use up the Idempotency-Key of the real request', async () => {
    server = await startServer()
    const headers = { 'idempotency-key': 'once' }
    const rehearsal = await server.admin.post(
      '/sources',
      { name: 'Fair' },
      { headers: { ...headers, 'accord-dry-run': 'true' } },
    )
    expect(rehearsal.status).toBe(200)
    const real = await server.admin.post('/sources', { name: 'Fair' }, { headers })
    expect(real.status).toBe(201)
    const again = await server.admin.post('/sources', { name: 'Fair' }, { headers })
    expect([again.status, again.headers['idempotency-replayed'], again.body]).toEqual([201, 'true', real.body])
  })
})

describe('the reply of a write', () => {
  it('counts what the caller may see, as the reply of a read does', async () => {
    server = await startServer()
    await server.admin.post('/leads', { title: 'Hidden', lead_value: 1, lead_source_id: 2 })
    const viewer = (
      await server.admin.post('/settings/users', {
        name: 'Bob',
        email: 'bob@example.com',
        role_id: 1,
        view_permission: 'individual',
        password: 'long enough',
        password_confirmation: 'long enough',
      })
    ).body.data
    const bob = await server.as(viewer.id)
    expect((await bob.get('/sources/2')).body.data.leads_count).toBe(0)
    expect((await bob.put('/sources/2', { name: 'Website' })).body.data.leads_count).toBe(0)
  })

  it('shows the record once more to the one who has just given it away', async () => {
    server = await startServer()
    const { data: lead } = (await server.admin.post('/leads', { title: 'Deal', lead_value: 1 })).body
    const { body } = await server.admin.put(`/leads/${lead.id}`, { title: 'Given away' })
    expect(body.data.title).toBe('Given away')
  })
})

describe('If-None-Match', () => {
  it('answers 304 for the whole record only, not for another selection of it', async () => {
    server = await startServer()
    const { etag } = (await server.admin.get('/settings/users/1')).headers
    const headers = { 'if-none-match': String(etag) }
    expect((await server.admin.get('/settings/users/1', { headers })).status).toBe(304)
    // A version alone, as a write answers it, does not name the bytes of a reply.
    const version = { 'if-none-match': '"1"' }
    expect((await server.admin.get('/settings/users/1', { headers: version })).status).toBe(200)
    expect((await server.admin.get('/settings/users/1?fields=id', { headers })).status).toBe(200)
    expect((await server.admin.get('/settings/users/1?include=role', { headers })).status).toBe(200)
    expect((await server.admin.get('/account', { headers })).status).toBe(200)
  })
})

describe('If-Match', () => {
  it('means nothing to an operation that only reads', async () => {
    server = await startServer()
    expect((await server.admin.get('/sources/2', { headers: { 'if-match': '"99"' } })).status).toBe(200)
  })
})

describe('a cursor', () => {
  it('that was tampered with is refused, whatever it says', async () => {
    server = await startServer()
    const { body } = await server.admin.get('/sources?sort=name&cursor=&per_page=2')
    const cursor: string = body.meta.next_cursor
    const forged = Buffer.from(JSON.stringify({ at: [null, null], back: false, of: 'x' })).toString('base64url')
    for (const text of [`x${cursor}`, cursor.slice(0, -2), cursor.slice(0, 22) + forged, forged, 'x']) {
      const { status, body: problem } = await server.admin.get(`/sources?sort=name&per_page=2&cursor=${text}`)
      expect([status, Object.keys(problem.errors)]).toEqual([422, ['query.cursor']])
    }
  })
})

describe('a locked database', () => {
  it.runIf(!isPostgres)('is answered with 503 and Retry-After, also outside a transaction', async () => {
    server = await startServer()
    const { dialect } = server.store
    const busy = new Sqlite.SqliteError('database is locked', 'SQLITE_BUSY')
    expect(dialect.storageFault(busy)).toBe('busy')
    Object.defineProperty(server.app.services.store, 'db', {
      get: () => {
        throw busy
      },
    })
    const { status, body, headers } = await server.admin.get('/sources')
    expect([status, body.code, headers['retry-after']]).toEqual([503, 'unavailable', '1'])
  })
})
