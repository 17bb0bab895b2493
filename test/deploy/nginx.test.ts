// nginx with the configuration in deploy/nginx, in front of a server.
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { start } from '../support/app.ts'
import { useFolder } from '../support/folders.ts'
import { freePort } from '../support/free-port.ts'
import { listeningServer } from '../support/listening.ts'
import { findProgram, needing } from '../support/programs.ts'
import { until } from '../support/until.ts'
import { useOne } from '../support/using.ts'
import { isReady, passesEventsAndFiles, sendThrough } from './passing.ts'

const run = promisify(execFile)
const program = findProgram('nginx') ?? ''
const site = readFileSync('deploy/nginx/accord.conf', 'utf8')

/** Writes a main configuration that includes the site and keeps all files in the folder. */
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

needing('nginx', 'openssl').describe('behind nginx', () => {
  const folder = useFolder('nginx')
  let nginx: ChildProcess
  let url: string
  let token: string

  const server = useOne(() => listeningServer({ trustedProxies: ['127.0.0.1'], appUrl: 'https://crm.example.com' }))
  beforeAll(async () => {
    token = (
      await issueToken(
        server.store.db,
        { userId: 1, name: 't', kind: 'personal', expiresAt: null, abilities: ['*'], allowedIps: [] },
        start,
      )
    ).text
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    // The site without TLS. The proxy still sends `X-Forwarded-Proto: https`.
    const plain = site
      .replace('127.0.0.1:8000', `127.0.0.1:${(server.app.http.server.address() as AddressInfo).port}`)
      .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
      .replace(/^ +ssl_.*\n/gm, '')
      .replace('$scheme', 'https')
      .replace(/\nserver \{\n {4}listen 80;[\s\S]*$/, '')
    nginx = spawn(program, ['-c', writeConfiguration(folder, plain), '-p', folder], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    await until(() => isReady(url))
  })
  afterAll(async () => {
    const ended = once(nginx, 'exit')
    if (nginx.kill('SIGTERM')) await ended
  })

  passesEventsAndFiles(() => ({ url, token }))

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
    const reply = await sendThrough({ url, token }, 'POST', '/leads', body, {
      'content-type': 'application/json',
      ...claimed,
    })
    expect(reply.status).toBe(201)
    expect(reply.headers.get('location')).toMatch(/^https:\/\/crm\.example\.com\/api\/admin\/leads\/\d+$/)
    expect(reply.headers.get('strict-transport-security')).toBe('max-age=31536000')
  })
})
