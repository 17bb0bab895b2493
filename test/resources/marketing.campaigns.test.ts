// Running campaigns: each address gets one mail per occurrence, at the configured rate, and
// unsubscribed addresses get none. Mails are sent to a real SMTP server.
import { sql } from 'kysely'
import PostalMime from 'postal-mime'
import { beforeEach, describe, expect, it } from 'vitest'
import { jobs } from '../../src/background.ts'
import { createWorker } from '../../src/jobs/worker.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { Veto } from '../../src/kernel/write/events.ts'
import { queueAll } from '../../src/resources/marketing/queue.ts'
import { processNow } from '../../src/resources/marketing/run.ts'
import { type ServerOptions, start, startServer } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { useSmtp } from '../support/outside.ts'
import { statementsOf } from '../support/statements.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const marketing = '/settings/marketing'
const campaigns = `${marketing}/campaigns`
const minute = 60_000

let refuses: ((event: { name: string; input?: any }) => boolean) | null = null

const optionsWith = (config: ServerOptions['config'] = {}): ServerOptions => ({
  config: { smtpUrl: smtp.url, campaignRate: 1000, ...config },
  extensions: [
    (events) =>
      events.on('*', (event) => {
        if (refuses?.(event)) throw new Veto('Not this one.')
      }),
  ],
})

const smtp = useSmtp()
const usual = useServer(() => optionsWith())
/** The server of the current test. */
let server = usual
beforeEach(() => {
  refuses = null
})

const person = async (name: string, ...addresses: string[]): Promise<number> => {
  const emails = addresses.map((value) => ({ value, label: 'work' }))
  const { id } = await server.store.db
    .insertInto('persons')
    .values({
      name,
      name_key: name.toLowerCase(),
      emails: JSON.stringify(emails),
      contact_numbers: '[]',
      created_at: start,
      updated_at: start,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}
const template = async (content = '<p>Dear {%persons.name%}</p>'): Promise<number> =>
  (await server.admin.post('/settings/email-templates', { name: 'Spring', subject: 'Unused', content })).body.data.id
const event = async (date: string | null): Promise<number> =>
  (await server.admin.post(`${marketing}/events`, { name: 'Fair', description: 'Hall 4.', date })).body.data.id
const campaign = async (changes: object = {}): Promise<number> => {
  const email_template_id = await template()
  const sent = { name: 'Spring', subject: 'Hello {%persons.name%}', is_active: true, email_template_id, ...changes }
  const { body } = await server.admin.post(campaigns, sent)
  server.events()
  return body.data.id
}
const show = async (id: number) => (await server.admin.get(`${campaigns}/${id}`)).body.data
const stats = async (id: number) => (await show(id)).stats
const sends = async (id: number, query: Record<string, string> = {}) =>
  (await server.admin.get(`${campaigns}/${id}/sends`, { query: { per_page: '100', sort: 'id', ...query } })).body.data
const recipients = () => smtp.received.map(({ to }) => to.join()).sort()
/** Sets the clock, then runs the scheduler and the worker. */
const at = async (moment: string) => {
  server.clock.set(moment)
  await server.tick()
  await server.work()
}
const run = (id: number) => server.admin.post(`${campaigns}/${id}/run`)
const linkIn = (raw: string): string =>
  /^List-Unsubscribe: *<([^>]+)>/im.exec(raw.replaceAll(/\r\n\s+/g, ''))?.[1] ?? ''

describe('runCampaign', () => {
  it('sends one mail to the first address of every person, filled in, with a link to unsubscribe', async () => {
    await person('Ada <3', 'Ada@Example.com', 'ada@home.example')
    await person('Grace', 'grace@example.com', 'ADA@example.com')
    const id = await campaign()
    const answer = await run(id)
    expect([answer.status, answer.body.message]).toEqual([202, 'Campaign queued.'])
    expect(answer.body.data.stats).toMatchObject({ queued: 0, last_run_at: start })
    expect(server.events()).toEqual(['marketing.campaign.run.before', 'marketing.campaign.run.after'])
    expect(smtp.received).toEqual([])
    await server.work()
    expect(recipients()).toEqual(['ada@example.com', 'grace@example.com'])
    expect(server.events()).toEqual(
      Array.from({ length: 2 }, () => 'marketing.send.create.before').concat(
        Array.from({ length: 2 }, () => 'marketing.send.create.after'),
      ),
    )
    const none = { queued: 0, sending: 0, failed: 0, suppressed: 0, uncertain: 0 }
    expect(await stats(id)).toEqual({ ...none, sent: 2, last_run_at: start })
    const history = await server.admin.get(`${campaigns}/${id}/history`)
    expect(history.body.data[0]).toMatchObject({ name: 'marketing.campaign.run.after', actor: { id: 1 } })
    const logged = await server.store.db.selectFrom('events').selectAll().where('entity_type', '=', 'sends').execute()
    expect(new Set(logged.map(({ origin, related_id }) => `${origin} ${related_id}`))).toEqual(
      new Set([`campaign ${id}`]),
    )
    const [mail] = smtp.received.filter(({ to }) => to.includes('ada@example.com'))
    const { subject, html, text, headers, messageId } = await PostalMime.parse(mail?.raw ?? '')
    expect([subject, html?.includes('<p>Dear Ada &lt;3</p>')]).toEqual(['Hello Ada <3', true])
    expect(text).toContain('Dear Ada <3')
    const header = (name: string) => headers.find(({ key }) => key === name)?.value
    expect(header('list-unsubscribe')).toMatch(/^<http:\/\/localhost:8000\/u\/[\w-]{20,512}>$/)
    expect(header('list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click')
    expect(header('precedence')).toBe('bulk')
    expect(messageId).toMatch(/^<[0-9a-f-]{36}@localhost>$/)
    for (const part of [html, text]) expect(part).toMatch(/http:\/\/localhost:8000\/u\/[\w-]+/)
    expect(await sends(id, { sort: 'id' })).toMatchObject([
      { occurrence: 'once', address: 'ada@example.com', state: 'sent', error: null, sent_at: start },
      { address: 'grace@example.com' },
    ])
  })

  it('adds no footer where the template has the link', async () => {
    await person('Ada', 'ada@example.com')
    const content = '<p><a href="{% unsubscribe_url %}">No more</a></p><script>alert(1)</script>'
    await run(
      await campaign({
        email_template_id: await server.admin
          .post('/settings/email-templates', { name: 'Own', subject: 's', content })
          .then(({ body }) => body.data.id),
      }),
    )
    await server.work()
    const { html } = await PostalMime.parse(smtp.received[0]?.raw ?? '')
    expect(html?.match(/\/u\//g)).toHaveLength(1)
    expect(html).not.toMatch(/script|You get this/)
  })

  it('refuses an inactive campaign and one without a template, and queues nothing', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign({ is_active: false })
    const answer = await run(id)
    expect([answer.status, answer.body.code]).toEqual([409, 'state_conflict'])
    await server.store.db
      .updateTable('marketing_campaigns')
      .set({ is_active: 1, email_template_id: null })
      .where('id', '=', id)
      .execute()
    expect((await run(id)).body.code).toBe('state_conflict')
    expect((await run(99)).status).toBe(404)
    await server.work()
    expect([server.events(), await sends(id)]).toEqual([[], []])
  })

  it('makes the campaign newer, and who asks how far it is gets the numbers of now', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign()
    const known = async (etag = '') => server.admin.get(`${campaigns}/${id}`, { headers: { 'if-none-match': etag } })
    const before = (await known()).headers.etag
    expect((await known(before)).status).toBe(304)
    const { body, headers } = await run(id)
    expect([body.data.version, headers.etag]).toEqual([2, '"2"'])
    expect((await known(before)).status).toBe(200)
    await server.work()
    const after = await known(headers.etag)
    expect([after.status, after.body.data?.stats.sent]).toEqual([200, 1])
    expect(after.headers.etag).toMatch(/^"2-/)
    expect(
      (await server.admin.put(`${campaigns}/${id}`, { name: 'x' }, { headers: { 'if-match': '"2"' } })).status,
    ).toBe(200)
  })

  it('runs a dry run without a trace', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign()
    const answer = await server.admin.post(`${campaigns}/${id}/run`, undefined, {
      headers: { 'accord-dry-run': 'true' },
    })
    expect(answer.status).toBe(200)
    await server.work()
    expect([server.events(), await sends(id), (await stats(id)).last_run_at]).toEqual([[], [], null])
  })

  it('takes the date of the event as the occurrence, whatever day it is', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign({ marketing_event_id: await event('2026-07-01') })
    await run(id)
    await server.work()
    await run(id)
    await server.work()
    expect(await sends(id)).toMatchObject([{ occurrence: '2026-07-01', state: 'sent' }])
    expect(smtp.received).toHaveLength(1)
  })

  it('leaves out the one mail a listener refuses, and the run it refuses', async () => {
    await person('Ada', 'ada@example.com')
    await person('Grace', 'grace@example.com')
    const id = await campaign()
    refuses = ({ name, input }) => name === 'marketing.send.create.before' && input.address === 'ada@example.com'
    await run(id)
    await server.work()
    expect(recipients()).toEqual(['grace@example.com'])
    refuses = ({ name }) => name === 'marketing.campaign.run.before'
    expect((await run(id)).body.code).toBe('event_vetoed')
    await at('2026-03-01T23:00:00.000Z')
    await at('2026-03-02T00:06:00.000Z')
    expect(recipients()).toEqual(['grace@example.com'])
  })

  it('reads a page of persons with as many queries as one person', async () => {
    const id = await campaign()
    const owner = { user_id: 1 }
    const { body } = await server.admin.post('/contacts/organizations', { name: 'Analytical', ...owner })
    const statements = async (count: number): Promise<number> => {
      for (let index = 0; index < count; index++) await person(`P${count}.${index}`, `p${count}.${index}@example.com`)
      await server.store.db
        .updateTable('persons')
        .set({ organization_id: body.data.id, ...owner })
        .execute()
      await run(id)
      const asked = (await statementsOf(() => server.work())).filter((sql) => /^select/i.test(sql))
      return asked.filter((sql) => /campaign|suppressions|"(persons|organizations|users)"/.test(sql)).length
    }
    const noMail = (rate: number) => Object.assign(server.app.services.config, { campaignRate: rate })
    await run(id)
    await server.work()
    // With this limit, no mails are sent, so only the queueing is counted.
    noMail(1)
    const one = await statements(1)
    const many = await statements(60)
    noMail(1000)
    expect(many - one).toBeLessThanOrEqual(3)
  })
})

describe('the daily run', () => {
  it('counts queued, suppressed and failed e-mails apart', async () => {
    await person('Ada', 'ada@example.com')
    await person('Grace', 'grace@example.com')
    await person('L'.repeat(1000), 'long@example.com')
    await server.admin.post(`${marketing}/suppressions`, { address: 'grace@example.com' })
    const id = await campaign()
    const ctx = systemContext(server.app.services, 'cli')
    expect(await processNow(ctx, '2026-03-01')).toEqual({ runs: 1, queued: 2, suppressed: 1 })
    expect(await processNow(ctx, '2026-03-01')).toEqual({ runs: 1, queued: 0, suppressed: 0 })
    await server.work()
    expect(await stats(id)).toMatchObject({ queued: 0, sent: 1, suppressed: 1, failed: 1 })
  })

  it('takes campaigns of today and of no day, once a day, and no address twice', async () => {
    await person('Ada', 'ada@example.com')
    const today = await campaign({ marketing_event_id: await event('2026-03-02') })
    const { body } = await server.admin.post(`${marketing}/events`, {
      name: 'Later',
      description: 'x',
      date: '2026-03-03',
    })
    const { body: open } = await server.admin.post(`${marketing}/events`, { name: 'Some day', description: 'x' })
    const more = async (changes: object) =>
      (
        await server.admin.post(campaigns, {
          name: 'x',
          subject: 's',
          is_active: true,
          email_template_id: 1,
          ...changes,
        })
      ).body.data.id
    const tomorrow = await more({ marketing_event_id: body.data.id })
    const dateless = await more({ marketing_event_id: open.data.id })
    const always = await more({})
    const inactive = await more({ is_active: false })
    await server.tick()
    const sent = async () =>
      Promise.all([today, tomorrow, dateless, always, inactive].map(async (id) => (await stats(id)).sent))
    await at('2026-03-02T00:04:00.000Z')
    expect(await sent()).toEqual([0, 0, 0, 0, 0])
    server.events()
    await at('2026-03-02T00:05:00.000Z')
    expect(await sent()).toEqual([1, 0, 1, 1, 0])
    expect(server.events().filter((name) => name === 'marketing.campaign.run.after')).toHaveLength(3)
    await at('2026-03-02T00:06:00.000Z')
    await at('2026-03-02T18:00:00.000Z')
    expect(server.events()).toEqual([])
    await at('2026-03-03T00:05:00.000Z')
    expect(await sent()).toEqual([1, 1, 1, 1, 0])
    await person('Grace', 'grace@example.com')
    await at('2026-03-04T00:05:00.000Z')
    expect(await sent()).toEqual([1, 1, 2, 2, 0])
    expect(smtp.received).toHaveLength(6)
  })

  it('takes an event that was moved to a new day as a new occurrence', async () => {
    await person('Ada', 'ada@example.com')
    const fair = await event('2026-03-02')
    const id = await campaign({ marketing_event_id: fair })
    await server.tick()
    await at('2026-03-02T00:05:00.000Z')
    await server.admin.put(`${marketing}/events/${fair}`, { date: '2026-03-05' })
    await at('2026-03-03T00:05:00.000Z')
    await at('2026-03-05T00:05:00.000Z')
    expect((await sends(id)).map(({ occurrence }: any) => occurrence)).toEqual(['2026-03-02', '2026-03-05'])
    expect(smtp.received).toHaveLength(2)
    expect(await sends(id, { occurrence: '2026-03-05' })).toHaveLength(1)
  })

  it('catches up the day before, and announces campaigns of earlier missed days', async () => {
    await person('Ada', 'ada@example.com')
    const missed = await campaign({ marketing_event_id: await event('2026-03-03') })
    const long = await server.admin.post(`${marketing}/events`, { name: 'Long', description: 'x', date: '2026-03-02' })
    const past = { name: 'past', subject: 's', is_active: true, email_template_id: 1 }
    const { body: lost } = await server.admin.post(campaigns, { ...past, marketing_event_id: long.body.data.id })
    const { body } = await server.admin.post(`${marketing}/events`, {
      name: 'On time',
      description: 'x',
      date: '2026-03-04',
    })
    const again = { name: 'x', subject: 's', is_active: true, email_template_id: 1, marketing_event_id: body.data.id }
    const { body: onTime } = await server.admin.post(campaigns, again)
    await server.tick()
    await at('2026-03-04T10:30:00.000Z')
    const sent = async () =>
      Promise.all([missed, onTime.data.id, lost.data.id].map(async (id) => (await stats(id)).sent))
    expect(await sent()).toEqual([1, 1, 0])
    const announced = () => server.seen.filter(({ name }) => name === 'marketing.campaign.missed')
    expect(announced().map(({ entityId }) => entityId)).toEqual([lost.data.id])
    await at('2026-03-05T00:05:00.000Z')
    expect([await sent(), announced().length]).toEqual([[1, 1, 0], 1])
  })

  it.each([
    ['the night that has no 02:05 and 23 hours', '2026-03-29', '2026-03-28T22:05:00.000Z', '2026-03-28T23:05:00.000Z'],
    [
      'the night that has 02:05 twice and 25 hours',
      '2026-10-25',
      '2026-10-24T21:05:00.000Z',
      '2026-10-24T22:05:00.000Z',
    ],
  ])('runs once, at 00:05 of the installation, in %s', async (_night, day, before, due) => {
    Object.assign(server.app.services.config, { timezone: 'Europe/Berlin' })
    await person('Ada', 'ada@example.com')
    const id = await campaign({ marketing_event_id: await event(day) })
    await server.tick()
    await at(before)
    expect((await stats(id)).sent).toBe(0)
    await at(due)
    expect(await sends(id)).toMatchObject([{ occurrence: day, state: 'sent' }])
    server.events()
    for (let hour = 0; hour < 23; hour++) {
      server.clock.advanceMs(60 * minute)
      await server.tick()
      await server.work()
    }
    expect(server.events()).toEqual([])
    Object.assign(server.app.services.config, { timezone: 'UTC' })
  })
})

describe('the pace', () => {
  it('is that of ACCORD_CAMPAIGN_RATE over all campaigns, from minute to minute', async () => {
    for (let index = 0; index < 4; index++) await person(`P${index}`, `p${index}@example.com`)
    Object.assign(server.app.services.config, { campaignRate: 3 })
    const first = await campaign()
    const { body } = await server.admin.post(campaigns, {
      name: 'x',
      subject: 's',
      is_active: true,
      email_template_id: 1,
    })
    await run(first)
    await run(body.data.id)
    await server.work()
    expect(smtp.received).toHaveLength(3)
    await server.work()
    server.clock.advanceMs(minute - 1)
    await server.work()
    // A restarted worker does not start again from the beginning.
    await server.store.db.updateTable('jobs').set({ run_at: start }).execute()
    await createWorker(server.app.services, jobs, []).drain()
    expect(smtp.received).toHaveLength(3)
    server.clock.advanceMs(1)
    await server.work()
    expect(smtp.received).toHaveLength(6)
    server.clock.advanceMs(10 * minute)
    await server.work()
    expect(smtp.received).toHaveLength(8)
    expect(new Set(recipients()).size).toBe(4)
    Object.assign(server.app.services.config, { campaignRate: 1000 })
  })
})

describe('sending', () => {
  it('tries again what the server did not take now, 1, 5, 30 and 120 minutes later, then gives up', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign()
    smtp.behave('greylist')
    await run(id)
    await server.work()
    for (const minutes of [1, 5, 30, 120]) {
      expect(await sends(id)).toMatchObject([{ state: 'queued', error: expect.stringMatching(/Come back later/) }])
      server.clock.advanceMs(minutes * minute - 1)
      await server.work()
      const { attempts } = await server.store.db
        .selectFrom('campaign_sends')
        .select('attempts')
        .executeTakeFirstOrThrow()
      expect(attempts).toBe([1, 5, 30, 120].indexOf(minutes) + 1)
      server.clock.advanceMs(1)
      await server.work()
    }
    expect(await sends(id)).toMatchObject([{ state: 'failed', error: expect.stringMatching(/Come back later/) }])
    smtp.behave('accept')
    server.clock.advanceMs(24 * 60 * minute)
    await run(id)
    await server.work()
    expect(smtp.received).toEqual([])
  })

  it('does not try again what the server refuses, and goes on with the others', async () => {
    await person('Ada', 'ada@example.com')
    await person('Grace', 'grace@example.com')
    const id = await campaign()
    smtp.behave({ refuseRecipient: 'ada@example.com' })
    await run(id)
    await server.work()
    expect(await sends(id)).toMatchObject([
      { state: 'failed', error: expect.stringMatching(/unknown here/), sent_at: null },
      { state: 'sent', error: null },
    ])
    expect(await stats(id)).toMatchObject({ queued: 0, sent: 1, failed: 1 })
  })

  it('outlives an outage: what was taken before is not sent again after', async () => {
    for (let index = 0; index < 5; index++) await person(`P${index}`, `p${index}@example.com`)
    Object.assign(server.app.services.config, { campaignRate: 2 })
    const id = await campaign()
    await run(id)
    await server.work()
    smtp.behave({ reply: 451, at: 'mail' })
    server.clock.advanceMs(minute)
    await server.work()
    expect(await stats(id)).toMatchObject({ queued: 3, sent: 2 })
    smtp.behave('accept')
    for (let minutes = 0; minutes < 5; minutes++) {
      server.clock.advanceMs(minute)
      await server.work()
    }
    expect(await stats(id)).toMatchObject({ queued: 0, sent: 5, failed: 0 })
    expect(recipients()).toEqual([0, 1, 2, 3, 4].map((index) => `p${index}@example.com`))
    Object.assign(server.app.services.config, { campaignRate: 1000 })
  })

  it('waits while the campaign is not active, and goes on when it is again', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign()
    await run(id)
    await server.admin.put(`${campaigns}/${id}`, { is_active: false })
    await server.work()
    server.clock.advanceMs(60 * minute)
    await server.work()
    expect([smtp.received, (await stats(id)).queued]).toEqual([[], 1])
    await server.admin.put(`${campaigns}/${id}`, { is_active: true })
    await server.work()
    expect([smtp.received.length, (await stats(id)).sent]).toEqual([1, 1])
  })

  it.runIf(!isPostgres)('costs nothing for what waits for campaigns that are not active', async () => {
    await person('Ada', 'ada@example.com')
    await run(await campaign())
    const seen = await statementsOf(() => server.work())
    const takes = new Set(
      seen.filter((text) => /from "marketing_campaigns" .*"campaign_sends" as "waiting"/.test(text)),
    )
    const plans = await Promise.all(
      seen
        .filter((text) => /^select .*"campaign_sends"/.test(text) && text.includes('"marketing_campaigns"."status"'))
        .map((text) =>
          sql.raw<{ detail: string }>(`explain query plan ${text.replaceAll('?', 'null')}`).execute(server.store.db),
        ),
    )
    const steps = plans
      .flatMap(({ rows }) => rows.map(({ detail }) => detail))
      .filter((step) => !/BY|SUBQUERY/.test(step))
    expect([takes.size, smtp.received.length]).toEqual([2, 1])
    expect(
      steps.filter((step) => !/marketing_campaigns|rowid=\?|campaign_id=\? AND state=\? AND run_at/.test(step)),
    ).toEqual([])
  })

  it('does not send late what was for a day, unless it was run after that day', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign({ marketing_event_id: await event('2026-03-02') })
    await run(id)
    await server.admin.put(`${campaigns}/${id}`, { is_active: false })
    await server.work()
    server.clock.set('2026-03-03T00:00:00.000Z')
    await server.admin.put(`${campaigns}/${id}`, { is_active: true })
    await server.work()
    expect(smtp.received).toEqual([])
    expect(await sends(id)).toMatchObject([
      { state: 'failed', error: expect.stringMatching(/^Too late/), sent_at: null },
    ])
    await person('Grace', 'grace@example.com')
    await run(id)
    await server.work()
    expect(recipients()).toEqual(['grace@example.com'])
  })

  it('goes on at its pace when the day ends before all is sent', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign({ marketing_event_id: await event('2026-03-02') })
    await run(id)
    server.clock.set('2026-03-03T00:00:00.000Z')
    await server.work()
    expect(recipients()).toEqual(['ada@example.com'])
  })

  it('sends on the day itself what waited until then', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign({ marketing_event_id: await event('2026-03-02') })
    await run(id)
    await server.admin.put(`${campaigns}/${id}`, { is_active: false })
    await server.work()
    server.clock.set('2026-03-02T23:59:59.000Z')
    await server.admin.put(`${campaigns}/${id}`, { is_active: true })
    await server.work()
    expect(recipients()).toEqual(['ada@example.com'])
  })

  it('lets the mail on its way come to its end when the worker stops, and begins no other', async () => {
    await person('Ada', 'ada@example.com')
    await person('Grace', 'grace@example.com')
    const id = await campaign()
    await run(id)
    smtp.behave('slow')
    const { mailer } = server.app.services
    const { send } = mailer
    const worker = createWorker(server.app.services, jobs, [])
    await new Promise<void>((begun) => {
      mailer.send = (message, signal) => {
        const sending = send(message, signal)
        begun()
        return sending
      }
      worker.start()
    })
    await worker.stop()
    mailer.send = send
    expect(await sends(id)).toMatchObject([{ state: 'sent' }, { state: 'queued' }])
    expect(recipients()).toEqual(['ada@example.com'])
    smtp.behave('accept')
    await server.work()
    expect(recipients()).toEqual(['ada@example.com', 'grace@example.com'])
  })

  it('ends with the campaign', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign()
    await run(id)
    expect((await server.admin.delete(`${campaigns}/${id}`)).status).toBe(200)
    await server.work()
    expect(smtp.received).toEqual([])
    const jobs = await server.store.db.selectFrom('jobs').select('kind').where('kind', 'like', 'campaigns.%').execute()
    expect(jobs).toEqual([])
  })

  it('sends nothing to a person that was deleted meanwhile', async () => {
    const ada = await person('Ada', 'ada@example.com')
    Object.assign(server.app.services.config, { campaignRate: 1 })
    await person('Grace', 'grace@example.com')
    const id = await campaign()
    await run(id)
    await server.work()
    const grace = (await sends(id, { state: 'queued' }))[0]
    await server.admin.delete(`/contacts/persons/${grace.person_id}`)
    server.clock.advanceMs(minute)
    await server.work()
    expect(smtp.received).toHaveLength(1)
    expect(await sends(id)).toMatchObject([
      { person_id: ada },
      { person: null, state: 'failed', error: 'The person was deleted.' },
    ])
    Object.assign(server.app.services.config, { campaignRate: 1000 })
  })

  it('does not send mails that are too long, and says why', async () => {
    await person('Ada'.repeat(100), 'ada@example.com')
    const id = await campaign({ subject: '{%persons.name%}'.repeat(10) })
    await run(id)
    await server.work()
    expect(await sends(id)).toMatchObject([
      { state: 'failed', error: expect.stringMatching(/more than 998 characters/) },
    ])
    expect(smtp.received).toEqual([])
  })
})

describe('what is queued', () => {
  it('is sent as the campaign, the template and the person are then', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign({ subject: 'Helo {%persons.name%}' })
    await run(id)
    const ctx = systemContext(server.app.services, 'cli')
    await queueAll(ctx, { campaign_id: id, occurrence: 'once' })
    expect(await stats(id)).toMatchObject({ queued: 1 })
    await server.admin.put(`${campaigns}/${id}`, { is_active: false })
    await server.work()
    expect(smtp.received).toEqual([])
    const { body } = await server.admin.get('/contacts/persons')
    await server.admin.put(`/contacts/persons/${body.data[0].id}`, { name: 'Ada Lovelace' })
    await server.admin.put(`${campaigns}/${id}`, { subject: 'Hello {%persons.name%}', is_active: true })
    const { email_template_id: template } = (await server.admin.get(`${campaigns}/${id}`)).body.data
    await server.admin.put(`/settings/email-templates/${template}`, { content: '<p>Corrected</p>' })
    await server.work()
    const { subject, html } = await PostalMime.parse(smtp.received[0]?.raw ?? '')
    expect([subject, html?.includes('<p>Corrected</p>')]).toEqual(['Hello Ada Lovelace', true])
    expect(smtp.received).toHaveLength(1)
  })

  it('leaves out a person who refuses, counts only sent ones as sent, and takes who consents later', async () => {
    await person('Ada', 'ada@example.com')
    await person('Grace', 'grace@example.com')
    const emails = [{ value: 'edith@example.com', label: 'work' }]
    const { id: edith } = (await server.admin.post('/contacts/persons', { name: 'Edith', emails })).body.data
    await server.admin.post(`${marketing}/suppressions`, { address: 'grace@example.com' })
    const consent = async (subscribed: boolean) => {
      const answer = await server.admin.put(`/contacts/persons/${edith}`, { subscribed })
      expect(answer.status, answer.text).toBe(200)
    }
    await consent(false)
    const id = await campaign()
    await run(id)
    await server.work()
    expect(recipients()).toEqual(['ada@example.com'])
    const size = async () => (await server.admin.get(`${campaigns}/${id}/audience`)).body.data
    expect(await size()).toMatchObject({ already_sent: 1, suppressed: 1, not_subscribed: 1, reachable: 0 })
    await consent(true)
    expect(await size()).toMatchObject({ already_sent: 1, suppressed: 1, not_subscribed: 0, reachable: 1 })
    for (const _ of [1, 2]) {
      await run(id)
      await server.work()
      expect(recipients()).toEqual(['ada@example.com', 'edith@example.com'])
    }
    expect(await stats(id)).toMatchObject({ sent: 2, suppressed: 1, failed: 0 })
  })

  it('is not sent to an address that the person no longer has', async () => {
    await person('Ada', 'old@example.com')
    const id = await campaign()
    await run(id)
    const ctx = systemContext(server.app.services, 'cli')
    await queueAll(ctx, { campaign_id: id, occurrence: 'once' })
    const { body } = await server.admin.get('/contacts/persons')
    const emails = [{ value: 'new@example.com', label: 'work' }]
    await server.admin.put(`/contacts/persons/${body.data[0].id}`, { emails })
    await server.work()
    expect(smtp.received.map(({ to }) => to)).toEqual([['new@example.com']])
    expect(await sends(id, { sort: 'id' })).toMatchObject([
      { address: 'old@example.com', state: 'failed', error: 'The person no longer has this address.' },
      { address: 'new@example.com', state: 'sent' },
    ])
  })

  it('reaches a person once, also when the first address is another by then', async () => {
    const ada = await person('Ada', 'ada@example.com', 'ada@home.example')
    const id = await campaign()
    await run(id)
    await server.work()
    const emails = [{ value: 'ada@home.example' }, { value: 'ada@example.com' }]
    await server.admin.put(`/contacts/persons/${ada}`, { emails })
    await run(id)
    await server.work()
    expect(recipients()).toEqual(['ada@example.com'])
  })

  it('is sent to the first address that the person has by then', async () => {
    const ada = await person('Ada', 'ada@example.com', 'ada@home.example')
    const id = await campaign()
    await run(id)
    await queueAll(systemContext(server.app.services, 'cli'), { campaign_id: id, occurrence: 'once' })
    const emails = [{ value: 'ada@home.example' }, { value: 'ada@example.com' }]
    await server.admin.put(`/contacts/persons/${ada}`, { emails })
    await server.work()
    expect(recipients()).toEqual(['ada@home.example'])
    expect(await sends(id, { sort: 'id' })).toMatchObject([
      { address: 'ada@example.com', state: 'failed', error: 'The person has another first address now.' },
      { address: 'ada@home.example', state: 'sent' },
    ])
  })
})

describe('without a mail server', () => {
  it('everything stays queued', async () => {
    const other = await startServer(optionsWith({ smtpUrl: null }))
    server = other
    try {
      await person('Ada', 'ada@example.com')
      const id = await campaign()
      await run(id)
      await server.work()
      server.clock.advanceMs(60 * minute)
      await server.work()
      expect(await stats(id)).toMatchObject({ queued: 1, sent: 0, failed: 0 })
    } finally {
      server = usual
      await other.close()
    }
  })
})

describe('unsubscribe', () => {
  const sentLink = async (): Promise<string> => {
    await person('Ada', 'ada@example.com')
    await run(await campaign())
    await server.work()
    server.events()
    return linkIn(smtp.received[0]?.raw ?? '').replace('http://localhost:8000', '/')
  }

  it('shows a page that changes nothing, and unsubscribes by a form, with one click, and without a body', async () => {
    const link = await sentLink()
    const page = await server.anonymous.get(link)
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'/)
    expect(page.headers['x-robots-tag']).toBe('noindex, nofollow')
    expect(page.text).toContain('<strong>ada@example.com</strong>')
    expect([server.events(), (await server.admin.get(`${marketing}/suppressions`)).body.data]).toEqual([[], []])
    const type = 'application/x-www-form-urlencoded'
    const done = await server.anonymous.post(link, 'List-Unsubscribe=One-Click', { headers: { 'content-type': type } })
    expect([done.status, done.text.includes('You are unsubscribed')]).toEqual([200, true])
    expect(server.events()).toEqual(['marketing.suppression.create.before', 'marketing.suppression.create.after'])
    expect((await server.admin.get(`${marketing}/suppressions`)).body.data).toMatchObject([
      { address: 'ada@example.com', reason: 'unsubscribed' },
    ])
    const body = '--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n'
    const form = await server.anonymous.post(link, body, {
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
    })
    const bare = await server.anonymous.post(link)
    const others = ['application/json', 'text/plain', 'application/octet-stream', 'nonsense'].map((type) =>
      server.anonymous.post(link, 'List-Unsubscribe=One-Click', { headers: { 'content-type': type } }),
    )
    const statuses = (await Promise.all(others)).map(({ status }) => status)
    expect([form.status, bare.status, ...statuses, server.events()]).toEqual([200, 200, 200, 200, 200, 200, []])
  })

  it('works when the campaign and the person are gone, and years later', async () => {
    const link = await sentLink()
    for (const { id } of (await server.admin.get(campaigns)).body.data) await server.admin.delete(`${campaigns}/${id}`)
    for (const { id } of (await server.admin.get('/contacts/persons')).body.data)
      await server.admin.delete(`/contacts/persons/${id}`)
    server.clock.set('2031-01-01T00:00:00.000Z')
    expect((await server.anonymous.post(link)).status).toBe(200)
  })

  it('is 404 for every other text: changed, cut, longer, sealed for something else', async () => {
    const link = await sentLink()
    const { encryption } = server.app.services
    const other = Buffer.from(encryption.encrypt('ada@example.com'), 'base64').toString('base64url')
    const flipped = link.slice(0, -3) + (link.at(-3) === 'A' ? 'B' : 'A') + link.slice(-2)
    for (const wrong of ['//u/x', '//u/example', flipped, link.slice(0, -1), `${link}A`, `${link}=`, `//u/${other}`]) {
      expect([wrong, (await server.anonymous.get(wrong)).status]).toEqual([wrong, 404])
      expect((await server.anonymous.post(wrong)).status).toBe(404)
    }
    expect(server.events()).toEqual([])
  })

  it('reads no body for a link that was not given out, and none that is longer than such a form', async () => {
    const link = await sentLink()
    const long = `List-Unsubscribe=${'x'.repeat(5000)}`
    const types = ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']
    const part = (text: string) =>
      `--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\n${text}\r\n--x--\r\n`
    for (const type of types) {
      const ask = (url: string, text: string) =>
        server.anonymous.post(url, type === types[0] ? text : part(text), { headers: { 'content-type': type } })
      expect([type, (await ask(link, long)).status]).toEqual([type, 413])
      expect([type, (await ask('//u/example', 'x=1')).status]).toEqual([type, 404])
    }
    expect(await server.store.db.selectFrom('suppressions').select('id').execute()).toEqual([])
  })

  it('is limited per IP address, and invalid links do not count', async () => {
    const link = await sentLink()
    for (let call = 0; call < 120; call++) {
      await server.anonymous.post('//u/example')
      expect((await server.anonymous.post(link)).status).toBe(200)
    }
    const { status, headers } = await server.anonymous.post(link)
    expect([status, Number(headers['retry-after'])]).toEqual([429, expect.any(Number)])
    server.clock.advanceMs(minute)
    expect((await server.anonymous.post(link)).status).toBe(200)
  })

  it('escapes what stands in an address', async () => {
    const { unsubscribeToken } = await import('../../src/resources/marketing/unsubscribe.ts')
    const token = unsubscribeToken(server.app.services, '<b>"x"@example.com')
    expect((await server.anonymous.get(`//u/${token}`)).text).toContain('&lt;b&gt;&quot;x&quot;@example.com')
  })
})

describe('suppressions', () => {
  const suppressions = `${marketing}/suppressions`

  it('are addresses in lower case, each once, and can be taken back', async () => {
    const made = await server.admin.post(suppressions, { address: 'Ada@Example.com' })
    expect([made.status, made.body.data]).toMatchObject([201, { address: 'ada@example.com', reason: 'manual' }])
    expect(server.events()).toEqual(['marketing.suppression.create.before', 'marketing.suppression.create.after'])
    const twice = await server.admin.post(suppressions, { address: 'ADA@example.com', reason: 'bounced' })
    expect([twice.status, twice.body.code]).toEqual([409, 'unique_violation'])
    expect(twice.body.conflicts).toEqual([{ entity_type: 'suppressions', id: made.body.data.id, field: 'address' }])
    await server.admin.post(suppressions, { address: 'grace@example.com', reason: 'bounced' })
    const addresses = async (query: Record<string, string>) =>
      (await server.admin.get(suppressions, { query })).body.data.map(({ address }: any) => address)
    expect(await addresses({ address: 'ADA@EXAMPLE.com' })).toEqual(['ada@example.com'])
    expect(await addresses({ reason: 'bounced' })).toEqual(['grace@example.com'])
    expect(await addresses({ sort: 'address' })).toEqual(['ada@example.com', 'grace@example.com'])
    server.events()
    expect((await server.admin.delete(`${suppressions}/${made.body.data.id}`)).status).toBe(200)
    expect(server.events()).toEqual(['marketing.suppression.delete.before', 'marketing.suppression.delete.after'])
    expect((await server.admin.delete(`${suppressions}/${made.body.data.id}`)).status).toBe(404)
  })

  it('show on the persons who have the address, whose versions go up', async () => {
    const emails = [{ value: 'work@example.com' }, { value: 'Ada@Example.com' }]
    const ada = (await server.admin.post('/contacts/persons', { name: 'Ada', emails })).body.data.id
    const grace = await person('Grace', 'grace@example.com')
    const shown = async (id: number) => (await server.admin.get(`/contacts/persons/${id}`)).body.data
    server.clock.advanceMs(minute)
    const { body } = await server.admin.post(suppressions, { address: 'ada@example.com' })
    const at = body.data.created_at
    expect(await shown(ada)).toMatchObject({ unsubscribed_at: at, version: 2, updated_at: at })
    expect(await shown(grace)).toMatchObject({ unsubscribed_at: null, version: 1 })
    await server.admin.delete(`${suppressions}/${body.data.id}`)
    expect(await shown(ada)).toMatchObject({ unsubscribed_at: null, version: 3 })
  })

  it('keep addresses out of the queue, also after queueing, and a new run takes what is suppressed no more', async () => {
    await person('Ada', 'ADA@example.com')
    await person('Grace', 'grace@example.com')
    const { body } = await server.admin.post(suppressions, { address: 'ada@example.com' })
    const id = await campaign()
    await run(id)
    Object.assign(server.app.services.config, { smtpUrl: smtp.url, campaignRate: 1 })
    await person('Alan', 'alan@example.com')
    await server.work()
    expect(await sends(id)).toMatchObject([{ state: 'suppressed' }, { state: 'sent' }, { state: 'queued' }])
    await server.admin.post(suppressions, { address: 'alan@example.com' })
    server.clock.advanceMs(minute)
    await server.work()
    expect(await stats(id)).toMatchObject({ queued: 0, sent: 1, suppressed: 2 })
    await server.admin.delete(`${suppressions}/${body.data.id}`)
    server.clock.advanceMs(minute)
    await server.work()
    expect(recipients()).toEqual(['grace@example.com'])
    await run(id)
    server.clock.advanceMs(minute)
    await server.work()
    expect(recipients()).toEqual(['ada@example.com', 'grace@example.com'])
    Object.assign(server.app.services.config, { campaignRate: 1000 })
  })
})

describe('previewCampaign', () => {
  it('fills in for a person, counts addresses, names the next day, and changes nothing', async () => {
    const ada = await person('Ada', 'ada@example.com', 'ada@home.example')
    const grace = await person('Grace', 'grace@example.com', 'ada@example.com')
    await server.admin.post('/contacts/persons', { name: 'Unreachable' })
    await server.admin.post(`${marketing}/suppressions`, { address: 'grace@example.com' })
    const id = await campaign({ subject: 'Hello {%persons.name%} {%persons.nothing%}' })
    const preview = async (query = '') => (await server.admin.get(`${campaigns}/${id}/preview${query}`)).body.data
    expect(await preview()).toEqual({
      subject: 'Hello Ada ',
      content: expect.stringMatching(/^<p>Dear Ada<\/p>.*http:\/\/localhost:80\/u\/example/),
      person_id: ada,
      recipients: 1,
      suppressed: 1,
      not_subscribed: 0,
      already_sent: 0,
      without_address: 1,
      is_complete: true,
      next_run: '2026-03-02',
      unknown_placeholders: ['persons.nothing'],
    })
    expect((await preview(`?person_id=${grace}`)).subject).toBe('Hello Grace ')
    expect((await server.admin.get(`${campaigns}/${id}/preview?person_id=99`)).status).toBe(422)
    await run(id)
    await server.work()
    expect(await preview()).toMatchObject({ recipients: 0, suppressed: 1, already_sent: 1 })
    await server.admin.put(`${campaigns}/${id}`, { is_active: false })
    expect((await preview()).next_run).toBeNull()
  })

  it('looks addresses up a portion at a time and gives others their turn', async () => {
    const id = await campaign()
    const turns = async () => {
      let count = 0
      let next = setImmediate(function again() {
        count++
        next = setImmediate(again)
      })
      const { body } = await server.admin.get(`${campaigns}/${id}/preview`)
      clearImmediate(next)
      return { count, recipients: body.data.recipients }
    }
    const few = await turns()
    await server.store.db
      .insertInto('persons')
      .values(
        Array.from({ length: 2000 }, (_, index) => ({
          name: `P${index}`,
          name_key: `p${index}`,
          emails: JSON.stringify([{ value: `p${index}@example.com` }, { value: 'all@example.com' }]),
          contact_numbers: '[]',
          created_at: start,
          updated_at: start,
        })),
      )
      .execute()
    const many = await turns()
    expect([few.recipients, many.recipients]).toEqual([0, 2000])
    expect(many.count - few.count).toBeGreaterThanOrEqual(10)
  })

  it('knows the day of an event, before and after it', async () => {
    const id = await campaign({ marketing_event_id: await event('2026-03-05') })
    const next = async () => (await server.admin.get(`${campaigns}/${id}/preview`)).body.data.next_run
    expect(await next()).toBe('2026-03-05')
    server.clock.set('2026-03-05T00:04:59.000Z')
    expect(await next()).toBe('2026-03-05')
    server.clock.set('2026-03-05T00:05:00.000Z')
    expect(await next()).toBeNull()
  })

  it('is said when a campaign is saved after the run of the day of its event, until it has run', async () => {
    const body = {
      ...{ name: 'Late', subject: 'Hello', is_active: true },
      email_template_id: await template(),
      marketing_event_id: await event('2026-03-01'),
    }
    const made = await server.admin.post(campaigns, body)
    expect(made.body.meta.warnings).toEqual([
      {
        field: 'marketing_event_id',
        message: 'The daily run of 2026-03-01, the day of its event, is over. Call runCampaign to send it now.',
      },
    ])
    const { id } = made.body.data
    const change = async (changes: object) => (await server.admin.put(`${campaigns}/${id}`, changes)).body.meta
    expect(await change({ is_active: false })).toBeUndefined()
    expect((await change({ is_active: true })).warnings).toHaveLength(1)
    await run(id)
    expect(await change({ subject: 'Hello again' })).toBeUndefined()
  })

  it('shows no person whom the caller may not see, nor does the ledger', async () => {
    await person('Ada', 'ada@example.com')
    const id = await campaign()
    await run(id)
    await server.work()
    const viewer = await addUser(server, 'Eve', { view: 'individual' })
    const { body } = await viewer.get(`${campaigns}/${id}/preview`)
    expect(body.data).toMatchObject({ person_id: null, subject: 'Hello ' })
    expect((await viewer.get(`${campaigns}/${id}/preview?person_id=1`)).status).toBe(422)
    const ledger = await viewer.get(`${campaigns}/${id}/sends`)
    expect([ledger.body.data, ledger.body.meta.total]).toEqual([[], 0])
  })
})
