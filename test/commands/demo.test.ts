// `accord demo`: a fictional company with realistic data, and pages that show its e-mails and
// webhooks. It listens only on loopback and leaves no files behind.
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Demo, startDemo } from '../../src/commands/demo/demo.ts'
import { until } from '../support/until.ts'

const dayMs = 24 * 60 * 60_000
let demo: Demo
let now: number
let token: string

beforeAll(async () => {
  // Delays from other tests on the machine do not count as overload.
  demo = await startDemo(0, { env: 'test', logLevel: 'silent' })
  const { data } = await post('/login', {
    email: 'admin@example.com',
    password: 'accord-demo',
    device_name: 'test',
  })
  token = data.token
  now = Date.now()
}, 180_000)
afterAll(async () => {
  await demo?.close()
  expect(existsSync(demo.folder)).toBe(false)
})

/** Sends a request, and repeats it while the busy server refuses it. */
async function ask(path: string, options: RequestInit): Promise<Response> {
  for (;;) {
    const answer = await fetch(`${demo.url}/api/admin${path}`, options)
    if (answer.status !== 503) return answer
    await setTimeout(1_000)
  }
}

const post = async (path: string, body: object) => {
  const headers = { accept: 'application/json', 'content-type': 'application/json', authorization: `Bearer ${token}` }
  const answer = await ask(path, { method: 'POST', headers, body: JSON.stringify(body) })
  return (await answer.json()) as { data: any }
}

async function list(path: string): Promise<any[]> {
  const headers = { accept: 'application/json', authorization: `Bearer ${token}` }
  const answer = await ask(path, { headers })
  expect([path, answer.status]).toEqual([path, 200])
  return ((await answer.json()) as { data: any[] }).data
}

const pageOf = async (path: string): Promise<string> => (await fetch(`${demo.catcher.url}${path}`)).text()

describe('accord demo', () => {
  it('has leads in every stage, from 90 days ago until today, with times that fit their stage', async () => {
    const leads = await list('/leads?per_page=100')
    expect(new Set(leads.map((lead) => lead.lead_pipeline_stage_id))).toEqual(new Set([1, 2, 3, 4, 5, 6]))
    const created = leads.map((lead) => Date.parse(lead.created_at))
    expect(Math.min(...created)).toBeGreaterThan(now - 91 * dayMs)
    expect(Math.min(...created)).toBeLessThan(now - 80 * dayMs)
    expect(Math.max(...created)).toBeLessThanOrEqual(now)
    expect(Math.max(...created)).toBeGreaterThan(now - 8 * dayMs)
    for (const { status, closed_at, created_at, lost_reason } of leads) {
      expect(closed_at !== null).toBe(status !== 1)
      if (closed_at !== null) expect(Date.parse(closed_at)).toBeGreaterThan(Date.parse(created_at))
      expect(lost_reason !== null).toBe(status === 3)
    }
    const [history] = await list(`/leads/${leads.find(({ status }) => status === 2).id}/history`)
    expect(Date.parse(history.occurred_at ?? history.created_at)).toBeLessThanOrEqual(now)
  })

  it('has everything that a company of its kind has', async () => {
    const count = async (path: string) => (await list(`${path}?per_page=100`)).length
    expect(await count('/contacts/persons')).toBeGreaterThan(25)
    expect(await count('/contacts/organizations')).toBe(18)
    expect(await count('/quotes')).toBeGreaterThan(20)
    expect(await count('/products')).toBe(7)
    expect(await count('/tags')).toBe(6)
    const activities = await list('/activities?per_page=100')
    expect(new Set(activities.map(({ type }) => type))).toEqual(new Set(['call', 'meeting', 'lunch', 'note']))
    const ahead = activities.filter(({ schedule_from: from }) => from !== null && Date.parse(from) > now)
    expect(ahead.length).toBeGreaterThan(0)
    expect(ahead.filter(({ is_done }) => is_done)).toEqual([])
  })

  it('joins replies of customers to the e-mails that they answer', async () => {
    const emails = await demo.store.db.selectFrom('emails').select(['id', 'subject', 'parent_id', 'status']).execute()
    const replies = emails.filter(({ status }) => status === 'received')
    expect(emails.length).toBeGreaterThan(50)
    expect(replies.length).toBeGreaterThan(5)
    for (const { subject, parent_id: parent } of replies)
      expect(subject).toBe(`Re: ${emails.find(({ id }) => id === parent)?.subject}`)
  })

  it('has no work left and no job that failed', async () => {
    await until(async () => (await demo.store.db.selectFrom('jobs').select('id').execute()).length === 0)
    const failed = await demo.store.db.selectFrom('jobs').select('last_error').where('state', '=', 'buried').execute()
    expect(failed).toEqual([])
  })

  it('shows the e-mails that it sent, without running or loading anything of them', async () => {
    const mails = await pageOf('/mails')
    const [, href = ''] = /<a href="(\/mails\/[^"]+\.eml)"/.exec(mails) ?? []
    expect(mails).toContain('Meet us at AquaTech, Jonas Weber')
    const mail = await fetch(`${demo.catcher.url}${href}`)
    expect(await mail.text()).toContain('<iframe sandbox title="The e-mail"')
    expect(mail.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; img-src data:/,
    )
    const body = await fetch(`${demo.catcher.url}${href}/body`)
    expect(body.headers.get('content-security-policy')).toContain(
      "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
    )
    expect((await fetch(`${demo.catcher.url}/mails/..%2Fdata%2Fsecret`)).status).toBe(404)
  })

  it('catches the webhook of a change that a visitor makes', async () => {
    await post('/leads', { title: 'Made by <a visitor>', lead_value: 1 })
    await until(async () => (await pageOf('/webhooks')).includes('Made by &lt;a visitor&gt;'))
    const page = await pageOf('/webhooks')
    expect(page).toContain('<strong>lead.create.after</strong>')
    expect(page).toContain('webhook-signature')
  })

  it('answers on the loopback only, and to no other host name', async () => {
    expect(new URL(demo.url).hostname).toBe('127.0.0.1')
    const status = await new Promise((resolve, reject) => {
      const options = { headers: { host: 'evil.example' } }
      request(`${demo.catcher.url}/mails`, options, ({ statusCode }) => resolve(statusCode))
        .on('error', reject)
        .end()
    })
    expect(status).toBe(421)
  })
})
