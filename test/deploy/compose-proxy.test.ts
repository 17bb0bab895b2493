// The reverse proxy of compose.cluster.yaml, with its own configuration, in front of two servers.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { type Running, startServer } from '../../src/server.ts'
import { start } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { type Listening, listeningServer } from '../support/listening.ts'
import { readStream } from '../support/sse.ts'
import { until } from '../support/until.ts'

const hasCaddy = spawnSync('caddy', ['version']).status === 0

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })

const hostOf = ({ app }: Running): string => `127.0.0.1:${(app.http.server.address() as AddressInfo).port}`

/** The Caddyfile of the Compose file with the addresses of this test. */
function caddyfile(url: string, one: Running, two: Running): string {
  const { configs } = parse(readFileSync('compose.cluster.yaml', 'utf8'), { merge: true }) as {
    configs: { caddyfile: { content: string } }
  }
  const site = configs.caddyfile.content
    .replace(/^\$\{ACCORD_APP_URL\}/, url)
    .replace('api-1:8000', hostOf(one))
    .replace('api-2:8000', hostOf(two))
  return `{\n  admin off\n}\n${site}`
}

describe.runIf(hasCaddy)('behind the proxy of compose.cluster.yaml', { timeout: 120_000 }, () => {
  let folder: string
  let one: Listening
  let two: Running
  let caddy: ChildProcess
  let url: string
  let token: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'accord-proxy-'))
    url = `http://127.0.0.1:${await freePort()}`
    one = await listeningServer({ trustedProxies: ['127.0.0.1'], appUrl: url })
    two = await startServer(one.app.services.config)
    const terms = { abilities: ['*'], expiresAt: null, allowedIps: [] }
    token = (await issueToken(one.store.db, { userId: 1, name: 't', kind: 'personal', ...terms }, start)).text
    const path = join(folder, 'Caddyfile')
    writeFileSync(path, caddyfile(url, one, two))
    caddy = spawn('caddy', ['run', '--config', path], {
      env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
      stdio: 'ignore',
    })
    const isReady = () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
    // A busy machine takes long to start a process.
    await until(isReady, 60_000)
  }, 120_000)
  afterAll(async () => {
    const ended = once(caddy, 'exit')
    if (caddy.kill('SIGTERM')) await ended
    await two.close()
    await one.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Sends a request, and repeats it while the servers, which share this thread, are too busy. */
  async function send(method: string, path: string, body: BodyInit | null = null, more: Record<string, string> = {}) {
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json', ...more }
    let reply = await fetch(`${url}/api/admin${path}`, { method, body, headers })
    for (let tries = 0; reply.status === 503 && tries < 10; tries++) {
      await setTimeout(1_000)
      reply = await fetch(`${url}/api/admin${path}`, { method, body, headers })
    }
    return reply
  }

  it('both servers get requests, and request ids stay', async () => {
    for (let index = 0; index < 10; index++) {
      const reply = await send('GET', '/tags', null, { 'x-request-id': `through-${index}` })
      expect(reply.headers.get('x-request-id')).toBe(`through-${index}`)
    }
    const hasServed = async ({ app }: Running): Promise<boolean> =>
      /_count\{operation="listTags"/.test(await app.services.metrics.text())
    await until(async () => (await hasServed(one)) && (await hasServed(two)))
  })

  it('a caller counts as remote, so metrics need a token', async () => {
    expect((await fetch(`${url}/metrics`)).status).toBe(401)
  })

  it('each event of the change feed passes at once', async () => {
    const reader = await readStream(`${url}/api/admin/events`, token)
    expect(reader.status).toBe(200)
    await send('POST', '/tags', JSON.stringify({ name: 'Hot' }), { 'content-type': 'application/json' })
    expect((await reader.until(1)).map(({ event }) => event)).toContain('settings.tag.create.after')
    reader.cut()
  })

  it('the largest allowed file passes, and the refusal of a larger one', async () => {
    const upload = async (size: number): Promise<Response> => {
      const { body, headers } = await form({ file: file('figures.bin', new Uint8Array(size)) })
      return send('POST', '/files', new Uint8Array(body), headers)
    }
    expect((await upload(25 * 1024 * 1024)).status).toBe(201)
    const refused = await upload(25 * 1024 * 1024 + 1)
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([413, 'payload_too_large'])
  })

  it('the other server answers everything while one is stopped', async () => {
    await two.close()
    for (let index = 0; index < 6; index++) expect((await send('GET', '/tags')).status).toBe(200)
  })
})
