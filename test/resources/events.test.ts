// The change feed as pages: the cursor misses and repeats no events, filters, and visibility.
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { describe, expect, it, vi } from 'vitest'
import { authenticate, issueToken } from '../../src/kernel/auth/tokens.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { followEvents } from '../../src/resources/events/stream.ts'
import { type Caller, start } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { given } from '../support/given.ts'
import { statementsOf } from '../support/statements.ts'
import { until } from '../support/until.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

let anna: Caller & { id: number }
let ben: Caller & { id: number }
const sales = ['events', 'leads', 'contacts', 'contacts.persons', 'quotes', 'mail', 'mail.inbox']

const server = useServer({}, async (server) => {
  anna = await addUser(server, 'Anna', { view: 'individual', permissions: sales })
  ben = await addUser(server, 'Ben', { view: 'individual', permissions: sales })
})

const page = async (caller: Caller, query = ''): Promise<{ data: any[]; meta: any }> => {
  const { status, body, text } = await caller.get(`/events${query}`)
  expect(status === 200 ? '' : text).toBe('')
  return body
}

/** Reads all events page by page. */
async function all(caller: Caller, query = '', size = 3): Promise<any[]> {
  const found: any[] = []
  let after = 0
  for (let patience = 200; patience > 0; patience--) {
    const { data, meta } = await page(caller, `?after=${after}&per_page=${size}${query}`)
    found.push(...data)
    expect(meta.next_after).toBeGreaterThanOrEqual(after)
    after = meta.next_after
    if (!meta.has_more) return found
  }
  throw new Error('The feed does not end.')
}

const names = (entries: readonly any[]): string[] => entries.map(({ name }) => name)

describe('listEvents as pages', () => {
  it('waits for the disk, because after a power cut another event could get the same id', async () => {
    await given(server.admin).lead()
    const { store } = server
    let confirm = (): void => undefined
    const confirmed = vi.spyOn(store, 'whenDurable').mockReturnValue(
      new Promise((resolve) => {
        confirm = resolve
      }),
    )
    let isAnswered = false
    const reading = page(server.admin).then(({ data }) => {
      isAnswered = true
      return data
    })
    await until(() => confirmed.mock.calls.length > 0)
    await pause(50)
    expect(isAnswered).toBe(false)
    confirm()
    expect(await reading).not.toEqual([])
    confirmed.mockRestore()
  })

  it('tells of each write once, oldest first, with what the record was and is', async () => {
    const lead = await given(server.admin).lead({ title: 'Forty seats' })
    await server.admin.put(`/leads/${lead.id}`, { title: 'Fifty seats' }, { headers: { 'x-request-id': 'the-change' } })
    await server.admin.put(`/leads/${lead.id}`, { title: 'Fifty seats' })
    const { data, meta } = await page(server.admin, '?per_page=100&entity_type=leads')
    expect(names(data)).toEqual(['lead.create.after', 'lead.update.after'])
    expect(data[1]).toMatchObject({
      entity_type: 'leads',
      entity_id: lead.id,
      actor: { type: 'user', id: 1, name: 'Example Admin' },
      request_id: 'the-change',
      origin: 'api',
      before: { title: 'Forty seats', version: 1 },
      after: { title: 'Fifty seats', version: 2 },
      changed: ['title'],
      restored: false,
      occurred_at: start,
    })
    expect(meta).toEqual({ next_after: data[1].id, has_more: false, oldest_id: (await all(server.admin))[0].id })
  })

  it('misses nothing and repeats nothing when it is asked again and again, whatever the size of a page', async () => {
    const make = given(server.admin)
    for (let count = 0; count < 7; count++) await make.person()
    const whole = await all(server.admin, '', 100)
    for (const size of [1, 2, 3, 7]) expect(await all(server.admin, '', size)).toEqual(whole)
    const { meta } = await page(server.admin, `?after=${whole.at(-1).id}`)
    expect(meta.has_more).toBe(false)
    await make.person()
    expect(names((await page(server.admin, `?after=${meta.next_after}`)).data)).toEqual([
      'contacts.person.create.after',
    ])
  })

  it('says whether there is more only when there is', async () => {
    const make = given(server.admin)
    await make.person()
    await make.person()
    expect((await page(server.admin, '?per_page=2&entity_type=persons')).meta.has_more).toBe(false)
    expect((await page(server.admin, '?per_page=1&entity_type=persons')).meta.has_more).toBe(true)
  })

  it('finds by name, pattern, alias, record, actor, request and time', async () => {
    const make = given(server.admin)
    const tag = await make.tag()
    const lead = await make.lead()
    await server.admin.post(`/leads/${lead.id}/tags`, { tag_id: tag.id }, { headers: { 'x-request-id': 'tagging' } })
    server.clock.advanceMs(60_000)
    await server.admin.put(`/leads/${lead.id}`, { title: 'Later' })
    const found = async (query: string): Promise<string[]> =>
      names((await page(server.admin, `?per_page=100&${query}`)).data)
    expect(await found('name=lead.update.after')).toEqual(['lead.update.after'])
    expect(await found('name=lead.*.after')).toEqual(['lead.create.after', 'lead.update.after'])
    expect(await found('name=*.tag.*.after')).toEqual(['settings.tag.create.after', 'leads.tag.create.after'])
    expect(await found('name=contact.person.create.after')).toEqual(await found('name=contacts.person.create.after'))
    expect(await found('name=nothing.like.this,settings.tag.create.after')).toEqual(['settings.tag.create.after'])
    expect(await found('name=unknown.*')).toEqual([])
    expect(await found('name=*')).toEqual(await found(''))
    expect(await found(`entity_type=leads&entity_id=${lead.id}`)).toEqual([
      'lead.create.after',
      'leads.tag.create.after',
      'lead.update.after',
    ])
    expect(await found('request_id=tagging')).toEqual(['leads.tag.create.after'])
    expect(await found('actor_id=999')).toEqual([])
    expect(await found('occurred_at[gt]=2026-03-01T09:30:30Z')).toEqual(['lead.update.after'])
  })

  it('moves on behind what a filter passes over, so that a quiet reader is never too late', async () => {
    const make = given(server.admin)
    await make.person()
    const { meta } = await page(server.admin, '?name=lead.create.after')
    expect(meta.next_after).toBe((await all(server.admin)).at(-1).id)
  })

  it('refuses a place before the oldest event that is kept, and says which that is', async () => {
    const make = given(server.admin)
    for (let count = 0; count < 4; count++) await make.person()
    const whole = await all(server.admin)
    const last = whole.at(-1).id
    await server.store.db.deleteFrom('events').where('id', '<', last).execute()
    const refused = await server.admin.get(`/events?after=${last - 2}`)
    expect([refused.status, refused.body.code, refused.body.oldest_id]).toEqual([422, 'validation_failed', last])
    expect(refused.body.errors).toEqual({
      'query.after': [`The log begins at event ${last}; earlier events were deleted.`],
    })
    for (const after of [0, last - 1]) expect((await page(server.admin, `?after=${after}`)).data).toHaveLength(1)
  })

  it('refuses a place that the log has not come to, as after a restored backup, and none that it was at', async () => {
    await given(server.admin).person()
    const whole = await all(server.admin)
    const [oldest, newest] = [whole[0].id, whole.at(-1).id]
    const refused = await server.admin.get(`/events?after=${newest + 1}`)
    expect([refused.status, refused.body.code, refused.body.oldest_id]).toEqual([422, 'validation_failed', oldest])
    expect(Object.keys(refused.body.errors)).toEqual(['query.after'])
    const stream = { accept: 'text/event-stream', 'last-event-id': String(newest + 1) }
    const cut = await server.admin.get('/events', { headers: stream })
    expect([cut.status, Object.keys(cut.body.errors)]).toEqual([422, ['header.Last-Event-ID']])
    expect((await page(server.admin, `?after=${newest}`)).meta.next_after).toBe(newest)
    // The position stays valid after old events were deleted.
    await server.work()
    await server.store.db.updateTable('event_readers').set({ last_event_id: newest }).execute()
    await server.store.db.deleteFrom('events').execute()
    expect((await page(server.admin, `?after=${newest}`)).meta.next_after).toBe(newest)
    expect((await server.admin.get(`/events?after=${newest + 1}`)).status).toBe(422)
  })

  it('looks at a part of a long log for one answer, and says that there is more of it', async () => {
    await given(server.admin).lead()
    const whole = await all(server.admin)
    const [oldest, newest] = [whole[0].id, whole.at(-1).id]
    const copied = Object.keys((await server.store.db.selectFrom('events').selectAll().executeTakeFirstOrThrow()) ?? {})
    const columns = sql.join(copied.filter((column) => column !== 'id').map((column) => sql.ref(column)))
    const many = sql`with recursive n(n) as (select 1 union all select n + 1 from n where n < 25000)
      insert into events (${columns}) select ${columns} from events, n where events.id = ${newest}`
    await many.execute(server.store.db)
    await given(server.admin).person()
    const { id: last } = await server.store.db
      .selectFrom('events')
      .select('id')
      .orderBy('id', 'desc')
      .executeTakeFirstOrThrow()
    // One answer looks at 10,000 ids.
    const expected: number[] = []
    for (let place = oldest - 1 + 10_000; place < last; place += 10_000) expected.push(place)
    expected.push(last)
    expect(expected.length).toBeGreaterThanOrEqual(3)
    for (const query of ['name=contacts.person.create.after', 'entity_type=persons', 'occurred_at[gt]=2030-01-01']) {
      const places: number[] = []
      const found: string[] = []
      for (let after = 0, hasMore = true; hasMore; ) {
        const { data, meta } = await page(server.admin, `?after=${after}&${query}`)
        found.push(...names(data))
        places.push(meta.next_after)
        ;({ next_after: after, has_more: hasMore } = meta)
      }
      expect(places).toEqual(expected)
      expect(found).toEqual(query.startsWith('occurred_at') ? [] : ['contacts.person.create.after'])
    }
    // Deleted events cost the query nothing.
    await server.store.db
      .deleteFrom('events')
      .where('id', '<', last - 1_000)
      .execute()
    expect((await page(server.admin, '?name=contacts.person.create.after')).data).toHaveLength(1)
  })

  it
    .runIf(!isPostgres)
    .each([
      'name=lead.*.after',
      'entity_type=leads',
      'entity_type=leads,persons&occurred_at[gt]=2030-01-01',
      'entity_type=leads&entity_id=1',
      'actor_id=1,2&name=lead.create.after',
      'request_id=x',
      'occurred_at[lt]=2030-01-01',
    ])('finds the part by its ids, whatever is asked: %s', async (query) => {
    await given(server.admin).lead()
    const statements = await statementsOf(() => page(server.admin, `?${query}`))
    const searches = statements.filter((text) => /^select "id" from "events" where "id" > \? and "id" <= \?/.test(text))
    expect(searches).toHaveLength(1)
    const plan = sql<{ detail: string }>`explain query plan ${sql.raw((searches[0] ?? '').replaceAll('?', "'1'"))}`
    const [{ detail = '' } = {}] = (await plan.execute(server.store.db)).rows
    expect(detail).toMatch(/(id>\? AND id<\?|rowid>\? AND rowid<\?)/)
  })

  it('tells long texts, other than those of mails, as they are', async () => {
    const content = `<p>${'long '.repeat(20_000)}</p>`
    await server.admin.post('/settings/email-templates', { name: 'Long', subject: 'x', content })
    const [entry] = await all(server.admin, '&name=settings.email_templates.create.after')
    expect(entry.after.content).toBe(content)
  })

  it('is for those who hold `events` and whose token may read it', async () => {
    const nora = await addUser(server, 'Nora', { permissions: ['leads'] })
    expect((await nora.get('/events')).body).toMatchObject({ status: 403, required: 'events' })
    const narrow = await server.as(1, ['leads:read'])
    expect((await narrow.get('/events')).body).toMatchObject({ status: 403, required: 'events:read' })
  })
})

describe('visibility of the feed', () => {
  it('hides records the caller does not see, and still advances the position', async () => {
    const mine = await given(server.admin).lead({ user_id: anna.id, title: 'Of Anna' })
    await given(server.admin).lead({ user_id: ben.id, title: 'Of Ben' })
    await given(server.admin).lead({ user_id: null, title: 'Without an owner' })
    const entries = await all(anna, '&entity_type=leads', 1)
    expect(entries.map(({ entity_id }) => entity_id)).toEqual([mine.id])
    expect(await all(server.admin, '&entity_type=leads')).toHaveLength(3)
  })

  it('follows the owner: what is handed on is seen by the new owner, and by the old one no more', async () => {
    const lead = await given(server.admin).lead({ user_id: anna.id })
    await server.admin.put(`/leads/${lead.id}`, { user_id: ben.id })
    expect(await all(anna, '&entity_type=leads')).toEqual([])
    expect(names(await all(ben, '&entity_type=leads'))).toEqual(['lead.create.after', 'lead.update.after'])
  })

  it('tells of deleted records those who could see them when they went', async () => {
    const lead = await given(server.admin).lead({ user_id: anna.id })
    await server.admin.put(`/leads/${lead.id}`, { user_id: ben.id })
    await server.admin.delete(`/leads/${lead.id}`)
    expect(await all(anna, '&entity_type=leads')).toEqual([])
    expect(names(await all(ben, '&entity_type=leads'))).toEqual([
      'lead.create.after',
      'lead.update.after',
      'lead.delete.after',
    ])
  })

  it('leaves out types whose list the role or the token may not call', async () => {
    const make = given(server.admin)
    await make.tag()
    await make.person({ user_id: anna.id })
    await make.lead({ user_id: anna.id })
    const types = async (caller: Caller) =>
      [...new Set((await all(caller)).map(({ entity_type }) => entity_type))].sort()
    expect(await types(anna)).toEqual(['leads', 'persons'])
    expect(await types(await server.as(anna.id, ['events:read', 'leads:read']))).toEqual(['leads'])
    expect(await types(await server.as(1, ['events:read', 'settings:read']))).not.toContain('leads')
  })

  it('leaves out a link to a record that is out of sight', async () => {
    const make = given(server.admin)
    const lead = await make.lead({ user_id: anna.id })
    const quote = await make.quote({ user_id: ben.id })
    await server.admin.post(`/leads/${lead.id}/quotes`, { quote_id: quote.id })
    expect(names(await all(anna, '&entity_type=leads'))).toContain('leads.quote.create.after')
    await server.admin.delete(`/leads/${lead.id}/quotes/${quote.id}`)
    expect(names(await all(anna, '&entity_type=leads'))).toEqual(['lead.create.after'])
    expect(names(await all(server.admin, '&entity_type=leads'))).toContain('leads.quote.create.after')
  })

  it('cuts other records down to references and leaves out counts the reader could not make', async () => {
    const organization = await given(server.admin).organization({
      name: 'Secret address',
      address: { address: '1 Hidden Road', city: 'Paris', country: 'FR', postcode: '75001', state: null },
      user_id: ben.id,
    })
    await given(server.admin).person({ user_id: anna.id, organization_id: organization.id })
    const [entry] = await all(anna, '&entity_type=persons')
    expect(entry.after.organization).toEqual({ id: organization.id, name: 'Secret address' })
    expect(Object.keys(entry.after).filter((key) => key.endsWith('_count'))).toEqual([])
    expect(JSON.stringify(await all(anna))).not.toContain('Hidden Road')
  })

  it('tells of tokens their owners and those who handle tokens, and never a secret', async () => {
    const handler = await addUser(server, 'Handler', { permissions: ['events', 'settings.user.tokens'] })
    const made = await anna.post('/tokens', { name: 'Of Anna', abilities: ['leads:read'] })
    expect(made.status).toBe(201)
    const ofTokens = async (caller: Caller) => names(await all(caller, '&entity_type=tokens'))
    expect(await ofTokens(anna)).toEqual(['user.token.create.after'])
    expect(await ofTokens(ben)).toEqual([])
    expect(await ofTokens(handler)).toEqual(['user.token.create.after'])
    const [, secret] = made.body.data.token.split('|')
    expect(JSON.stringify(await all(server.admin))).not.toContain(secret)
  })

  it('says nothing of a type that it does not know', async () => {
    await given(server.admin).tag()
    await server.store.db.updateTable('events').set({ entity_type: 'novelties' }).execute()
    expect(await all(server.admin)).toEqual([])
  })

  it('asks a number of questions that does not grow with the page', async () => {
    const make = given(server.admin)
    for (let count = 0; count < 12; count++) await make.lead({ user_id: count % 2 ? anna.id : ben.id })
    const statements = async (size: number) =>
      (await statementsOf(() => page(anna, `?per_page=${size}&entity_type=leads`))).length
    // The first call stores the token's last use, and the second reads that change.
    await statements(1)
    await statements(1)
    expect(await statements(6)).toBe(await statements(1))
  })
})

describe('a stream of listEvents', () => {
  const reader = async (token: string, pace = { beatMs: 10, lookMs: 10 }) => {
    const { services } = server.app
    const headers = { authorization: `Bearer ${token}` }
    const who = await authenticate(services, headers.authorization, '127.0.0.1')
    const ctx = { ...systemContext(services, 'api'), ...who, headers, ip: '127.0.0.1' }
    const { body } = followEvents(ctx, [], 0, pace).parts
    return (body as AsyncIterable<string>)[Symbol.asyncIterator]()
  }

  it('gives a sign of life while nothing happens, and ends with its token', async () => {
    const { text } = await issueToken(
      server.store.db,
      {
        userId: ben.id,
        name: 't',
        kind: 'personal',
        abilities: ['*'],
        expiresAt: '2026-03-01T10:00:00.000Z',
        allowedIps: [],
      },
      start,
    )
    const stream = await reader(text)
    expect((await stream.next()).value).toBe('retry: 2000\nid: 0\n\n')
    const newest = (await page(server.admin)).meta.next_after
    expect((await stream.next()).value).toBe(`: still here\nid: ${newest}\n\n`)
    expect((await stream.next()).value).toBe(`: still here\nid: ${newest}\n\n`)
    server.clock.set('2026-03-01T10:00:01.000Z')
    expect((await stream.next()).done).toBe(true)
  })

  it('tells at once of what happens here, without a look at the log', async () => {
    const stream = await reader(server.admin.token ?? '', { beatMs: 600_000, lookMs: 600_000 })
    let told = (await stream.next()).value
    // An event before the second read.
    await given(server.admin).tag({ name: 'First' })
    while (!told.includes('First')) told = (await stream.next()).value
    const next = stream.next()
    await given(server.admin).tag({ name: 'Second' })
    expect(String((await next).value)).toContain('Second')
    await stream.return?.()
  })

  it('ends when its client reads nothing during four heartbeats', async () => {
    const stream = await reader(server.admin.token ?? '', { beatMs: 20, lookMs: 600_000 })
    await given(server.admin).tag({ name: 'Unread' })
    let told = (await stream.next()).value
    while (!told.includes('Unread')) told = (await stream.next()).value
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect((await stream.next()).done).toBe(true)
  })

  it('leaves nothing behind when its reader goes while it waits', async () => {
    const stream = await reader(anna.token ?? '')
    await stream.next()
    const waiting = stream.next()
    await stream.return?.()
    await waiting
    expect((await stream.next()).done).toBe(true)
  })
})
