// /metrics for Prometheus: stable names, few labels, access only for this machine and for tokens
// that may see reports, and no cost for other requests.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { createMailer } from '../../src/mail/outbound.ts'
import { startServer, type TestServer } from '../support/app.ts'
import { given } from '../support/given.ts'
import { listeningServer } from '../support/listening.ts'
import { useReceiver, useSmtp } from '../support/outside.ts'
import { someone } from '../support/people.ts'
import { useNewServers } from '../support/using.ts'

const receiver = useReceiver()
const smtp = useSmtp()
const server = useNewServers(() => ({
  mailer: createMailer({ url: smtp.url, domain: 'localhost' }),
  config: { webhookAllowHttp: true, webhookAllowCidrs: ['127.0.0.1/32'] },
}))
afterEach(() => {
  server.app.services.mailer.close()
})

/** Returns the values by name and labels, as written in the text. */
function read(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}
/** Advances the clock, because values from the database are cached for five seconds. */
async function scrape(of: TestServer = server): Promise<Map<string, number>> {
  of.clock.advanceMs(5000)
  const { status, text } = await of.anonymous.get('//metrics')
  expect(status, text).toBe(200)
  return read(text)
}
const count = (operation: string, method: string, status: number): string =>
  `accord_http_request_duration_seconds_count{operation="${operation}",method="${method}",status="${status}"}`

describe('getMetrics', () => {
  it('speaks the text format, each figure with its help, all of them ours by name', async () => {
    const { headers, text } = await server.anonymous.get('//metrics')
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(headers['cache-control']).toBe('no-store')
    const names = [...read(text).keys()].map((key) => key.replace(/\{.*/, ''))
    expect(names.filter((name) => !/^accord_[a-z_]+$/.test(name))).toEqual([])
    const helped = new Set([...text.matchAll(/^# HELP (\S+)/gm)].map(([, name]) => name))
    expect(names.filter((name) => !helped.has(name) && !helped.has(name.replace(/_(bucket|sum|count)$/, '')))).toEqual(
      [],
    )
    expect(helped.size).toBe([...text.matchAll(/^# HELP /gm)].length)
  })

  it('counts requests by operation, method and status, and never by path or query', async () => {
    await server.admin.get('/leads')
    await server.admin.get('/leads')
    await server.admin.get('/leads/424242')
    await server.inject({ method: 'HEAD', url: '/api/admin/leads?name=Ada' })
    await server.anonymous.get('//wp-login.php')
    await server.anonymous.get('//%zz')
    await server.anonymous.post('/leads/7', {})
    await server.inject({ method: 'PROPFIND', url: '/secret-path' })
    const figures = await scrape()
    expect(figures.get(count('listLeads', 'GET', 200))).toBe(2)
    expect(figures.get(count('getLead', 'GET', 404))).toBe(1)
    expect(figures.get(count('listLeads', 'HEAD', 401))).toBe(1)
    expect(figures.get(count('none', 'GET', 404))).toBe(1)
    expect(figures.get(count('none', 'GET', 400))).toBe(1)
    expect(figures.get(count('none', 'POST', 405))).toBe(1)
    expect(figures.get(count('none', 'other', 404))).toBe(1)
    expect([...figures.keys()].filter((key) => /424242|wp-login|secret|Ada|zz/.test(key))).toEqual([])
    expect(figures.get('accord_http_requests_in_work')).toBe(1)
  })

  it('tells of what waits: jobs by kind and state, the age of the one due longest, and how far readers are behind', async () => {
    await given(server.admin).lead()
    const { body } = await server.admin.post('/emails', { subject: 'A', html: 'b', to: ['ada@example.com'] })
    expect(body.data.status).toBe('queued')
    server.clock.advanceMs(85_000)
    const before = await scrape()
    expect(before.get('accord_jobs{kind="emails.send",state="waiting"}')).toBe(1)
    expect(before.get('accord_jobs_oldest_due_age_seconds')).toBe(90)
    const reader = 'accord_event_reader_lag_events{reader="webhooks"}'
    expect(before.get(reader)).toBeGreaterThan(0)
    expect(before.get(reader.replace('events{', 'seconds{'))).toBe(90)
    expect(before.get('accord_mails_total{outcome="sent"}')).toBe(0)
    await server.work()
    server.clock.advanceMs(5000)
    await server.work()
    const after = await scrape()
    expect(after.has('accord_jobs{kind="emails.send",state="waiting"}')).toBe(false)
    expect(after.get('accord_jobs_oldest_due_age_seconds')).toBe(0)
    expect(after.get(reader)).toBe(0)
    expect(after.get('accord_mails_total{outcome="sent"}')).toBe(1)
  })

  it('counts mails that were refused for good apart from those that are tried again', async () => {
    const letter = { subject: 'A', html: 'b', to: ['ada@example.com'] }
    smtp.behave('refuse')
    await server.admin.post('/emails', letter)
    await server.work()
    smtp.behave('greylist')
    await server.admin.post('/emails', letter)
    await server.work()
    const figures = await scrape()
    expect(figures.get('accord_mails_total{outcome="refused"}')).toBe(1)
    expect(figures.get('accord_mails_total{outcome="deferred"}')).toBe(1)
    expect(figures.get('accord_mails_total{outcome="sent"}')).toBe(0)
  })

  it('counts deliveries to webhooks by what became of them', async () => {
    const hook = { name: 'Hook', url: `${receiver.url}/hooks`, events: ['lead.create.after'] }
    expect((await server.admin.post('/settings/webhooks', hook)).status).toBe(201)
    await given(server.admin).lead()
    await server.work()
    receiver.behave({ mode: 'status', status: 500 })
    await given(server.admin).lead()
    await server.work()
    const figures = await scrape()
    expect(figures.get('accord_webhook_deliveries_total{outcome="succeeded"}')).toBe(1)
    expect(figures.get('accord_webhook_deliveries_total{outcome="failed"}')).toBe(1)
  })

  it('counts what one server did for itself, also with several in one process', async () => {
    const other = await startServer()
    await other.admin.get('/leads')
    expect((await scrape()).has(count('listLeads', 'GET', 200))).toBe(false)
    expect((await scrape(other)).get(count('listLeads', 'GET', 200))).toBe(1)
    await other.close()
  })

  it('queries the database once in five seconds, however many requests come; counters are always current', async () => {
    await scrape()
    await server.admin.post('/emails', { subject: 'A', html: 'b', to: ['ada@example.com'] })
    const soon = read((await server.anonymous.get('//metrics')).text)
    expect(soon.has('accord_jobs{kind="emails.send",state="waiting"}')).toBe(false)
    expect(soon.get(count('createEmail', 'POST', 201))).toBe(1)
    expect((await scrape()).get('accord_jobs{kind="emails.send",state="waiting"}')).toBe(1)
  })

  it('tells when the scheduler has looked', async () => {
    expect((await scrape()).has('accord_scheduler_last_run_timestamp_seconds')).toBe(false)
    const at = server.clock.now().getTime() / 1000
    await server.tick()
    const figures = await scrape()
    expect(figures.get('accord_scheduler_last_run_timestamp_seconds')).toBe(at)
    expect(figures.has('accord_schedule_last_due_timestamp_seconds{schedule="prune"}')).toBe(true)
  })
})

describe('who is told', () => {
  const ask = (headers: Record<string, string> = {}, remoteAddress = '127.0.0.1') =>
    server.inject({
      method: 'GET',
      url: '/metrics',
      remoteAddress,
      headers: { accept: 'application/json', ...headers },
    })
  const status = async (...call: Parameters<typeof ask>): Promise<number> => (await ask(...call)).statusCode

  it('this machine, by each of its own addresses', async () => {
    expect(await status({}, '127.0.0.1')).toBe(200)
    expect(await status({}, '127.8.9.1')).toBe(200)
    expect(await status({ host: '[::1]:8000' }, '::1')).toBe(200)
    expect(await status({ host: '127.0.0.1:8000' }, '::ffff:127.0.0.1')).toBe(200)
  })

  it('no other caller, nor one for whom a proxy on this machine calls', async () => {
    expect(await status({}, '192.0.2.7')).toBe(401)
    expect(await status({}, '10.0.0.1')).toBe(401)
    for (const name of ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-real-ip', 'forwarded', 'via'])
      expect([name, await status({ [name]: '127.0.0.1' })]).toEqual([name, 401])
    expect(await status({ host: 'crm.example.com' })).toBe(401)
    expect(await status({ host: 'localhost.example.com' })).toBe(401)
  })

  it('no stranger who says through a trusted proxy to be this machine', async () => {
    const proxied = await startServer({ config: { trustedProxies: ['127.0.0.1'] } })
    const call = (headers: Record<string, string>) =>
      proxied.inject({ method: 'GET', url: '/metrics', headers: { accept: 'application/json', ...headers } })
    expect((await call({ 'x-forwarded-for': '127.0.0.1' })).statusCode).toBe(401)
    expect((await call({ 'x-forwarded-for': '192.0.2.7' })).statusCode).toBe(401)
    expect((await call({ host: 'localhost:8000' })).statusCode).toBe(401)
    expect((await call({})).statusCode).toBe(401)
    const { token } = await proxied.as(1, ['reports:read'])
    expect((await call({ authorization: `Bearer ${token}` })).statusCode).toBe(200)
    await proxied.close()
    const elsewhere = await startServer({ config: { trustedProxies: ['127.0.0.2', '10.0.0.0/8'] } })
    expect((await elsewhere.anonymous.get('//metrics')).status).toBe(200)
    await elsewhere.close()
  })

  it('a token that may see reports, from anywhere', async () => {
    const bearer = (token: string | null) => ({ authorization: `Bearer ${token}` })
    const from = '192.0.2.7'
    expect(await status(bearer((await server.as(1, ['reports:read'])).token), from)).toBe(200)
    expect(await status(bearer((await server.as(1, ['*:read'])).token), from)).toBe(200)
    const unable = await ask(bearer((await server.as(1, ['leads:read'])).token), from)
    expect([unable.statusCode, unable.json().required]).toEqual([403, 'reports:read'])
    const { caller: able } = await someone(server, ['dashboard'])
    expect(await status(bearer(able.token), from)).toBe(200)
    const { caller: without } = await someone(server, ['leads'])
    const refused = await ask(bearer(without.token), from)
    expect([refused.statusCode, refused.json().required]).toEqual([403, 'dashboard'])
    expect(await status(bearer('1|not-a-token-of-this-server'), from)).toBe(401)
    expect(await status({ authorization: 'Basic YTpi' }, from)).toBe(401)
  })
})

describe('a server that listens', () => {
  it('tells of its process, its connections, its database and its disk, and watches nothing any more once it is closed', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'accord-mails-'))
    const running = await listeningServer({ worker: true, smtpUrl: `file:${dir}` })
    const text = await (await fetch(`${running.url}/metrics`)).text()
    const figures = read(text)
    for (const name of [
      'process_resident_memory_bytes',
      'nodejs_heap_size_used_bytes',
      'nodejs_external_memory_bytes',
      'process_cpu_seconds_total',
      'process_start_time_seconds',
      'http_connections',
      'database_bytes{part="data"}',
      'database_bytes{part="log"}',
      'disk_free_bytes',
      'disk_size_bytes',
      'tokens',
      'sessions',
      'worker_up',
    ])
      expect([name, figures.has(`accord_${name}`)]).toEqual([name, true])
    expect(figures.get('accord_nodejs_eventloop_lag_p99_seconds')).toBeGreaterThanOrEqual(0)
    expect(text).toMatch(/^accord_build_info\{version="[^"]+",node="[^"]+"\} 1$/m)
    expect(text).toMatch(/^accord_nodejs_active_resources\{type="TCPServerWrap"\} \d+$/m)
    await running.close()
    expect(await running.app.services.metrics.text()).not.toContain('accord_nodejs_heap_size_used_bytes')
    rmSync(dir, { recursive: true })
  })
})
