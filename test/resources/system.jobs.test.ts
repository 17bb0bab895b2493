// The job operations for administrators: waiting jobs, reasons of failures, and retries. Also tests
// the nightly jobs.
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { eventConsumers, jobs } from '../../src/background.ts'
import { createEventDispatcher } from '../../src/jobs/event-consumers.ts'
import { maxCrashes } from '../../src/jobs/job-runner.ts'
import { claim } from '../../src/jobs/leases.ts'
import { defineJob, enqueue } from '../../src/jobs/queue.ts'
import { createWorker } from '../../src/jobs/worker.ts'
import { type Context, systemContext } from '../../src/kernel/context.ts'
import { createMailer } from '../../src/mail/outbound.ts'
import { prune } from '../../src/resources/system/housekeeping.ts'
import { start, startServer, type TestServer } from '../support/app.ts'
import { given } from '../support/given.ts'
import { csvOf, importing } from '../support/importing.ts'
import { countTurns } from '../support/turns.ts'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'
import { alone, workflowsOn } from '../support/workflows.ts'

let isBroken: boolean
const note = defineJob<{ name: string }>({
  kind: 'test.note',
  retryAfterSeconds: [],
  run: async () => {
    if (isBroken) throw new Error('It is broken.')
  },
})

const server = useNewServers()
beforeEach(() => {
  isBroken = true
})

/** The kinds of jobs that send mail. */
const mailing = jobs.filter(({ isMail }) => isMail)
const ctx = (): Context => systemContext(server.app.services, 'api')
const work = () => createWorker(server.app.services, [note], []).drain()

describe('listJobs', () => {
  it('shows waiting, blocked and buried jobs, with the reason', async () => {
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

describe('a job of a sequence that begins anew', () => {
  it('does not run beside another of it, and follows when that is done', async () => {
    const first = await enqueue(ctx(), note, { name: 'a' }, { sequence: 's' })
    await work()
    for (const name of ['b', 'c']) await enqueue(ctx(), note, { name }, { sequence: 's' })
    const retried = await server.admin.post(`/jobs/${first}/retry`)
    expect([retried.status, retried.body.data.state]).toEqual([202, 'blocked'])
    const states = async () => (await server.admin.get('/jobs?sort=id')).body.data.map(({ state }: any) => state)
    expect(await states()).toEqual(['blocked', 'waiting', 'blocked'])
    // A job that runs must not overtake the waiting one.
    const last = (await server.admin.get('/jobs?sort=-id')).body.data[0]
    await server.admin.delete(`/jobs/${last.id}`)
    expect(await states()).toEqual(['blocked', 'waiting'])
    isBroken = false
    await work()
    expect(await states()).toEqual([])
  })
})

/** Makes a job fail finally, as after its last attempt. */
async function giveUpJobs(kind: string): Promise<number> {
  const job = await server.store.db
    .updateTable('jobs')
    .set({ crashes: maxCrashes })
    .where('kind', '=', kind)
    .returning('id')
    .executeTakeFirstOrThrow()
  await server.work()
  expect((await server.admin.get(`/jobs/${job.id}`)).body.data.state).toBe('buried')
  return job.id
}

async function workflowRun() {
  await alone(server)
  const { workflow, runs, tagsOf } = workflowsOn(server)
  const id = await workflow({ actions: [{ id: 'add_tag', value: 'Seen' }] })
  const lead = await given(server.admin).lead({ title: 'Chairs' })
  await server.admin.put(`/leads/${lead.id}`, { title: 'Tables' })
  await createFeederOf(server)
  server.events()
  return { run: async () => (await runs(id))[0], tags: () => tagsOf(lead.id) }
}

async function importToProcess() {
  const { record, post } = importing(server.admin)
  const { id } = await record(
    'persons',
    csvOf([
      ['name', 'emails'],
      ['Ada Byron', 'ada@example.com'],
    ]),
    { process_in_queue: true },
  )
  await post(id, 'validate')
  await server.work()
  await post(id, 'start')
  server.events()
  return async () => (await server.admin.get(`/settings/data-transfer/imports/${id}`)).body.data
}

async function queuedMail() {
  const sent = { to: ['ada@example.com'], subject: 'Chairs', html: '<p>Dear Ada</p>' }
  const { status, body, text } = await server.admin.post('/emails', sent)
  expect(status, text).toBe(201)
  server.events()
  return async () => (await server.admin.get(`/emails/${body.data.id}`)).body.data
}

async function delivery() {
  const hook = { name: 'Hook', url: 'https://192.0.2.1/hooks', events: ['lead.create.after'] }
  const { body } = await server.admin.post('/settings/webhooks', hook)
  await given(server.admin).lead({ title: 'Chairs' })
  await createFeederOf(server)
  server.events()
  return async () => (await server.admin.get(`/settings/webhooks/${body.data.id}/deliveries`)).body.data[0]
}

/** Creates the jobs for all events, without running them. */
async function createFeederOf({ app: { services } }: TestServer): Promise<void> {
  const { dispatch: feed } = createEventDispatcher(services, eventConsumers)
  while (await feed());
}

describe('retryJob of a buried job', () => {
  it('runs the workflow after all', async () => {
    const { run, tags } = await workflowRun()
    const job = await giveUpJobs('workflows.run')
    expect(await run()).toMatchObject({ state: 'failed', actions: [] })
    expect((await server.admin.post(`/jobs/${job}/retry`)).status).toBe(202)
    expect(await run()).toMatchObject({ state: 'pending', finished_at: null, reason: null })
    await server.work()
    expect([(await run()).state, await tags()]).toEqual(['succeeded', ['Seen']])
  })

  it('goes on with the action that failed, and repeats none that was done', async () => {
    const { run, tags } = await workflowRun()
    await server.work()
    const done = (await run()).actions[0]
    const failed = { ...done, value: 'Twice', attribute: null, state: 'failed', error: 'It crashed.', result: null }
    const actions = JSON.stringify([
      { ...done, value: 'Other', attribute: null },
      failed,
      { ...failed, state: 'not_run' },
    ])
    await server.store.db.updateTable('workflow_runs').set({ state: 'failed', actions }).execute()
    const { id } = await run()
    await enqueue(ctx(), { kind: 'workflows.run' }, { run_id: id })
    await server.store.db.updateTable('jobs').set({ state: 'buried' }).execute()
    const [job] = (await server.admin.get('/jobs')).body.data
    expect((await server.admin.post(`/jobs/${job.id}/retry`)).status).toBe(202)
    await server.work()
    expect((await run()).actions.map(({ state }: any) => state)).toEqual(['succeeded', 'succeeded', 'succeeded'])
    expect((await tags()).toSorted()).toEqual(['Seen', 'Twice'])
  })

  it('tells the receiver after all, with all tries', async () => {
    const shown = await delivery()
    const job = await giveUpJobs('webhooks.deliver')
    expect((await shown()).state).toBe('failed')
    expect((await server.admin.post(`/jobs/${job}/retry`)).status).toBe(202)
    expect(await shown()).toMatchObject({ state: 'pending', finished_at: null, next_attempt_at: start })
    // The address 192.0.2.1 is unreachable, but the delivery was attempted.
    await server.work()
    expect((await shown()).attempts.length).toBe(2)
  })

  it('goes on with an import, which tells of it', async () => {
    const shown = await importToProcess()
    const job = await giveUpJobs('imports.process')
    expect((await shown()).state).toBe('failed')
    server.events()
    expect((await server.admin.post(`/jobs/${job}/retry`)).status).toBe(202)
    expect(server.events()).toEqual(['data_transfer.imports.update.before', 'data_transfer.imports.update.after'])
    await server.work()
    expect(await shown()).toMatchObject({ state: 'completed', summary: { created: 1 } })
  })

  it('validates an import after all', async () => {
    const { record, post } = importing(server.admin)
    const { id } = await record(
      'persons',
      csvOf([
        ['name', 'emails'],
        ['Ada Byron', 'ada@example.com'],
      ]),
      { process_in_queue: true },
    )
    await post(id, 'validate')
    const job = await giveUpJobs('imports.validate')
    const state = async () => (await server.admin.get(`/settings/data-transfer/imports/${id}`)).body.data.state
    expect(await state()).toBe('invalid')
    expect((await server.admin.post(`/jobs/${job}/retry`)).status).toBe(202)
    await server.work()
    expect(await state()).toBe('validated')
  })

  it('answers 409, and the job stays as it is, when there is nothing to do any more', async () => {
    const gone = ['webhooks.deliver', 'workflows.run', 'imports.process', 'imports.validate', 'emails.send']
    const payload = { delivery_id: 99, run_id: 99, import_id: 99, email_id: 99 }
    for (const kind of gone) {
      const id = await enqueue(ctx(), { kind }, payload)
      await server.store.db.updateTable('jobs').set({ state: 'buried' }).execute()
      const { status, body } = await server.admin.post(`/jobs/${id}/retry`)
      expect([kind, status, body.code]).toEqual([kind, 409, 'state_conflict'])
      expect((await server.admin.get(`/jobs/${id}`)).body.data.state).toBe('buried')
    }
    expect(server.events()).toEqual([])
  })

  it('is possible for every kind that says what giving up means', () => {
    expect(jobs.filter(({ onBuried: buried, revive }) => buried && !revive).map(({ kind }) => kind)).toEqual([])
  })
})

describe('deleteJob of what waits', () => {
  const remove = async (kind: string): Promise<void> => {
    const [job] = (await server.admin.get(`/jobs?kind=${kind}`)).body.data
    expect((await server.admin.delete(`/jobs/${job.id}`)).status).toBe(200)
  }

  it('fails the run of a workflow', async () => {
    const { run, tags } = await workflowRun()
    await remove('workflows.run')
    expect((await run()).state).toBe('failed')
    await server.work()
    expect([(await run()).state, await tags()]).toEqual(['failed', []])
  })

  it('fails a delivery', async () => {
    const shown = await delivery()
    await remove('webhooks.deliver')
    expect(await shown()).toMatchObject({ state: 'failed', next_attempt_at: null, finished_at: start })
  })

  it('fails an import, which tells of it; its rows stay out', async () => {
    const shown = await importToProcess()
    await remove('imports.process')
    expect(await shown()).toMatchObject({ state: 'failed', errors: [{ message: 'It was given up by Example Admin.' }] })
    expect(server.events()).toEqual(['data_transfer.imports.update.before', 'data_transfer.imports.update.after'])
  })

  it('fails an e-mail, also one the caller may not see, and it is not queued again', async () => {
    const shown = await queuedMail()
    const blind = await addUser(server, 'Blind', { permissions: ['configuration'], view: 'individual' })
    const [job] = (await server.admin.get('/jobs?kind=emails.send')).body.data
    const dry = await blind.delete(`/jobs/${job.id}`, { headers: { 'accord-dry-run': 'true' } })
    expect([dry.status, (await shown()).status, server.events()]).toEqual([200, 'queued', []])
    expect((await blind.delete(`/jobs/${job.id}`)).status).toBe(200)
    expect(await shown()).toMatchObject({ status: 'failed', error: expect.stringMatching(/^It was given up by /) })
    expect(server.events()).toEqual(['email.update.before', 'email.update.after'])
    server.clock.advanceMs(7_200_000)
    await server.tick()
    await server.work()
    expect((await server.admin.get('/jobs?kind=emails.send')).body.data).toEqual([])
  })

  it('changes nothing for deleted records', async () => {
    for (const kind of ['webhooks.deliver', 'workflows.run', 'imports.process', 'imports.validate', 'emails.send']) {
      const id = await enqueue(ctx(), { kind }, { delivery_id: 99, run_id: 99, import_id: 99, email_id: 99 })
      expect([kind, (await server.admin.delete(`/jobs/${id}`)).status]).toEqual([kind, 200])
    }
    expect(server.events()).toEqual([])
  })

  it('that was given up already says nothing a second time', async () => {
    const shown = await delivery()
    const job = await giveUpJobs('webhooks.deliver')
    const before = await shown()
    expect((await server.admin.delete(`/jobs/${job}`)).status).toBe(200)
    expect(await shown()).toEqual(before)
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
  /** Advances the clock, because replies are cached for a second. */
  const checks = async () => {
    server.clock.advanceMs(1000)
    return (await server.anonymous.get('//readyz')).body.checks
  }
  const isThere = { name: 'worker', locked_by: 'x', locked_until: '2026-03-02T10:00:00.000Z' }

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

  it('calls a worker behind when a reader of the event log does not get on', async () => {
    await server.store.db
      .insertInto('locks')
      .values({ name: 'worker', locked_by: 'x', locked_until: '2026-03-02T10:00:00.000Z' })
      .execute()
    await given(server.admin).tag()
    server.clock.advanceMs(58_000)
    expect(await checks()).toMatchObject({ worker: 'ok' })
    server.clock.advanceMs(2_000)
    expect(await checks()).toMatchObject({ worker: 'behind' })
    const newest = server.store.db.selectFrom('events').select(({ fn }) => fn.max('id').as('id'))
    const place = (name: string) =>
      server.store.db.updateTable('event_readers').set({ last_event_id: newest }).where('name', '=', name).execute()
    await place('webhooks')
    expect(await checks()).toMatchObject({ worker: 'behind' })
    await place('workflows')
    expect(await checks()).toMatchObject({ worker: 'ok' })
  })

  it('does not call a worker behind because mails wait for a server', async () => {
    await server.store.db
      .insertInto('locks')
      .values({ name: 'worker', locked_by: 'x', locked_until: '2026-03-02T10:00:00.000Z' })
      .execute()
    for (const { kind } of mailing) await enqueue(ctx(), { kind }, {})
    // An invitation is also sent by mail.
    const invited = { name: 'Ada', email: 'ada@example.com', role_id: 1 }
    expect((await server.admin.post('/settings/users', invited)).status).toBe(201)
    await server.store.db.updateTable('event_readers').set({ last_event_id: 1_000_000 }).execute()
    server.clock.advanceMs(3_600_000)
    expect(await checks()).toMatchObject({ worker: 'ok', mail: 'unconfigured' })
    expect((await server.anonymous.get('//metrics')).text).toMatch(/^accord_jobs_oldest_due_age_seconds 0$/m)
    await enqueue(ctx(), note, { name: 'a' })
    server.clock.advanceMs(60_000)
    expect(await checks()).toMatchObject({ worker: 'behind' })
  })

  it.each(mailing.map(({ kind }) => kind))('tells that mail fails when %s does', async (kind) => {
    const mailer = createMailer({ url: 'smtp://127.0.0.1:1', domain: 'localhost' })
    const mails = await startServer({ mailer })
    const of = systemContext(mails.app.services, 'api')
    await enqueue(of, { kind }, {})
    expect((await mails.anonymous.get('//readyz')).body.checks.mail).toBe('ok')
    await mails.store.db.updateTable('jobs').set({ last_error: 'No answer.' }).execute()
    mails.clock.advanceMs(1000)
    expect((await mails.anonymous.get('//readyz')).body.checks.mail).toBe('failing')
    mailer.close()
    await mails.close()
  })

  it('queries the database once a second, however many requests come', async () => {
    expect(await checks()).toMatchObject({ worker: 'off' })
    await server.store.db.insertInto('locks').values(isThere).execute()
    server.clock.advanceMs(999)
    expect((await server.anonymous.get('//readyz')).body.checks.worker).toBe('off')
    server.clock.advanceMs(1)
    expect((await server.anonymous.get('//readyz')).body.checks.worker).toBe('ok')
  })

  it('asks no more often a database that fails', async () => {
    const broken = new Error('It is broken.')
    const { db } = server.store
    const spied = vi.spyOn(db, 'selectFrom').mockImplementation(() => {
      throw broken
    })
    const ask = async () => (await server.anonymous.get('//readyz')).status
    expect([await ask(), await ask(), await ask()]).toEqual([503, 503, 503])
    expect(spied).toHaveBeenCalledTimes(1)
    spied.mockRestore()
    expect(await ask()).toBe(503)
    server.clock.advanceMs(1000)
    expect(await ask()).toBe(200)
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

  it('forgets runs and deliveries a month after they have ended, and none that has not', async () => {
    let events = 0
    const { db } = server.store
    const { body } = await server.admin.post('/settings/webhooks', {
      name: 'Hook',
      url: 'https://192.0.2.1/hooks',
      events: ['lead.create.after'],
    })
    await db.updateTable('webhooks').set({ is_active: 0 }).execute()
    const old = '2026-01-01T00:00:00.000Z'
    for (const [name, finished_at] of [
      ['pending', null],
      ['old', old],
      ['recent', '2026-02-28T00:00:00.000Z'],
    ] as const) {
      const both = {
        event_id: ++events,
        event: 'lead.create.after',
        entity_type: 'leads' as const,
        entity_id: 1,
        finished_at,
        created_at: old,
        updated_at: old,
      }
      const state: 'pending' | 'failed' = finished_at === null ? 'pending' : 'failed'
      const more = { webhook_id: body.data.id, dedupe_key: name, message_id: name, attempts: '[]' }
      const told = { ...both, ...more, state, next_attempt_at: finished_at === null ? old : null }
      await db.insertInto('webhook_deliveries').values(told).execute()
      await db
        .insertInto('workflow_runs')
        .values({ ...both, workflow_id: 1, state })
        .execute()
    }
    await nights(1)
    const finished = async (table: 'workflow_runs' | 'webhook_deliveries') =>
      (await db.selectFrom(table).select('finished_at').where('created_at', '=', old).orderBy('id').execute()).map(
        (row) => row.finished_at,
      )
    expect(await finished('webhook_deliveries')).toEqual([null, '2026-02-28T00:00:00.000Z'])
    expect(await finished('workflow_runs')).toEqual([null, '2026-02-28T00:00:00.000Z'])
  })

  it('lets others have a turn while it forgets much', async () => {
    const { db } = server.store
    const event = { name: 'lead.update.after', entity_type: 'leads', actor_type: 'system', origin: 'cli' }
    const created_at = '2020-01-01T00:00:00.000Z'
    for (let made = 0; made < 2000; made += 500)
      await db
        .insertInto('events')
        .values(Array.from({ length: 500 }, () => ({ ...event, changed: '[]', restored: 0, created_at })))
        .execute()
    const turns = countTurns()
    await prune.run(
      ctx(),
      { due: start },
      { id: 1, attempt: 1, isLast: false, signal: new AbortController().signal, holdsLease: async () => true },
    )
    turns.stop()
    expect(turns.count).toBeGreaterThanOrEqual(20)
    expect(await db.selectFrom('events').select('id').where('created_at', '=', created_at).execute()).toEqual([])
  })

  it('makes the index of the search anew when it is wrong', async () => {
    await given(server.admin).person({ name: 'Zebedee' })
    await server.store.db.deleteFrom('search_index').execute()
    await nights(1)
    expect((await server.admin.get('/search?q=zebedee')).body.data).toHaveLength(1)
  })
})
