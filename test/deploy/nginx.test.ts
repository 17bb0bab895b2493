// nginx with the configuration in deploy/nginx, in front of a server: what a proxy can break.
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { start } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { type Listening, listeningServer } from '../support/listening.ts'
import { readStream } from '../support/sse.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)
const program = '/usr/sbin/nginx'
const site = readFileSync('deploy/nginx/accord.conf', 'utf8')

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })

/** Writes a main configuration that includes the site, with all files in the folder. */
function writeConfiguration(folder: string, text: string): string {
  const path = join(folder, 'nginx.conf')
  const { stderr: build } = spawnSync(program, ['-V'], { encoding: 'utf8' })
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .filter((kind) => !build.includes(`--without-http_${kind}_module`))
    .map((kind) => `${kind}_temp_path ${join(folder, kind)};`)
  writeFileSync(join(folder, 'site.conf'), text)
  writeFileSync(
    path,
    `${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off;
    worker_processes 1;
    pid ${join(folder, 'nginx.pid')};
    error_log ${join(folder, 'error.log')};
    events {}
    http { access_log off; ${temporary.join(' ')} include ${join(folder, 'site.conf')}; }`,
  )
  return path
}

describe.skipIf(!existsSync(program))('behind nginx', () => {
  let folder: string
  let server: Listening
  let nginx: ChildProcess
  let url: string
  let token: string

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'accord-nginx-'))
    server = await listeningServer({ trustedProxies: ['127.0.0.1'], appUrl: 'https://crm.example.com' })
    token = (
      await issueToken(
        server.store.db,
        { userId: 1, name: 't', kind: 'personal', expiresAt: null, abilities: ['*'], allowedIps: [] },
        start,
      )
    ).text
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    // The site without TLS; the proxy says https all the same.
    const plain = site
      .replace('127.0.0.1:8000', `127.0.0.1:${(server.app.http.server.address() as AddressInfo).port}`)
      .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
      .replace(/^ +ssl_.*\n/gm, '')
      .replace('$scheme', 'https')
      .replace(/\nserver \{\n {4}listen 80;[\s\S]*$/, '')
    nginx = spawn(program, ['-c', writeConfiguration(folder, plain), '-p', folder], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    await until(() =>
      fetch(`${url}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
  })
  afterAll(async () => {
    const ended = once(nginx, 'exit')
    if (nginx.kill('SIGTERM')) await ended
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Sends a request, and repeats it while the server, which shares this thread, is too busy. */
  async function send(method: string, path: string, body: Uint8Array | string, headers: Record<string, string>) {
    const sent = {
      method,
      body: body as BodyInit,
      headers: { authorization: `Bearer ${token}`, accept: 'application/json', ...headers },
    }
    let reply = await fetch(`${url}/api/admin${path}`, sent)
    for (let tries = 0; reply.status === 503 && tries < 10; tries++) {
      await setTimeout(1_000)
      reply = await fetch(`${url}/api/admin${path}`, sent)
    }
    return reply
  }

  it('accepts the whole file, with TLS and the redirect from http', async () => {
    const [certificate, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=crm.example.com', '-days', '2']
    await run('openssl', [...request, '-keyout', key, '-out', certificate])
    const other = mkdtempSync(join(folder, 'whole-'))
    const whole = site.replace(/\/etc\/\S+fullchain\.pem/, certificate).replace(/\/etc\/\S+privkey\.pem/, key)
    const { stderr } = await run(program, ['-t', '-c', writeConfiguration(other, whole), '-p', other])
    expect(stderr).toContain('test is successful')
  })

  it('replaces the address and host that a client claims', async () => {
    const claimed = {
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'http',
    }
    const body = JSON.stringify({ title: 'Behind a proxy', lead_value: 1 })
    const reply = await send('POST', '/leads', body, { 'content-type': 'application/json', ...claimed })
    expect(reply.status).toBe(201)
    expect(reply.headers.get('location')).toMatch(/^https:\/\/crm\.example\.com\/api\/admin\/leads\/\d+$/)
    expect(reply.headers.get('strict-transport-security')).toBe('max-age=31536000')
  })

  it('passes each event of the change feed at once', async () => {
    const reader = await readStream(`${url}/api/admin/events`, token)
    expect(reader.status).toBe(200)
    await send('POST', '/tags', JSON.stringify({ name: 'Hot' }), { 'content-type': 'application/json' })
    expect((await reader.until(1)).map(({ event }) => event)).toContain('settings.tag.create.after')
    reader.cut()
  })

  it('passes the largest allowed file, and the refusal of a larger one', async () => {
    const mebibyte = 1024 * 1024
    const upload = async (size: number) => {
      const { body, headers } = await form({ file: file('figures.bin', new Uint8Array(size)) })
      return send('POST', '/files', body, headers)
    }
    expect((await upload(25 * mebibyte)).status).toBe(201)
    const refused = await upload(25 * mebibyte + 1)
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([413, 'payload_too_large'])
  })
})
