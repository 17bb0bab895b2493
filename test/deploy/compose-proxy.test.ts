// The reverse proxy of compose.cluster.yaml with its configuration, in front of two servers.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { type Running, startServer } from '../../src/server.ts'
import { start } from '../support/app.ts'
import { useFolder } from '../support/folders.ts'
import { freePort } from '../support/free-port.ts'
import { type Listening, listeningServer } from '../support/listening.ts'
import { findProgram, needing } from '../support/programs.ts'
import { until } from '../support/until.ts'
import { isReady, passesEventsAndFiles, sendThrough } from './passing.ts'

const hostOf = ({ app }: Running): string => `127.0.0.1:${(app.http.server.address() as AddressInfo).port}`

/** Returns the Caddyfile of the Compose file with the addresses of this test. */
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

needing('caddy').describe('behind the proxy of compose.cluster.yaml', { timeout: 120_000 }, () => {
  const folder = useFolder('proxy')
  let one: Listening
  let two: Running
  let caddy: ChildProcess
  let url: string
  let token: string

  beforeAll(async () => {
    url = `http://127.0.0.1:${await freePort()}`
    one = await listeningServer({ trustedProxies: ['127.0.0.1'], appUrl: url })
    two = await startServer(one.app.services.config)
    const terms = { abilities: ['*'], expiresAt: null, allowedIps: [] }
    token = (await issueToken(one.store.db, { userId: 1, name: 't', kind: 'personal', ...terms }, start)).text
    const path = join(folder, 'Caddyfile')
    writeFileSync(path, caddyfile(url, one, two))
    caddy = spawn(findProgram('caddy') ?? '', ['run', '--config', path], {
      env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
      stdio: 'ignore',
    })
    // Long timeout, because a busy machine starts processes slowly.
    await until(() => isReady(url), 60_000)
  }, 120_000)
  afterAll(async () => {
    const ended = once(caddy, 'exit')
    if (caddy.kill('SIGTERM')) await ended
    await two.close()
    await one.close()
  })

  const send = (method: string, path: string, more: Record<string, string> = {}) =>
    sendThrough({ url, token }, method, path, null, more)

  it('both servers get requests, and request ids stay', async () => {
    for (let index = 0; index < 10; index++) {
      const reply = await send('GET', '/tags', { 'x-request-id': `through-${index}` })
      expect(reply.headers.get('x-request-id')).toBe(`through-${index}`)
    }
    const hasServed = async ({ app }: Running): Promise<boolean> =>
      /_count\{operation="listTags"/.test(await app.services.metrics.text())
    await until(async () => (await hasServed(one)) && (await hasServed(two)))
  })

  it('a caller counts as remote, so metrics need a token', async () => {
    expect((await fetch(`${url}/metrics`)).status).toBe(401)
  })

  passesEventsAndFiles(() => ({ url, token }))

  it('the other server answers everything while one is stopped', async () => {
    await two.close()
    for (let index = 0; index < 6; index++) expect((await send('GET', '/tags')).status).toBe(200)
  })
})
