// The reverse proxy of compose.cluster.yaml, with its own configuration, before two servers: both
// get requests, streams and uploads pass, and a stopped server costs no request. Needs Caddy.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { accordServing, type Serving } from '../support/accord.ts'
import { workingFolder } from '../support/installed.ts'

const hasCaddy = spawnSync('caddy', ['version']).status === 0
const password = 'correct horse battery'
const soon = { timeout: 60_000 }

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

/** The Caddyfile of the Compose file, with the addresses of this test. */
function caddyfile(url: string, servers: readonly string[]): string {
  const compose = parse(readFileSync('compose.cluster.yaml', 'utf8'), { merge: true }) as {
    configs: { caddyfile: { content: string } }
  }
  const [one = '', two = ''] = servers.map((server) => new URL(server).host)
  const own = compose.configs.caddyfile.content
    .replace(/^\$\{ACCORD_APP_URL\}/, url)
    .replace('api-1:8000', one)
    .replace('api-2:8000', two)
  return `{\n  admin off\n}\n${own}`
}

describe.runIf(hasCaddy)('the reverse proxy of compose.cluster.yaml', { timeout: 120_000 }, () => {
  let folder: string
  let place: string
  let url: string
  let token: string
  let servers: Serving[]
  let caddy: ChildProcess

  beforeAll(async () => {
    folder = await workingFolder()
    place = mkdtempSync(join(tmpdir(), 'accord-proxy-'))
    url = `http://127.0.0.1:${await freePort()}`
    const environment = {
      ...{ ACCORD_APP_URL: url, ACCORD_TRUSTED_PROXIES: '127.0.0.1/32', ACCORD_WORKER: 'off' },
      ...{ ACCORD_ADMIN_PASSWORD: password, ACCORD_LOG_LEVEL: 'info' },
    }
    servers = [await accordServing(folder, 'serve', environment), await accordServing(folder, 'serve', environment)]
    writeFileSync(
      join(place, 'Caddyfile'),
      caddyfile(
        url,
        servers.map((server) => server.url),
      ),
    )
    caddy = spawn('caddy', ['run', '--config', join(place, 'Caddyfile')], {
      env: { ...process.env, HOME: place, XDG_DATA_HOME: place, XDG_CONFIG_HOME: place },
      stdio: 'ignore',
    })
    await expect.poll(async () => (await fetch(`${url}/readyz`).catch(() => null))?.status, soon).toBe(200)
    const response = await call('POST', '/api/admin/login', {
      body: JSON.stringify({ email: 'admin@example.com', password, device_name: 'test' }),
      type: 'application/json',
    })
    token = ((await response.json()) as { data: { token: string } }).data.token
  }, 120_000)
  afterAll(async () => {
    const ended = new Promise((resolve) => caddy.once('close', resolve))
    caddy.kill('SIGTERM')
    await ended
    for (const server of servers) await server.stop('SIGKILL')
    for (const each of [folder, place]) rmSync(each, { recursive: true, force: true })
  })

  const call = (
    method: string,
    path: string,
    { body, type, headers = {} }: { body?: string | FormData; type?: string; headers?: Record<string, string> } = {},
  ): Promise<Response> =>
    fetch(`${url}${path}`, {
      method,
      body: body ?? null,
      headers: {
        accept: 'application/json',
        ...(token && { authorization: `Bearer ${token}` }),
        ...(type && { 'content-type': type }),
        ...headers,
      },
    })

  const upload = (mebibytes: number): Promise<Response> => {
    const form = new FormData()
    form.set('file', new File([new Uint8Array(mebibytes * 1024 * 1024)], 'figures.bin'))
    return call('POST', '/api/admin/files', { body: form })
  }

  it('spreads requests over both servers and keeps their request ids', async () => {
    for (let index = 0; index < 6; index++) {
      const headers = { 'x-request-id': `through-${index}` }
      const response = await call('GET', '/api/admin/leads', { headers })
      expect([response.status, response.headers.get('x-request-id')]).toEqual([200, `through-${index}`])
    }
    const served = (): boolean[] => servers.map(({ said }) => /"request_id":"through-/.test(said.stdout))
    await expect.poll(served, soon).toEqual([true, true])
  })

  it('forwards who has asked: a remote caller gets no metrics without a token', async () => {
    expect((await fetch(`${url}/metrics`)).status).toBe(401)
    expect((await fetch(`${servers[0]?.url}/metrics`, { headers: { 'x-forwarded-for': '203.0.113.9' } })).status).toBe(
      401,
    )
  })

  it('passes an event on before the stream ends', async () => {
    const stream = await call('GET', '/api/admin/events', { headers: { accept: 'text/event-stream' } })
    expect(stream.status).toBe(200)
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader()
    const made = await call('POST', '/api/admin/sources', { body: '{"name":"Fair"}', type: 'application/json' })
    expect(made.status).toBe(201)
    let text = ''
    while (!text.includes('settings.source.create.after')) {
      const { value, done } = await reader.read()
      if (done) break
      text += Buffer.from(value).toString()
    }
    expect(text).toContain('settings.source.create.after')
    await reader.cancel()
  })

  it('lets a file of 24 MiB through, and the refusal of a larger one', async () => {
    expect((await upload(24)).status).toBe(201)
    const refused = await upload(26)
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([413, 'payload_too_large'])
  })

  it('sends everything to the other server while one is stopped', async () => {
    await servers[0]?.stop()
    for (let index = 0; index < 6; index++) expect((await call('GET', '/api/admin/leads')).status).toBe(200)
  })
})
