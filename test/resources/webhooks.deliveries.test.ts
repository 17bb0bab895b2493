// Deliveries of webhooks: each event is sent once to the right receivers, signed and in order. Also
// tests misbehaving receivers. The receiver is a real server.
import { Webhook as Verifier } from 'standardwebhooks'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createEventDispatcher } from '../../src/jobs/event-consumers.ts'
import { finish } from '../../src/jobs/leases.ts'
import { createWorker } from '../../src/jobs/worker.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { createOutbound, type Outbound } from '../../src/kernel/outbound/client.ts'
import { triggerWebhook } from '../../src/resources/webhooks/deliveries.ts'
import { deliver, ladder } from '../../src/resources/webhooks/jobs.ts'
import { jobs as sweeps } from '../../src/resources/webhooks/pending-deliveries.ts'
import { subscriptions } from '../../src/resources/webhooks/subscriptions.ts'
import { start, startServer } from '../support/app.ts'
import { imageOf, isPostgres } from '../support/engine.ts'
import { given } from '../support/given.ts'
import { useReceiver } from '../support/outside.ts'
import type { Received } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const path = '/settings/webhooks'
const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/**
 * `busy` and `most`: the running calls and their maximum. `fault`: an error that calls throw.
 * `isSilent`: the receiver does not respond, so calls get short timeouts.
 */
const calls = { busy: 0, most: 0, fault: null as Error | null, isSilent: false }
const receiver = useReceiver()
const outboundFor = (totalMs: number) =>
  createOutbound({ allowCidrs: ['127.0.0.1/32'], allowHttp: true, connectMs: 20_000, totalMs })
const [patient, quick] = [outboundFor(20_000), outboundFor(1_000)]
const outbound: Outbound = {
  async request(request, signal) {
    if (calls.fault) throw calls.fault
    calls.most = Math.max(calls.most, ++calls.busy)
    const real = calls.isSilent ? quick : patient
    return real.request(request, signal).finally(() => calls.busy--)
  },
}
const server = useServer({ config: { webhookAllowHttp: true }, outbound })
beforeEach(() => {
  Object.assign(calls, { most: 0, fault: null, isSilent: false })
})
afterEach(() => vi.useRealTimers())

let names = 0
const create = async (changes: object = {}) => {
  const body = { name: `Hook ${++names}`, url: `${receiver.url}/hooks`, events: ['lead.*.after'], ...changes }
  const reply = await server.admin.post(path, body)
  expect(reply.status, reply.text).toBe(201)
  server.events()
  return reply.body.data
}
const get = async (id: number) => (await server.admin.get(`${path}/${id}`)).body.data
const deliveries = async (id: number, query = '') => {
  const { status, body, text } = await server.admin.get(`${path}/${id}/deliveries?sort=id&per_page=100${query}`)
  expect(status, text).toBe(200)
  return body.data
}
const lead = async (title = 'Chairs', changes: object = {}) => given(server.admin).lead({ title, ...changes })
const rename = (id: number, title: string) => server.admin.put(`/leads/${id}`, { title })
const sent = () => receiver.received.map(({ body }) => JSON.parse(body))
const jobs = () => server.store.db.selectFrom('jobs').selectAll().where('kind', 'like', 'webhooks.deliver%').execute()
const titles = () => sent().map(({ data }) => data.after.title)

/** Returns the payload after verifying its signature at the time of sending. */
function verified(secret: string, { body, headers }: Received): unknown {
  vi.useFakeTimers({ toFake: ['Date'], now: Number(headers['webhook-timestamp']) * 1000 })
  try {
    return new Verifier(secret).verify(body, headers as Record<string, string>)
  } finally {
    vi.useRealTimers()
  }
}

describe('an event', () => {
  it('is told once, signed, to the webhooks that subscribe to it, and to no other', async () => {
    const { id, secret } = await create()
    const other = await create({ events: ['contacts.person.*.after'] })
    const none = await create({ events: [] })
    const off = await create({ is_active: false })
    const { id: leadId } = await lead('Chairs')
    await server.work()
    await server.work()
    expect(receiver.received).toHaveLength(1)
    const [request] = receiver.received
    const body = verified(secret, request as Received)
    const [delivery] = await deliveries(id)
    expect(request).toMatchObject({ method: 'POST', path: '/hooks' })
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': delivery.webhook_id,
      'webhook-timestamp': String(new Date(start).getTime() / 1000),
    })
    expect(body).toMatchObject({
      id: delivery.webhook_id,
      type: 'lead.create.after',
      timestamp: start,
      data: {
        entity_type: 'leads',
        entity_id: leadId,
        before: null,
        after: { id: leadId, title: 'Chairs', version: 1 },
        actor: { type: 'user', id: 1, name: 'Example Admin' },
      },
    })
    expect(delivery).toMatchObject({
      event: 'lead.create.after',
      entity_type: 'leads',
      entity_id: leadId,
      state: 'succeeded',
      attempts: [{ at: start, status: 200, error: null, response_excerpt: 'thank you' }],
      next_attempt_at: null,
      finished_at: start,
    })
    // The delivery status is part of the reply, so the version changes.
    expect(await get(id)).toMatchObject({ last_status: 200, failing_since: null, version: 2 })
    for (const each of [other, none, off]) expect(await deliveries(each.id)).toEqual([])
    expect(await server.store.db.selectFrom('jobs').selectAll().where('kind', '=', deliver.kind).execute()).toEqual([])
  })

  it('is not an event of its own: sending changes nothing', async () => {
    await create()
    await lead()
    server.events()
    await server.work()
    expect([receiver.received.length, server.events()]).toEqual([1, []])
  })

  it('contains one type, with one of the listed changes, by names old and new', async () => {
    const persons = await create({ events: ['*'], entity_type: 'persons' })
    const changed = await create({ events: ['lead.update.after'], changed: ['lead_value', 'custom_attributes'] })
    const alias = await create({ events: ['contact.person.update.after'] })
    const { id } = await lead()
    const person = await given(server.admin).person()
    await server.work()
    server.events()
    await rename(id, 'Tables')
    await server.admin.put(`/leads/${id}`, { lead_value: 5000, title: 'Desks' })
    await server.admin.put(`/contacts/persons/${person.id}`, { job_title: 'Buyer' })
    expect(server.events()).toEqual([
      'lead.update.before',
      'lead.update.after',
      'lead.update.before',
      'lead.update.after',
      'contacts.person.update.before',
      'contacts.person.update.after',
    ])
    await server.work()
    const told = async (id: number) => (await deliveries(id)).map((each: { event: string }) => each.event)
    expect(await told(persons.id)).toContain('contacts.person.create.after')
    expect((await deliveries(persons.id)).every((each: any) => each.entity_type === 'persons')).toBe(true)
    expect(await told(changed.id)).toEqual(['lead.update.after'])
    expect(sent().find(({ data }) => data.after.title === 'Desks')?.data.changed).toEqual(
      expect.arrayContaining(['lead_value', 'title']),
    )
    expect(await told(alias.id)).toEqual(['contacts.person.update.after'])
  })

  it('never sends events that could hold secrets, nor events from before the webhook', async () => {
    await lead('Before')
    server.clock.advanceMs(1000)
    const { id } = await create({ events: ['*'] })
    await create({ headers: [{ key: 'Authorization', value: 'Bearer hidden' }] })
    await server.admin.post('/account/tokens', { name: 'x', abilities: ['*'], password: 'correct horse battery' })
    await server.work()
    expect(await deliveries(id)).toEqual([])
    expect(receiver.received).toEqual([])
  })

  it('is not told to a webhook that was made or switched on after it, not even in the same moment', async () => {
    await lead('Before')
    const { id } = await create()
    await lead('On')
    await server.work()
    await server.admin.put(`${path}/${id}`, { is_active: false })
    await lead('Off')
    await server.admin.put(`${path}/${id}`, { is_active: true })
    await server.admin.put(`${path}/${id}`, { is_active: true, description: 'On as before' })
    await lead('On again')
    await server.admin.put(`${path}/${id}`, { is_active: true })
    await server.work()
    expect(titles()).toEqual(['On', 'On again'])
  })

  it('of an e-mail does not give away who was not to be seen, although the log shows it to users', async () => {
    await create({ events: ['email.*.after'] })
    const letter = {
      subject: 'Offer',
      html: 'Please see below.',
      to: ['ada@example.com'],
      cc: ['bo@example.com'],
    }
    const { body } = await server.admin.post('/emails', { ...letter, is_draft: true, bcc: ['hidden@example.com'] })
    await server.admin.put(`/emails/${body.data.id}`, { subject: 'Our offer', bcc: ['secret@example.com'] })
    await server.admin.delete(`/emails/${body.data.id}?type=delete`)
    await server.work()
    const told = sent().map(({ type, data }) => [
      type,
      (data.after ?? data.before).cc,
      [data.before, data.after].flatMap((record) => record?.bcc ?? []),
    ])
    expect(told.slice(0, 2)).toEqual([
      ['email.create.after', ['bo@example.com'], []],
      ['email.update.after', ['bo@example.com'], []],
    ])
    expect(sent()[1].data.changed).toContain('subject')
    expect(sent()[1].data.changed).not.toContain('bcc')
    for (const request of receiver.received) expect(request.body).not.toMatch(/hidden|secret/)
    const feed = await server.admin.get('/events?entity_type=emails&name=email.create.after')
    expect(feed.body.data[0].after.bcc).toEqual(['hidden@example.com'])
  })

  it('is told by the method that was chosen, with get in the address alone', async () => {
    const query_params = [{ key: 'title', value: '{%leads.title%}' }]
    const headers = [{ key: 'X-Team', value: 'Team of {%users.name%}' }]
    const secrets = new Map<string, string>()
    for (const method of ['get', 'put', 'patch', 'delete'])
      secrets.set(method.toUpperCase(), (await create({ method, query_params, headers })).secret)
    await lead('Chairs & Tables', { user_id: 1 })
    await server.work()
    expect(receiver.received.map(({ method }) => method).sort()).toEqual(['DELETE', 'GET', 'PATCH', 'PUT'])
    for (const request of receiver.received) {
      expect(request).toMatchObject({ path: '/hooks', query: { title: 'Chairs & Tables' } })
      expect(request.headers['x-team']).toBe('Team of Example Admin')
      const message = verified(secrets.get(request.method) ?? '', request)
      if (request.method === 'GET') {
        expect([request.body, message]).toEqual(['', undefined])
        expect(request.headers).not.toHaveProperty('content-length')
        expect(request.headers).not.toHaveProperty('content-type')
      } else expect(message).toMatchObject({ type: 'lead.create.after' })
    }
  })

  it('of a deleted record tells what it was, and of a link what was linked', async () => {
    await create({ events: ['lead.delete.after', 'leads.tag.create.after'] })
    const { id } = await lead('Chairs')
    const tag = await given(server.admin).tag()
    await server.admin.post(`/leads/${id}/tags`, { tag_id: tag.id })
    await server.admin.delete(`/leads/${id}`)
    await server.work()
    expect(
      sent().map(({ type, data }) => [type, data.entity_id, (data.after ?? data.before).title ?? data.after.tag.name]),
    ).toEqual([
      ['leads.tag.create.after', id, tag.name],
      ['lead.delete.after', id, 'Chairs'],
    ])
  })

  it('is told as it was, also when the record is another by then', async () => {
    receiver.behave({ mode: 'status', status: 500 })
    const payload = '{"title": "{%leads.title%}", "app": "{%app.name%}"}'
    await create({ events: ['lead.create.after'], payload_type: 'raw', raw_payload_type: 'json', payload })
    const { id } = await lead('First')
    await server.work()
    await rename(id, 'Second')
    server.clock.advanceMs(minute)
    await server.work()
    expect(sent()).toEqual([
      { title: 'First', app: 'Accord CRM' },
      { title: 'First', app: 'Accord CRM' },
    ])
  })

  it('has the values of the record where the payload asks for them raw', async () => {
    const payload = `{"text": "{%leads.lead_value%}", "value": {%leads.lead_value|raw%}, "id": {% leads.id | raw %},
      "created": "{%leads.created_at|raw%}", "closed": {%leads.closed_at|raw%}, "title": {%leads.title|raw%},
      "person": {%persons.emails|raw%}, "said": "#{%leads.id|raw%}", "owner": {%users.name|raw%}, "app": {%app.name|raw%}}`
    const types = { payload_type: 'raw', raw_payload_type: 'json' }
    await create({ events: ['lead.create.after'], entity_type: 'leads', ...types, payload })
    const person = { name: 'Ada', emails: [{ value: 'ada@example.com' }] }
    const body = { title: 'A "big" one', lead_value: 1234.5, person }
    const { data } = (await server.admin.post('/leads', body)).body
    await server.work()
    expect(sent()).toEqual([
      {
        text: '$1,234.50',
        value: 1234.5,
        id: data.id,
        created: data.created_at,
        closed: null,
        title: 'A "big" one',
        person: [{ value: 'ada@example.com', label: 'work' }],
        said: `#${data.id}`,
        owner: data.user?.name ?? null,
        app: 'Accord CRM',
      },
    ])
  })

  it('may have only placeholders that its records fill in', async () => {
    const raw = { payload_type: 'raw', raw_payload_type: 'text', entity_type: 'leads' }
    const refused = async (change: object) =>
      (await server.admin.post(path, { name: 'x', url: receiver.url, events: ['lead.*.after'], ...change })).body.errors
    expect(
      await refused({
        ...raw,
        payload: '{%leads.titel%} {%leads.value|raw%} {%leads.title|raw%} {%leads.title|none%}',
      }),
    ).toEqual({
      payload: [expect.stringContaining('{%leads.titel%}.'), expect.stringContaining('{%leads.value|raw%}.')],
    })
    expect(await refused({ ...raw, entity_type: 'products', payload: '{%leads.title%} {%app.name%}' })).toEqual({
      payload: ['Unknown placeholder {%leads.title%}.'],
    })
    expect(await refused({ headers: [{ key: 'x-lead', value: '{%lead.id%}' }] })).toEqual({
      'headers.0.value': [expect.stringContaining('`leads.id`')],
    })
  })

  it('has an id of its own, also when its number was that of an event before a restore', async () => {
    const { id } = await create()
    const before = await imageOf(server.store)
    const message = async () => {
      await lead()
      await server.work()
      const [{ webhook_id, event_id }] = await deliveries(id)
      return { webhook_id, event_id }
    }
    const lost = await message()
    await server.rewind(before)
    server.clock.advanceMs(minute)
    const next = await message()
    expect(next.event_id).toBe(lost.event_id)
    expect(next.webhook_id).not.toBe(lost.webhook_id)
  })

  it('is queued once, whatever is repeated after a crash', async () => {
    const { id } = await create()
    await lead()
    const { services } = server.app
    await createEventDispatcher(services, [subscriptions]).dispatch()
    // Simulates a crash: the consumer lost its position, and the job was not deleted.
    await server.store.db
      .updateTable('event_readers')
      .set({ last_event_id: 0 })
      .where('name', '=', 'webhooks')
      .execute()
    while (await createEventDispatcher(services, [subscriptions]).dispatch());
    const [job, ...more] = await server.store.db
      .selectFrom('jobs')
      .selectAll()
      .where('kind', '=', deliver.kind)
      .execute()
    expect([await deliveries(id), more]).toMatchObject([[{ state: 'pending' }], []])
    await server.work()
    await server.store.db
      .insertInto('jobs')
      .values({ ...(job as NonNullable<typeof job>), id: 1000 })
      .execute()
    await server.work()
    expect(receiver.received).toHaveLength(1)
    expect((await deliveries(id))[0].attempts).toHaveLength(1)
  })
})

describe('a rotated secret', () => {
  it('signs with the one before as well, for a day', async () => {
    const { id, secret: old } = await create()
    const { secret } = (await server.admin.post(`${path}/${id}/rotate-secret`)).body.data
    await lead('One')
    await server.work()
    server.clock.advanceMs(day)
    await lead('Two')
    await server.work()
    const [first, second] = receiver.received as [Received, Received]
    for (const each of [old, secret]) expect(verified(each, first)).toMatchObject({ type: 'lead.create.after' })
    expect(verified(secret, second)).toMatchObject({ type: 'lead.create.after' })
    expect(() => verified(old, second)).toThrow('No matching signature found')
    expect(String(second.headers['webhook-signature']).split(' ')).toHaveLength(1)
  })
})

describe('a receiver that misbehaves', () => {
  it.each([
    ['status', { mode: 'status', status: 500 }, 500, 'The receiver answered 500.'],
    ['status 404', { mode: 'status', status: 404 }, 404, 'The receiver answered 404.'],
    ['hang', 'hang', null, /^127\.0\.0\.1 did not answer within \d+ ms\.$/],
    ['drop', 'drop', null, '127.0.0.1 ended the connection before its answer was complete.'],
    ['half', 'half', null, '127.0.0.1 ended the connection before its answer was complete.'],
    ['slowBody', 'slowBody', null, /^127\.0\.0\.1 did not answer within \d+ ms\.$/],
    ['redirect', { mode: 'redirect', to: '/inner' }, 302, 'The receiver answered 302; redirects are not followed.'],
  ] as const)('%s: the try is logged, and made again', async (name, mode, status, error) => {
    receiver.behave(mode)
    calls.isSilent = name === 'hang' || name === 'slowBody'
    const { id } = await create()
    await lead()
    await server.work()
    const [delivery] = await deliveries(id)
    expect(delivery).toMatchObject({ state: 'pending', finished_at: null, attempts: [{ at: start, status }] })
    expect(delivery.attempts[0].error).toMatch(error)
    expect(delivery.next_attempt_at > start).toBe(true)
    expect(await get(id)).toMatchObject({ last_status: status, failing_since: start, is_active: true })
    expect(receiver.received.map((each) => each.path)).toEqual(['/hooks'])
    calls.isSilent = false
    receiver.behave('ok')
    server.clock.advanceMs(6000)
    await server.work()
    expect((await deliveries(id))[0]).toMatchObject({ state: 'succeeded', attempts: [{ status }, { status: 200 }] })
    expect(await get(id)).toMatchObject({ last_status: 200, failing_since: null })
    const [first, second] = receiver.received as [Received, Received]
    expect(second.body).toBe(first.body)
    expect(second.headers['webhook-id']).toBe(first.headers['webhook-id'])
    expect(Number(second.headers['webhook-timestamp'])).toBe(Number(first.headers['webhook-timestamp']) + 6)
  })

  it('huge: it was taken, and 1 KB of its answer is kept', async () => {
    receiver.behave('huge')
    const { id } = await create()
    await lead()
    await server.work()
    const [{ state, attempts }] = await deliveries(id)
    expect([state, attempts[0].response_excerpt]).toEqual(['succeeded', 'x'.repeat(1024)])
  })

  it('is tried ten times over three days, a tenth earlier or later, and then no more', async () => {
    receiver.behave({ mode: 'status', status: 503 })
    const { id } = await create()
    await lead()
    const gaps: number[] = []
    for (let tries = 1; tries <= 10; tries++) {
      await server.work()
      const [{ attempts, next_attempt_at: next, state }] = await deliveries(id)
      expect(attempts).toHaveLength(tries)
      expect(state).toBe(tries < 10 ? 'pending' : 'failed')
      if (next === null) break
      gaps.push((new Date(next).getTime() - server.clock.now().getTime()) / 1000)
      server.clock.set(new Date(new Date(next).getTime() - 1).toISOString())
      await server.work()
      expect((await deliveries(id))[0].attempts).toHaveLength(tries)
      server.clock.advanceMs(1)
    }
    expect(gaps).toHaveLength(9)
    for (const [index, gap] of gaps.entries()) {
      expect(gap).toBeGreaterThanOrEqual((ladder[index] ?? 0) * 0.9 - 0.001)
      expect(gap).toBeLessThanOrEqual((ladder[index] ?? 0) * 1.1)
    }
    server.clock.advanceMs(10 * day)
    await server.work()
    expect(receiver.received).toHaveLength(10)
    expect((await deliveries(id))[0]).toMatchObject({ state: 'failed', finished_at: expect.any(String) })
  })

  it('gone: 410 switches the webhook off, as a change of its own, and gives up what waits', async () => {
    receiver.behave({ mode: 'status', status: 500 })
    const { id } = await create()
    await lead('One')
    await server.work()
    receiver.behave('gone')
    await lead('Two')
    server.events()
    await server.work()
    expect(server.events()).toEqual(['settings.webhook.update.before', 'settings.webhook.update.after'])
    expect(await get(id)).toMatchObject({
      is_active: false,
      disabled_reason: 'The receiver answered 410 Gone.',
      last_status: 410,
    })
    expect((await deliveries(id)).map(({ state }: any) => state)).toEqual(['failed', 'failed'])
    const [change] = (await server.admin.get(`${path}/${id}/history`)).body.data
    expect(change).toMatchObject({ actor: { type: 'system' } })
    expect(change.changes.map(({ key }: any) => key)).toEqual(['is_active', 'disabled_reason'])
    await lead('Three')
    server.clock.advanceMs(day)
    await server.work()
    expect(receiver.received).toHaveLength(2)
    expect(await server.store.db.selectFrom('jobs').selectAll().where('kind', '=', deliver.kind).execute()).toEqual([])
  })

  it('fails for five days: the webhook is switched off, unless something got through meanwhile', async () => {
    receiver.behave({ mode: 'status', status: 500 })
    const { id } = await create()
    const days = async (count: number) => {
      for (let passed = 0; passed < count; passed++) {
        await lead(`Day ${passed}`)
        await server.work()
        server.clock.advanceMs(day)
      }
    }
    await days(4)
    expect(await get(id)).toMatchObject({ is_active: true, failing_since: start })
    receiver.behave('ok')
    await server.work()
    expect(await get(id)).toMatchObject({ is_active: true, failing_since: null })
    receiver.behave({ mode: 'status', status: 500 })
    await days(5)
    expect((await get(id)).is_active).toBe(true)
    server.events()
    await lead('The last')
    server.events()
    await server.work()
    expect(await get(id)).toMatchObject({
      is_active: false,
      disabled_reason: 'No delivery succeeded for 5 days. Last error: The receiver answered 500.',
    })
    // On PostgreSQL the jobs of several deliveries may ask, of which one commits.
    const heard = server.events()
    expect(isPostgres ? [...new Set(heard)] : heard).toEqual([
      'settings.webhook.update.before',
      'settings.webhook.update.after',
    ])
    expect(heard.filter((name) => name.endsWith('.after'))).toHaveLength(1)
  })

  it('is counted in /readyz and /metrics, which stay 200', async () => {
    const figures = async () => {
      server.clock.advanceMs(5_000)
      const ready = await server.anonymous.get('//readyz')
      const { text } = await server.anonymous.get('//metrics')
      const lines = text.split('\n').filter((line) => /^accord_webhook(s_failing|_deliveries_waiting)/.test(line))
      return [ready.status, ready.body.checks.webhooks, ...lines.map((line) => Number(line.split(' ')[1]))]
    }
    expect(await figures()).toEqual([200, { failing: 0, waiting: 0 }, 0, 0])
    receiver.behave({ mode: 'status', status: 500 })
    await create()
    await lead('One')
    await lead('Two')
    await server.work()
    expect(await figures()).toEqual([200, { failing: 1, waiting: 2 }, 1, 2])
    receiver.behave('ok')
    // Retries have a random delay of some seconds.
    server.clock.advanceMs(60_000)
    await server.work()
    expect(await figures()).toEqual([200, { failing: 0, waiting: 0 }, 0, 0])
  })

  it('keeps other records moving, and its own in order', async () => {
    receiver.behave({ mode: 'status', status: 500 }, ({ body }) => body.includes('Broken'))
    const { id } = await create()
    const broken = await lead('Broken')
    const whole = await lead('Whole')
    await rename(broken.id, 'Mended')
    await rename(whole.id, 'Better')
    await server.work()
    expect(titles().filter((title) => title !== 'Broken')).toEqual(['Whole', 'Better'])
    expect((await deliveries(id)).map(({ state }: any) => state)).toEqual([
      'pending',
      'succeeded',
      'pending',
      'succeeded',
    ])
  })

  it('keeps the order of a record for five tries; then later events pass', async () => {
    receiver.behave({ mode: 'status', status: 500 }, ({ body }) => body.includes('lead.create.after'))
    const { id } = await create()
    const { id: leadId } = await lead('Broken')
    await rename(leadId, 'Second')
    const tried = async (): Promise<number[]> => (await deliveries(id)).map(({ attempts }: any) => attempts.length)
    for (let tries = 1; tries < 5; tries++) {
      await server.work()
      expect(await tried()).toEqual([tries, 0])
      const [{ next_attempt_at: next }] = await deliveries(id)
      server.clock.set(next)
    }
    await server.work()
    expect((await tried())[1]).toBe(1)
    expect(
      sent()
        .slice(0, 6)
        .map(({ type }) => type),
    ).toEqual([...Array(5).fill('lead.create.after'), 'lead.update.after'])
    await rename(leadId, 'Third')
    await server.work()
    expect((await tried()).slice(1)).toEqual([1, 1])
    expect((await deliveries(id))[0].state).toBe('pending')
    receiver.behave('ok')
    server.clock.set((await deliveries(id))[0].next_attempt_at)
    await server.work()
    expect((await deliveries(id)).map(({ state }: any) => state)).toEqual(Array(3).fill('succeeded'))
  })

  it('is back: what waits comes at once, but the last two tries keep their time', async () => {
    receiver.behave('drop')
    const { id } = await create()
    await lead('Long')
    for (let tries = 0; tries < 8; tries++) {
      await server.work()
      server.clock.advanceMs(tries === 7 ? 0 : 16 * hour)
    }
    await lead('Short')
    await server.work()
    expect((await deliveries(id)).map((each: any) => each.attempts.length)).toEqual([8, 1])
    receiver.behave('ok')
    receiver.received.length = 0
    await lead('New')
    await server.work()
    expect(titles()).toEqual(['New', 'Short'])
    server.clock.advanceMs(23 * hour)
    await server.work()
    expect(titles()).toEqual(['New', 'Short', 'Long'])
  })

  it('had been left alone for weeks: one try that fails does not switch it off', async () => {
    receiver.behave({ mode: 'status', status: 500 })
    const { id } = await create()
    await lead()
    for (let tries = 0; tries < 10; tries++) {
      await server.work()
      const [{ next_attempt_at: next }] = await deliveries(id)
      if (next !== null) server.clock.set(next)
    }
    expect(await get(id)).toMatchObject({ is_active: true, failing_since: start })
    expect((await deliveries(id))[0]).toMatchObject({ state: 'failed' })
    server.clock.advanceMs(20 * day)
    await lead()
    await server.work()
    expect(await get(id)).toMatchObject({ is_active: true, failing_since: server.clock.now().toISOString() })
  })

  it('is not blamed for a request that cannot be made', async () => {
    const { id } = await create({ url: `${receiver.url}/hooks/{%leads.title%}/x` })
    await lead('..')
    await server.work()
    const [{ state, attempts }] = await deliveries(id)
    expect([state, receiver.received, attempts]).toMatchObject([
      'pending',
      [],
      [{ status: null, error: 'A placeholder value makes a path segment of dots, which would change the address.' }],
    ])
    expect(await get(id)).toMatchObject({ last_status: null, failing_since: null, version: 1 })
    await lead('Chairs')
    await server.work()
    expect(receiver.received.map((each) => each.path)).toEqual(['/hooks/Chairs/x'])
  })

  it('holds three requests at most while it fails, and has all it is due at once when it is back', async () => {
    const failing = await create()
    receiver.behave('hang')
    calls.isSilent = true
    await lead('First')
    await server.work()
    calls.most = 0
    for (let each = 0; each < 7; each++) await lead(`Lead ${each}`)
    await server.work()
    expect([calls.most, receiver.received.length]).toEqual([3, 8])
    calls.most = 0
    calls.isSilent = false
    receiver.behave({ mode: 'late', ms: 300 })
    await lead('New')
    await server.work()
    expect(calls.most).toBeGreaterThan(4)
    expect((await deliveries(failing.id)).map(({ state }: any) => state)).toEqual(Array(9).fill('succeeded'))
    expect(await jobs()).toEqual([])
  })

  it('leaves places for the others from its first hanging request on', async () => {
    const slow = await create({ url: `${receiver.url}/slow` })
    for (let each = 0; each < 20; each++) await lead(`Lead ${each}`)
    const healthy = await create({ url: `${receiver.url}/healthy`, events: ['product.create.after'] })
    await given(server.admin).product()
    receiver.behave('hang', ({ path }) => path === '/slow')
    calls.isSilent = true
    await server.work()
    const paths = receiver.received.map(({ path }) => path)
    expect(paths.slice(0, 7)).toEqual([...Array(6).fill('/slow'), '/healthy'])
    expect((await deliveries(healthy.id)).map(({ state }: any) => state)).toEqual(['succeeded'])
    expect((await deliveries(slow.id)).every(({ attempts }: any) => attempts.length === 1)).toBe(true)
  })

  it.each(sweeps.map((job) => [job.kind, job] as const))('%s goes through what waits in steps', async (kind, job) => {
    const { id } = await create()
    const late = '2026-04-01T00:00:00.000Z'
    const row = { webhook_id: id, event: 'lead.create.after', entity_type: 'leads', entity_id: 1, event_id: 1 }
    const rows = Array.from({ length: 1100 }, (_, index) => ({
      ...row,
      dedupe_key: `${index}`,
      message_id: `${index}`,
    }))
    const at = { next_attempt_at: late, created_at: start, updated_at: start, finished_at: null }
    for (let from = 0; from < rows.length; from += 550)
      await server.store.db
        .insertInto('webhook_deliveries')
        .values(rows.slice(from, from + 550).map((each) => ({ ...each, ...at })))
        .execute()
    if (kind === 'webhooks.give-up') await server.admin.put(`${path}/${id}`, { is_active: false })
    const waiting = async () => {
      const left = server.store.db.selectFrom('webhook_deliveries').select('id').where('next_attempt_at', '=', late)
      return (await left.execute()).length
    }
    const run = async (steps: number) => {
      const signal = { aborted: false } as AbortSignal
      Object.defineProperty(signal, 'aborted', { get: () => steps-- === 0 })
      const ctx = systemContext(server.app.services, 'api')
      return job.run(
        ctx,
        { webhook_id: id },
        { id: 1, attempt: 1, isLast: false, signal, holdsLease: async () => true },
      )
    }
    expect([await run(1), await waiting()]).toEqual([{ runAgainAt: expect.any(Date) }, 1000])
    expect([await run(-1), await waiting()]).toEqual([undefined, 0])
  })

  it('whose address is in the own network is not called at all', async () => {
    const guarded = await startServer({ config: { webhookAllowHttp: true } })
    const { body } = await guarded.admin.post(path, {
      name: 'Inside',
      url: `http://localhost:${receiver.port}/hooks?key=abc`,
      events: ['*'],
    })
    await given(guarded.admin).lead()
    await guarded.work()
    const { data } = (await guarded.admin.get(`${path}/${body.data.id}/deliveries`)).body
    expect(data[0].attempts[0]).toMatchObject({
      status: null,
      error: 'localhost is at a loopback address. ACCORD_WEBHOOK_ALLOW_CIDRS names networks that may be called.',
      response_excerpt: null,
    })
    const test = await guarded.admin.post(`${path}/${body.data.id}/test`)
    expect([test.status, test.body.data.state, test.body.data.attempt.error]).toEqual([
      200,
      'failed',
      'localhost is at a loopback address. ACCORD_WEBHOOK_ALLOW_CIDRS names networks that may be called.',
    ])
    expect(receiver.received).toEqual([])
    await guarded.close()
  })

  it('and gives away the secret: the log does not repeat it', async () => {
    const { id, secret } = await create()
    receiver.behave({ mode: 'say', text: `Your secret is ${secret}!` })
    await lead()
    await server.work()
    expect((await deliveries(id))[0].attempts[0].response_excerpt).toBe('Your secret is …!')
    const { body } = await server.admin.post(`${path}/${id}/test`)
    expect(body.data.attempt.response_excerpt).toBe('Your secret is …!')
  })
})

describe('a webhook that a workflow triggers', () => {
  const cause = async (index = 0) => {
    const { id } = await server.store.db
      .selectFrom('events')
      .select('id')
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow()
    return { eventId: id, runId: 7, index, userId: 1 }
  }
  const trigger = async (id: number, index = 0) =>
    triggerWebhook(systemContext(server.app.services, 'workflow'), id, await cause(index))

  it('is told the event of the run, whatever it subscribes to, once for each action', async () => {
    const { id, secret } = await create({ events: [] })
    const { id: leadId } = await lead('Won')
    const first = await trigger(id)
    expect(await trigger(id)).toBe(first)
    expect(await trigger(id, 1)).not.toBe(first)
    await server.work()
    expect(receiver.received.map((each) => verified(secret, each))).toMatchObject([
      { type: 'lead.create.after', data: { entity_id: leadId, after: { title: 'Won' } } },
      { type: 'lead.create.after', data: { entity_id: leadId } },
    ])
    const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
    expect(new Set(ids).size).toBe(2)
    expect((await deliveries(id)).map((each: any) => each.webhook_id)).toEqual(ids)
  })

  it('refuses when it is gone or switched off', async () => {
    const { id } = await create({ is_active: false })
    await lead()
    await expect(trigger(id)).rejects.toThrow(`The webhook ${id} is switched off.`)
    await expect(trigger(999)).rejects.toThrow('The webhook 999 has been deleted.')
  })
})

describe('listWebhookDeliveries', () => {
  it('is filtered by state, event and time', async () => {
    const { id } = await create()
    await lead('One')
    await server.work()
    server.clock.advanceMs(hour)
    receiver.behave('drop')
    await lead('Two')
    await server.work()
    const all = await deliveries(id)
    const ids = (some: { id: number }[]) => some.map((each) => each.id)
    expect(all).toHaveLength(2)
    expect(ids(await deliveries(id, '&state=succeeded'))).toEqual([all[0].id])
    expect(ids(await deliveries(id, '&state[not]=succeeded'))).toEqual([all[1].id])
    expect(ids(await deliveries(id, `&event_id=${all[1].event_id}`))).toEqual([all[1].id])
    expect(ids(await deliveries(id, `&created_at[gt]=${start}`))).toEqual([all[1].id])
  })

  it('shows what is about records the caller sees, or saw until they were deleted', async () => {
    const ben = await addUser(server, 'Ben', { view: 'individual' })
    const cat = await addUser(server, 'Cat', { view: 'individual', permissions: ['settings.automation.webhooks'] })
    const { id } = await create({ events: ['*'] })
    const mine = await lead('Mine', { user_id: ben.id })
    const gone = await lead('Gone', { user_id: ben.id })
    await lead('Not mine', { user_id: 1 })
    const other = await lead('Not mine, gone', { user_id: 1 })
    await server.admin.delete(`/leads/${gone.id}`)
    await server.admin.delete(`/leads/${other.id}`)
    const product = await given(server.admin).product()
    await server.work()
    const { body } = await ben.get(`${path}/${id}/deliveries?sort=id&per_page=100`)
    const about = body.data.map((each: any) => [each.entity_type, each.entity_id])
    const leads = about.filter(([type]: string[]) => type === 'leads').map(([, id]: [string, number]) => id)
    expect([...new Set(leads)]).toEqual([mine.id, gone.id])
    expect(about).toContainEqual(['products', product.id])
    expect(body.meta.total).toBe(about.length)
    expect((await cat.get(`${path}/${id}/deliveries`)).body.data).not.toContainEqual(
      expect.objectContaining({ entity_type: 'leads' }),
    )
    const unseen = (await deliveries(id)).find(
      (each: any) => each.entity_id === other.id && each.entity_type === 'leads',
    )
    expect((await ben.post(`${path}/${id}/deliveries/${unseen.id}/replay`)).status).toBe(404)
  })

  it('knows no webhook that is not there', async () => {
    for (const call of [
      server.admin.get(`${path}/999/deliveries`),
      server.admin.post(`${path}/999/test`),
      server.admin.post(`${path}/999/replay`, { after_event_id: 0 }),
      server.admin.post(`${path}/999/deliveries/1/replay`),
    ])
      expect((await call).status).toBe(404)
  })
})

describe('testWebhook', () => {
  it('sends a signed event that never happened, and leaves no trace', async () => {
    const { id, name, secret } = await create({ is_active: false })
    const { status, body } = await server.admin.post(`${path}/${id}/test`)
    expect([status, body.data]).toEqual([
      200,
      {
        state: 'succeeded',
        attempt: {
          at: start,
          status: 200,
          duration_ms: expect.any(Number),
          error: null,
          response_excerpt: 'thank you',
        },
      },
    ])
    expect(verified(secret, receiver.received[0] as Received)).toMatchObject({
      type: 'webhook.test',
      data: { entity_type: 'webhooks', entity_id: id, before: null, after: { id, name }, changed: [] },
    })
    expect([await deliveries(id), server.events()]).toEqual([[], []])
    expect((await get(id)).last_status).toBeNull()
  })

  it('answers what went wrong', async () => {
    const { id } = await create()
    receiver.behave('drop')
    const { status, body } = await server.admin.post(`${path}/${id}/test`)
    expect([status, body.data.state, body.data.attempt]).toMatchObject([
      200,
      'failed',
      { status: null, error: '127.0.0.1 ended the connection before its answer was complete.', response_excerpt: null },
    ])
    expect((await get(id)).failing_since).toBeNull()
  })

  it('refuses a dry run and sends nothing', async () => {
    const { id } = await create()
    const { status, body } = await server.admin.post(`${path}/${id}/test`, undefined, {
      headers: { 'accord-dry-run': 'true' },
    })
    expect([status, body.data.state, receiver.received]).toEqual([200, 'failed', []])
  })
})

describe('replayWebhookDelivery', () => {
  it('sends the same message again, also when it was given up', async () => {
    const { id } = await create()
    await lead()
    await server.work()
    const [delivery] = await deliveries(id)
    server.events()
    server.clock.advanceMs(hour)
    const { status, body } = await server.admin.post(`${path}/${id}/deliveries/${delivery.id}/replay`)
    expect([status, body.data]).toMatchObject([202, { id: delivery.id, state: 'pending', finished_at: null }])
    await server.work()
    const [first, second] = receiver.received as [Received, Received]
    expect([second.body, second.headers['webhook-id']]).toEqual([first.body, first.headers['webhook-id']])
    expect((await deliveries(id))[0]).toMatchObject({ state: 'succeeded', attempts: [{ at: start }, {}] })
    expect(server.events()).toEqual([])
  })

  it('climbs the whole ladder again', async () => {
    receiver.behave({ mode: 'status', status: 500 })
    const { id } = await create()
    await lead()
    for (let tries = 0; tries < 10; tries++) {
      await server.work()
      server.clock.advanceMs(27 * hour)
      // Keeps the webhook from being disabled.
      await server.store.db.updateTable('webhooks').set({ failing_since: null }).execute()
    }
    const [delivery] = await deliveries(id)
    expect([delivery.state, delivery.attempts.length]).toEqual(['failed', 10])
    await server.admin.post(`${path}/${id}/deliveries/${delivery.id}/replay`)
    await server.work()
    const [again] = await deliveries(id)
    expect([again.state, again.attempts.length]).toEqual(['pending', 11])
    expect(new Date(again.next_attempt_at).getTime() - server.clock.now().getTime()).toBeLessThan(6000)
  })

  it('is refused for one that waits, and for a webhook that is switched off', async () => {
    const { id } = await create()
    await lead()
    receiver.behave('drop')
    await server.work()
    const [delivery] = await deliveries(id)
    const replay = () => server.admin.post(`${path}/${id}/deliveries/${delivery.id}/replay`)
    const waiting = await replay()
    expect([waiting.status, waiting.body.code]).toEqual([409, 'state_conflict'])
    await server.admin.put(`${path}/${id}`, { is_active: false })
    server.clock.advanceMs(minute)
    await server.work()
    expect((await deliveries(id))[0]).toMatchObject({
      state: 'failed',
      attempts: [{}, { status: null, error: 'The webhook is switched off.' }],
    })
    expect((await replay()).status).toBe(409)
    await server.admin.put(`${path}/${id}`, { is_active: true })
    receiver.behave('ok')
    expect((await replay()).status).toBe(202)
    await server.work()
    expect((await deliveries(id))[0].state).toBe('succeeded')
  })

  it('knows no delivery of another webhook', async () => {
    const { id } = await create()
    const other = await create({ events: [] })
    await lead()
    await server.work()
    const [delivery] = await deliveries(id)
    expect((await server.admin.post(`${path}/${other.id}/deliveries/${delivery.id}/replay`)).status).toBe(404)
  })

  it('sends one again whose job is about to end, behind it', async () => {
    const { id } = await create()
    await lead()
    await createEventDispatcher(server.app.services, [subscriptions]).dispatch()
    const [waiting] = await jobs()
    if (!waiting) throw new Error('No job was made.')
    await server.work()
    // The delivery was sent, and the worker has not yet deleted its job.
    const running = {
      ...waiting,
      state: 'running' as const,
      locked_by: 'another worker',
      locked_until: '2026-03-02T00:00:00.000Z',
    }
    await server.store.db.insertInto('jobs').values(running).execute()
    const [delivery] = await deliveries(id)
    expect((await server.admin.post(`${path}/${id}/deliveries/${delivery.id}/replay`)).status).toBe(202)
    await server.work()
    expect(receiver.received).toHaveLength(1)
    const [held] = await server.store.db.selectFrom('jobs').selectAll().where('id', '=', running.id).execute()
    if (held) await finish(systemContext(server.app.services, 'api'), held)
    await server.work()
    expect([receiver.received.length, (await deliveries(id))[0].state, await jobs()]).toEqual([2, 'succeeded', []])
  })

  it('brings forward what fails once more, however often it was tried before it was sent again', async () => {
    const { id } = await create()
    receiver.behave('drop')
    await lead('Old')
    await server.work()
    const attempt = { at: start, status: 500, duration_ms: 1, error: 'x', response_excerpt: null }
    await server.store.db
      .updateTable('webhook_deliveries')
      .set({ attempts: JSON.stringify(Array(9).fill(attempt)), tries: 9, state: 'failed' })
      .execute()
    const [delivery] = await deliveries(id)
    // The waiting job of the delivery must not delay the replay.
    expect((await server.admin.post(`${path}/${id}/deliveries/${delivery.id}/replay`)).status).toBe(202)
    await server.work()
    expect((await deliveries(id))[0]).toMatchObject({ state: 'pending', attempts: { length: 10 } })
    receiver.behave('ok')
    receiver.received.length = 0
    await lead('New')
    await server.work()
    expect(titles()).toEqual(['New', 'Old'])
  })

  it('is done by the retry of its job as well, when the server failed', async () => {
    const { id } = await create()
    await lead()
    calls.fault = new Error('The disk is full.')
    for (let tries = 0; tries < 5; tries++) {
      await server.work()
      server.clock.advanceMs(3 * hour)
    }
    calls.fault = null
    const [job] = await jobs()
    expect(job?.state).toBe('buried')
    expect((await deliveries(id))[0]).toMatchObject({ state: 'failed', attempts: [{ error: 'The disk is full.' }] })
    expect((await server.admin.post(`/jobs/${job?.id}/retry`)).status).toBe(202)
    await server.work()
    expect([receiver.received.length, (await deliveries(id))[0].state, await jobs()]).toEqual([1, 'succeeded', []])
  })

  it('brings back a delivery whose job was deleted', async () => {
    const { id } = await create()
    await lead()
    receiver.behave('drop')
    await server.work()
    await server.store.db.deleteFrom('jobs').where('kind', '=', deliver.kind).execute()
    const [delivery] = await deliveries(id)
    expect((await server.admin.post(`${path}/${id}/deliveries/${delivery.id}/replay`)).status).toBe(202)
  })
})

describe('a worker that lost its job', () => {
  /**
   * The lease of a worker ends during its delivery attempt, and another worker records its own
   * result.
   */
  async function overtaken(stale: 'failed' | 'succeeded', rival: 'failed' | 'succeeded') {
    const { id } = await create()
    await lead()
    await createEventDispatcher(server.app.services, [subscriptions]).dispatch()
    let answer = (): void => undefined
    const { services } = server.app
    const outbound: Outbound = {
      request: () =>
        new Promise((resolve) => {
          answer = () => resolve({ status: stale === 'failed' ? 500 : 200, headers: {}, excerpt: 'late', ms: 1 })
        }),
    }
    const slow = createWorker({ ...services, outbound }, [deliver], [])
    const late = slow.drain()
    await until(async () => (await jobs()).some(({ state }: any) => state === 'running'))
    await until(() => answer.name === 'answer')
    // Simulates that the machine of the first worker slept: its lease ends, and another worker
    // polls.
    server.clock.advanceMs(61_000)
    receiver.behave(rival === 'failed' ? { mode: 'status', status: 503 } : 'ok')
    await server.work()
    const [after] = await deliveries(id)
    const webhook = await get(id)
    answer()
    await late
    return { id, after, webhook, late: (await deliveries(id))[0] }
  }

  it('does not write "failed" over a delivery that another worker has made', async () => {
    const { id, after, webhook, late } = await overtaken('failed', 'succeeded')
    expect(after).toMatchObject({ state: 'succeeded', attempts: [{ status: 200 }] })
    // The late result only adds its attempt to the list.
    expect(late).toEqual({ ...after, attempts: [...after.attempts, expect.objectContaining({ status: 500 })] })
    expect(await get(id)).toEqual(webhook)
    expect(await jobs()).toEqual([])
  })

  it('does not end, hurry or count a try of the other one', async () => {
    const { after, late } = await overtaken('succeeded', 'failed')
    expect(after).toMatchObject({ state: 'pending', attempts: [{ status: 503 }] })
    expect(late).toMatchObject({ state: 'pending', next_attempt_at: after.next_attempt_at })
    expect(await jobs()).toMatchObject([{ state: 'waiting' }])
  })
})

describe('replayWebhook', () => {
  it('tells the past again, also what was told before under the id it had', async () => {
    await lead('Before')
    await given(server.admin).person()
    server.clock.advanceMs(1000)
    const { id } = await create({ events: ['lead.create.after'] })
    await lead('After')
    await server.work()
    expect(titles()).toEqual(['After'])
    const [last] = await server.store.db.selectFrom('events').select('id').orderBy('id', 'desc').limit(1).execute()
    const { status, body } = await server.admin.post(`${path}/${id}/replay`, { after_event_id: 0 })
    expect([status, body.data]).toEqual([202, { queued: 2, last_event_id: last?.id }])
    // Waiting deliveries are not queued again.
    expect((await server.admin.post(`${path}/${id}/replay`, { after_event_id: 0 })).body.data.queued).toBe(0)
    await server.work()
    // Deliveries about different leads may overtake each other.
    expect(titles().toSorted()).toEqual(['After', 'After', 'Before'])
    const [first, again] = receiver.received.filter((_each, index) => titles()[index] === 'After')
    expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    const nothing = await server.admin.post(`${path}/${id}/replay`, { after_event_id: last?.id })
    expect(nothing.body.data).toEqual({ queued: 0, last_event_id: null })
    const tooFar = await server.admin.post(`${path}/${id}/replay`, { after_event_id: Number(last?.id) + 1 })
    expect([tooFar.status, tooFar.body.errors]).toEqual([422, { after_event_id: ['No event has such an id.'] }])
  })

  it('is refused for a webhook that is switched off', async () => {
    const { id } = await create({ is_active: false })
    expect((await server.admin.post(`${path}/${id}/replay`, { after_event_id: 0 })).status).toBe(409)
  })
})
