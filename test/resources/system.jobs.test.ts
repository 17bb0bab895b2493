// Jobs as administrators see them: what waits, why it failed, another try; and what the installation does for itself at night.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { claim } from '../../src/jobs/claims.ts'
import { defineJob, enqueue } from '../../src/jobs/queue.ts'
import { createWorker } from '../../src/jobs/worker.ts'
import { type Context, systemContext } from '../../src/kernel/context.ts'
import { startServer, type TestServer } from '../support/app.ts'
import { given } from '../support/given.ts'

let server: TestServer
let isBroken: boolean
const note = defineJob<{ name: string }>({
  kind: 'test.note',
  retryAfter: [],
  run: async () => {
    if (isBroken) throw new Error('It is broken.')
  },
})

beforeEach(async () => {
  server = await startServer()
  isBroken = true
})
afterEach(() => server.close())

const ctx = (): Context => systemContext(server.app.services, 'api')
const work = () => createWorker(server.app.services, [note], []).drain()

describe('listJobs', () => {
  it('shows what waits, what is blocked and what was given up, with the reason', async () => {
    await enqueue(ctx(), note, { name: 'a' }, { sequence: 's' })
    await enqueue(ctx(), note, { name: 'b' }, { sequence: 's', key: 'k' })
    const before = await server.admin.get('/jobs?sort=id')
    expect(before.body.data).toMatchObject([
      { kind: 'test.note', payload: { name: 'a' }, state: 'waiting', attempts: 0, last_error: null },
      { payload: { name: 'b' }, state: 'blocked', dedupe_key: 'k', sequence: 's' },
    ])
    await work()
    const buried = await server.admin.get('/jobs?state=buried&sort=id')
    expect(buried.body.data).toMatchObject([
      { payload: { name: 'a' }, attempts: 1, last_error: 'It is broken.' },
      { payload: { name: 'b' }, attempts: 1 },
    ])
    expect((await server.admin.get('/jobs?kind=emails.send')).body.data).toEqual([])
  })
})

describe('retryJob', () => {
  it('lets a buried job begin anew', async () => {
    const id = await enqueue(ctx(), note, { name: 'a' })
    await work()
    isBroken = false
    const retried = await server.admin.post(`/jobs/${id}/retry`)
    expect([retried.status, retried.body.data]).toMatchObject([202, { id, state: 'waiting', attempts: 0 }])
    await work()
    expect((await server.admin.get(`/jobs/${id}`)).status).toBe(404)
    expect(server.events()).toEqual([])
  })

  it('refuses one that is running, and one that is blocked', async () => {
    const first = await enqueue(ctx(), note, { name: 'a' }, { sequence: 's' })
    const second = await enqueue(ctx(), note, { name: 'b' }, { sequence: 's' })
    await claim(ctx(), 'elsewhere:1:x', new Map([['test.note', 1]]), 1)
    expect((await server.admin.post(`/jobs/${first}/retry`)).body.code).toBe('state_conflict')
    expect((await server.admin.post(`/jobs/${second}/retry`)).body.code).toBe('state_conflict')
    expect((await server.admin.delete(`/jobs/${first}`)).body.code).toBe('state_conflict')
  })
})

describe('deleteJob', () => {
  it('gives up what waits and lets the next of its sequence run', async () => {
    const first = await enqueue(ctx(), note, { name: 'a' }, { sequence: 's' })
    await enqueue(ctx(), note, { name: 'b' }, { sequence: 's' })
    expect((await server.admin.delete(`/jobs/${first}`)).body).toEqual({ message: 'Job deleted.' })
    expect((await server.admin.get('/jobs')).body.data).toMatchObject([{ payload: { name: 'b' }, state: 'waiting' }])
  })
})

describe('getReadiness', () => {
  const checks = async () => (await server.anonymous.get('//readyz')).body.checks

  it('says whether a worker is there, whether it is behind, and whether mail can go out', async () => {
    expect(await checks()).toMatchObject({ worker: 'off', mail: 'unconfigured' })
    await server.store.db
      .insertInto('locks')
      .values({ name: 'worker', locked_by: 'x', locked_until: '2026-03-01T10:00:00.000Z' })
      .execute()
    expect(await checks()).toMatchObject({ worker: 'ok' })
    await enqueue(ctx(), note, { name: 'a' })
    expect(await checks()).toMatchObject({ worker: 'ok' })
    server.clock.advanceMs(61_000)
    expect(await checks()).toMatchObject({ worker: 'behind' })
  })

  it('does not call a worker behind because mails wait for a server', async () => {
    await server.store.db
      .insertInto('locks')
      .values({ name: 'worker', locked_by: 'x', locked_until: '2026-03-02T10:00:00.000Z' })
      .execute()
    await enqueue(ctx(), { kind: 'emails.send' }, { email_id: 1 })
    server.clock.advanceMs(3_600_000)
    expect(await checks()).toMatchObject({ worker: 'ok', mail: 'unconfigured' })
  })
})

describe('each night', () => {
  const nights = async (days: number) => {
    await server.tick()
    server.clock.advanceMs(days * 86_400_000)
    await server.tick()
    await server.work()
  }

  it('forgets what is too old and keeps the rest', async () => {
    const { id } = await given(server.admin).lead({ title: 'Kept' })
    const { admin } = server
    const expired = await admin.post('/tokens', {
      name: 'old',
      abilities: ['*'],
      expires_at: '2026-03-02T00:00:00Z',
    })
    server.events()
    await nights(31)
    const tokens = await server.store.db.selectFrom('tokens').select('id').execute()
    expect(tokens.map((each) => each.id)).not.toContain(expired.body.data.id)
    expect(server.events()).toEqual(['user.token.delete.before', 'user.token.delete.after'])
    expect((await admin.get(`/leads/${id}/history`)).body.data).toHaveLength(1)
    await nights(400)
    expect((await admin.get(`/leads/${id}`)).body.data.title).toBe('Kept')
    expect((await admin.get(`/leads/${id}/history`)).body.data).toEqual([])
  })

  it('makes the index of the search anew when it is wrong', async () => {
    await given(server.admin).person({ name: 'Zebedee' })
    await server.store.db.deleteFrom('search_index').execute()
    await nights(1)
    expect((await server.admin.get('/search?q=zebedee')).body.data).toHaveLength(1)
  })
})
