// A campaign mail is sent automatically at most once. A mail that may have arrived
// becomes `uncertain`, and a user can resend it. test/flows/campaigns.test.ts kills processes.
import { beforeEach, describe, expect, it } from 'vitest'
import { jobs } from '../../src/background.ts'
import { createWorker } from '../../src/jobs/worker.ts'
import { type Caller, start } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useSmtp } from '../support/outside.ts'
import { someone } from '../support/people.ts'
import type { SmtpMode } from '../support/smtp.ts'
import { until } from '../support/until.ts'
import { useServer } from '../support/using.ts'

const campaigns = '/settings/marketing/campaigns'
const minuteMs = 60_000

const warnings: object[] = []
const smtp = useSmtp()
const server = useServer(
  () => ({ config: { smtpUrl: smtp.url, campaignRate: 1000 } }),
  async (server) => {
    server.app.services.log.warn = (about) => void warnings.push(about)
  },
)
beforeEach(() => {
  warnings.length = 0
})

/** Creates and starts a campaign for these addresses. */
async function running(...addresses: string[]): Promise<number> {
  for (const value of addresses) await given(server.admin).person({ emails: [{ value, label: 'work' }] })
  const template = { name: 'Spring', subject: 'Unused', content: '<p>Dear {%persons.name%}</p>' }
  const made = await server.admin.post('/settings/email-templates', template)
  const sent = { name: 'Spring', subject: 'Hello', is_active: true, email_template_id: made.body.data.id }
  const { id } = (await server.admin.post(campaigns, sent)).body.data
  expect((await server.admin.post(`${campaigns}/${id}/run`)).status).toBe(202)
  server.events()
  return id
}
const sends = async (id: number, query: Record<string, string> = {}) =>
  (await server.admin.get(`${campaigns}/${id}/sends`, { query: { sort: 'id', ...query } })).body.data
const stats = async (id: number) => (await server.admin.get(`${campaigns}/${id}`)).body.data.stats
const rows = () => server.store.db.selectFrom('campaign_sends').selectAll().orderBy('id').execute()
const resend = (id: number, send: number, caller: Caller = server.admin) =>
  caller.post(`${campaigns}/${id}/sends/${send}/resend`)
const messageIds = () => smtp.received.map(({ raw }) => /^Message-ID: *<([^>]+)>/im.exec(raw)?.[1])
/** Advances the clock past all possible retries. */
async function waitLong(): Promise<void> {
  for (const minutes of [1, 5, 30, 120, 600]) {
    server.clock.advanceMs(minutes * minuteMs)
    await server.work()
  }
}
/** Creates an uncertain mail: the server accepted it but did not confirm it. */
async function uncertain(address = 'ada@example.com'): Promise<{ id: number; send: number }> {
  const id = await running(address)
  smtp.behave('half-accept')
  await server.work()
  smtp.behave('accept')
  const [send] = await sends(id)
  return { id, send: send.id }
}

describe('a mail of a campaign that may have arrived', () => {
  it('is uncertain when the mail server took it without saying so, and is not sent again by itself', async () => {
    const { id } = await uncertain()
    await waitLong()
    expect(smtp.received).toHaveLength(1)
    expect(await stats(id)).toMatchObject({ queued: 0, sent: 0, failed: 0, uncertain: 1 })
    expect(await sends(id, { state: 'uncertain' })).toMatchObject([
      { state: 'uncertain', error: expect.stringContaining('It may have arrived.'), sent_at: null },
    ])
    expect(await sends(id, { state: 'queued,sent,failed,suppressed' })).toEqual([])
    // A second run does not send it either.
    await server.admin.post(`${campaigns}/${id}/run`)
    await waitLong()
    expect(smtp.received).toHaveLength(1)
  })

  it('is uncertain when its worker ended, is logged without its address, and the others go out', async () => {
    const id = await running('ada@example.com', 'grace@example.com')
    smtp.behave('greylist')
    await server.work()
    // Simulates a worker that was killed after it claimed the mail.
    const killed = server.store.db.updateTable('campaign_sends').set({ run_at: null, state: 'sending' })
    await killed.where('address', '=', 'ada@example.com').execute()
    smtp.behave('accept')
    warnings.length = 0
    await waitLong()
    const [ada, grace] = await sends(id)
    expect([ada, grace]).toMatchObject([
      { state: 'uncertain', error: 'The worker ended while it sent the e-mail.' },
      { state: 'sent', error: null },
    ])
    expect(smtp.received.map(({ to }) => to)).toEqual([['grace@example.com']])
    expect(warnings).toContainEqual({ sends: [ada.id], count: 1 })
    expect(JSON.stringify(warnings)).not.toContain('example.com')
  })

  it('is tried again when the mail server has not had all of it', async () => {
    const id = await running('ada@example.com')
    for (const mode of ['greylist', { reply: 451, at: 'data' }] as const) {
      smtp.behave(mode)
      await server.work()
      expect(await stats(id)).toMatchObject({ queued: 1, uncertain: 0 })
      server.clock.advanceMs(5 * minuteMs)
    }
    smtp.behave('accept')
    await server.work()
    expect([smtp.received.length, await stats(id)]).toMatchObject([1, { sent: 1, uncertain: 0 }])
  })
})

describe('a worker that has lost its lease', () => {
  /**
   * The first worker waits for a reply of the mail server. The second worker takes its job over.
   */
  async function takenOver(id: number, mode: SmtpMode) {
    smtp.behave(mode)
    const first = server.app.worker.drain()
    await until(async () => (await rows()).some(({ started_at }) => started_at !== null))
    // The mode must not change before this mail is accepted.
    if (mode === 'take-silently') await until(() => smtp.received.length === 1)
    server.clock.advanceMs(2 * minuteMs)
    const second = createWorker(server.app.services, jobs, [])
    await second.drain()
    expect(await stats(id)).toMatchObject({ uncertain: 1 })
    smtp.behave('accept')
    return { first, second }
  }

  it('still stores the result of its e-mail, and no other worker sends it', async () => {
    const id = await running('ada@example.com')
    let go = (): void => undefined
    const { first } = await takenOver(id, { waitFor: new Promise<void>((resolve) => (go = resolve)) })
    go()
    await first
    await waitLong()
    expect(smtp.received).toHaveLength(1)
    expect(await sends(id)).toMatchObject([{ state: 'sent', error: null, resent_at: null }])
  })

  it('says nothing once a user has sent the mail again', async () => {
    const id = await running('ada@example.com')
    const { first, second } = await takenOver(id, 'take-silently')
    const [{ id: send }] = await sends(id)
    expect((await resend(id, send)).status).toBe(202)
    await second.drain()
    // The first worker does not know whether the mail arrived. The second has already recorded it
    // as uncertain.
    smtp.disconnect()
    await first
    expect(await sends(id)).toMatchObject([{ state: 'queued' }])
    await waitLong()
    expect(new Set(messageIds()).size).toBe(1)
    expect(smtp.received).toHaveLength(2)
    expect(await sends(id)).toMatchObject([{ state: 'sent', error: null, resent_by: { id: 1 } }])
  })
})

describe('resendCampaignSend', () => {
  it('sends it once more with the same id, and says who did that', async () => {
    const { id, send } = await uncertain()
    server.events()
    const answer = await resend(id, send)
    expect([answer.status, answer.body.message]).toEqual([202, 'E-mail queued again.'])
    expect(answer.body.data).toMatchObject({
      id: send,
      state: 'queued',
      error: null,
      resent_at: start,
      resent_by: { id: 1, name: 'Example Admin' },
    })
    expect(server.seen.map(({ name, actor, origin }) => `${name} ${actor.type} ${origin}`)).toEqual([
      'marketing.send.resend.before user api',
      'marketing.send.resend.after user api',
    ])
    const feed = await server.admin.get('/events?entity_type=sends&name=marketing.send.resend.after')
    expect(feed.body.data).toMatchObject([{ entity_id: send, actor: { id: 1 } }])
    await server.work()
    const ids = messageIds()
    expect([ids.length, new Set(ids).size]).toEqual([2, 1])
    expect(await sends(id)).toMatchObject([{ state: 'sent', resent_at: start, resent_by: { id: 1 } }])
    expect(await stats(id)).toMatchObject({ sent: 1, uncertain: 0 })
  })

  it('refuses what is not uncertain, of another campaign, of an inactive one, and without the permission', async () => {
    const { id, send } = await uncertain()
    const { id: other } = (await server.admin.post(campaigns, { name: 'Other', subject: 'S', email_template_id: 1 }))
      .body.data
    expect((await resend(other, send)).status).toBe(404)
    const reader = await someone(server, ['settings', 'settings.automation', 'settings.automation.campaigns'])
    expect((await resend(id, send, reader.caller)).status).toBe(403)
    await server.admin.put(`${campaigns}/${id}`, { is_active: false })
    expect((await resend(id, send)).body).toMatchObject({
      code: 'state_conflict',
      detail: 'The campaign is not active.',
    })
    await server.admin.put(`${campaigns}/${id}`, { is_active: true })
    expect((await resend(id, send)).status).toBe(202)
    const again = await resend(id, send)
    expect([again.status, again.body.code]).toEqual([409, 'state_conflict'])
    await server.work()
    expect((await resend(id, send)).body.detail).toBe('The e-mail is sent; only an uncertain one can be sent again.')
  })

  it('is sent once when two users ask at once, and not at all to an address suppressed meanwhile', async () => {
    const { id, send } = await uncertain()
    const both = await Promise.all([resend(id, send), resend(id, send)])
    expect(both.map(({ status }) => status).sort()).toEqual([202, 409])
    await server.admin.post('/settings/marketing/suppressions', { address: 'ada@example.com' })
    await server.work()
    expect([smtp.received.length, await sends(id)]).toMatchObject([1, [{ state: 'suppressed' }]])
  })
})
