// The guards of all requests and the headers of all replies: security headers, CORS, rate limits,
// and limits on connections. Uses sockets for bytes that are not valid requests.
import { type AddressInfo, connect, type Socket } from 'node:net'
import Fastify from 'fastify'
import { afterEach, describe, expect, it } from 'vitest'
import { sockets } from '../../src/http/connection-limits.ts'
import { connectionsWithin, maxDescriptors } from '../../src/http/descriptor-limit.ts'
import { bodies, reserve } from '../../src/kernel/files/body-memory-budget.ts'
import { adminPassword, startServer, type TestServer, testConfig } from '../support/app.ts'
import { inWork, type Listening, listeningServer } from '../support/listening.ts'
import { statementsOf } from '../support/statements.ts'
import { until } from '../support/until.ts'

let server: TestServer
let listening: Listening | undefined
afterEach(async () => {
  await server?.close()
  await listening?.close()
  listening = undefined
})

const json = { accept: 'application/json' }

describe('what a trusted proxy forwards', () => {
  const asked = async (headers: Record<string, string>, remoteAddress = '10.0.0.1') => {
    const url = '/api/admin/sources?per_page=1'
    const authorization = `Bearer ${server.admin.token}`
    const reply = await server.inject({ url, remoteAddress, headers: { ...json, authorization, ...headers } })
    return { status: reply.statusCode, links: JSON.stringify(reply.json().links ?? null) }
  }

  it('is a warning in the log, once, while no proxy is trusted', async () => {
    const warnings: string[] = []
    const lines = { write: (line: string) => void (line.includes('ACCORD_TRUSTED_PROXIES') && warnings.push(line)) }
    server = await startServer({ lines })
    await asked({})
    expect(warnings).toEqual([])
    for (const name of ['x-forwarded-for', 'forwarded']) await asked({ [name]: 'for=203.0.113.7' })
    expect(warnings).toEqual([expect.stringContaining('all callers share its address and its limits')])
    await server.close()
    server = await startServer({ lines, config: { trustedProxies: ['10.0.0.0/8'] } })
    await asked({ 'x-forwarded-for': '203.0.113.7' })
    expect(warnings).toHaveLength(1)
  })

  it('becomes the beginning of links only when it is http or https and a host', async () => {
    server = await startServer({ config: { trustedProxies: ['10.0.0.0/8'] } })
    const good = [
      [{ 'x-forwarded-proto': 'https', 'x-forwarded-host': 'crm.example' }, 'https://crm.example/'],
      [{ 'x-forwarded-proto': 'HTTPS', 'x-forwarded-host': 'crm.example:8443' }, 'https://crm.example:8443/'],
      [{ 'x-forwarded-proto': 'javascript, http', 'x-forwarded-host': 'a b, crm.example' }, 'http://crm.example/'],
    ] as const
    for (const [headers, base] of good) {
      const { status, links } = await asked(headers)
      expect.soft([status, links.includes(`"${base}`)], base).toEqual([200, true])
    }
    for (const protocol of [
      'javascript',
      'ftp',
      'http://evil.example/',
      'https:',
      'https://evil.example/?',
      ' ',
      'http,',
    ])
      expect.soft(await asked({ 'x-forwarded-proto': protocol }), protocol).toMatchObject({ status: 400 })
    for (const host of [
      'evil.example/path',
      'a b',
      'user@evil.example',
      '"><script>',
      'evil.example?',
      'good.example,',
      'a:99999',
    ])
      expect.soft(await asked({ 'x-forwarded-host': host }), host).toMatchObject({ status: 400 })
  })

  it('is nothing from anybody else', async () => {
    server = await startServer({ config: { trustedProxies: ['10.0.0.0/8'] } })
    const { status, links } = await asked({ 'x-forwarded-proto': 'ftp', 'x-forwarded-host': '"><script>' }, '192.0.2.1')
    expect([status, links.includes('"http://localhost')]).toEqual([200, true])
  })
})

describe('every answer', () => {
  it('forbids browsers to run, show or guess it, whatever it is', async () => {
    server = await startServer()
    const { id } = (await server.admin.post('/sources', { name: 'Fair' })).body.data
    const asked: [method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS' | 'HEAD', url: string, status: number][] = [
      ['GET', '/healthz', 200],
      ['GET', `/api/admin/sources/${id}`, 401],
      ['GET', '/api/admin/nowhere', 404],
      ['GET', '/', 200],
      ['PUT', '/api/admin/sources', 405],
      ['OPTIONS', '/api/admin/sources', 204],
      ['HEAD', '/healthz', 200],
      ['POST', '/api/admin/login', 422],
      ['GET', '/api/admin/documentation', 200],
      ['GET', '/api/admin/documentation/static/swagger-ui-bundle.js', 200],
      ['GET', '/api/admin/documentation/errors', 200],
      ['GET', '/api/admin/openapi.json', 200],
      ['GET', '/api/admin/%zz', 400],
    ]
    for (const [method, url, status] of asked) {
      const { statusCode, headers } = await server.inject({
        method,
        url,
        headers: json,
        ...(method === 'POST' && { payload: {} }),
      })
      expect.soft([url, statusCode]).toEqual([url, status])
      expect.soft(headers, url).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'x-frame-options': 'DENY',
        'x-request-id': expect.any(String),
        'cache-control': expect.any(String),
      })
      expect.soft(headers['content-security-policy'], url).toMatch(/^default-src 'none'.*frame-ancestors 'none'/)
      expect.soft(headers['strict-transport-security'], url).toBe(undefined)
      expect.soft(headers['x-powered-by'], url).toBe(undefined)
    }
  })

  it('says for a year that it was https, when it was', async () => {
    server = await startServer({ config: { trustedProxies: ['127.0.0.1'] } })
    const over = async (protocol: string) =>
      (await server.inject({ url: '/healthz', headers: { 'x-forwarded-proto': protocol } })).headers
    expect((await over('https'))['strict-transport-security']).toBe('max-age=31536000')
    expect((await over('http'))['strict-transport-security']).toBe(undefined)
  })

  it('is not stored, or only by the browser of the caller, which must revalidate it', async () => {
    server = await startServer()
    const made = await server.admin.post('/sources', { name: 'Fair' })
    expect(made.headers['cache-control']).toBe('no-store')
    const shown = await server.admin.get(`/sources/${made.body.data.id}`)
    expect([shown.headers['cache-control'], shown.headers.vary]).toEqual(['private, no-cache', 'Authorization, Cookie'])
    const again = await server.admin.get(`/sources/${made.body.data.id}`, {
      headers: { 'if-none-match': String(shown.headers.etag) },
    })
    expect([again.status, again.headers['cache-control']]).toEqual([304, 'private, no-cache'])
    expect((await server.admin.get('/sources/999999')).headers['cache-control']).toBe('no-store')
    expect((await server.anonymous.get('/sources')).headers['cache-control']).toBe('no-store')
  })
})

describe('pages of other origins', () => {
  const app = 'https://app.example.com'

  it('read nothing unless they are listed', async () => {
    server = await startServer()
    const { headers } = await server.admin.get('/sources', { headers: { origin: app } })
    expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    expect(headers.vary).not.toContain('Origin')
  })

  it('read everything with credentials when they are listed, and no other origin does', async () => {
    server = await startServer({ config: { corsOrigins: [app] } })
    const from = (origin: string, method: 'GET' | 'OPTIONS' = 'GET', url = '/api/admin/sources') =>
      server.inject({ method, url, headers: { origin, ...json, 'access-control-request-method': 'PUT' } })
    for (const [url, status] of [
      ['/api/admin/sources', 401],
      ['/api/admin/nowhere', 404],
      ['/healthz', 200],
    ] as const) {
      const { headers, statusCode } = await from(app, 'GET', url)
      expect.soft(statusCode).toBe(status)
      expect.soft(headers).toMatchObject({
        'access-control-allow-origin': app,
        'access-control-allow-credentials': 'true',
        vary: expect.stringContaining('Origin'),
      })
      for (const name of 'ETag Link Location Retry-After RateLimit RateLimit-Policy X-Request-Id Idempotency-Replayed Deprecation Sunset'.split(
        ' ',
      ))
        expect.soft(String(headers['access-control-expose-headers']).split(', ')).toContain(name)
    }
    const asked = await from(app, 'OPTIONS')
    expect([asked.statusCode, asked.headers.allow, asked.headers['access-control-allow-methods']]).toEqual([
      204,
      'GET, POST, HEAD, OPTIONS',
      'GET, POST, HEAD, OPTIONS',
    ])
    expect(String(asked.headers['access-control-allow-headers'])).toMatch(/Authorization.*If-Match.*X-XSRF-TOKEN/)
    for (const other of [
      'https://app.example.com.evil.example',
      'http://app.example.com',
      'null',
      'https://APP.example.com',
    ]) {
      const { headers } = await from(other)
      expect
        .soft([headers['access-control-allow-origin'], headers['access-control-allow-credentials']])
        .toEqual([undefined, undefined])
      expect.soft(headers.vary).toContain('Origin')
    }
  })
})

describe('rates', () => {
  const slowed = { config: { rateFactor: 0.1 } }
  const rateOf = ({ headers }: { headers: Record<string, unknown> }) => [headers['ratelimit-policy'], headers.ratelimit]

  it('are counted for each token, told in every answer, and refilled', async () => {
    server = await startServer(slowed)
    expect(rateOf(await server.admin.get('/sources'))).toEqual(['"token";q=100;w=10', '"token";r=99;t=1'])
    expect(rateOf(await server.admin.post('/sources', { name: 'Fair' }))).toEqual([
      '"token";q=100;w=10, "write";q=50;w=10',
      '"token";r=98;t=1, "write";r=49;t=1',
    ])
    for (let left = 98; left > 0; left--) expect((await server.admin.get('/sources/1')).status).toBe(200)
    const refused = await server.admin.get('/sources/1')
    expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([429, 'rate_limited', '1'])
    expect(rateOf(refused)).toEqual(['"token";q=100;w=10', '"token";r=0;t=10'])
    // The limit does not affect another token.
    const other = await server.as(1)
    expect((await other.get('/sources')).status).toBe(200)
    server.clock.advanceMs(1_000)
    for (let left = 10; left > 0; left--) expect((await server.admin.get('/sources/1')).status).toBe(200)
    expect((await server.admin.get('/sources/1')).status).toBe(429)
    server.clock.advanceMs(60_000)
    expect(rateOf(await server.admin.get('/sources'))[1]).toBe('"token";r=99;t=1')
  })

  it('of writing are lower, and leave reading alone', async () => {
    server = await startServer(slowed)
    for (let left = 50; left > 0; left--) expect((await server.admin.put('/sources/1', {})).status).toBe(200)
    const refused = await server.admin.put('/sources/1', { name: 'Not written' })
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1'])
    const { status, body } = await server.admin.get('/sources/1')
    expect([status, body.data.name]).not.toEqual([200, 'Not written'])
    expect(status).toBe(200)
  })

  it('of unknown callers are counted by address: pages, unknown paths, public operations', async () => {
    server = await startServer(slowed)
    const paths = [
      '/api/admin/documentation/errors',
      '/nowhere',
      '/api/admin/openapi.json',
      '/api/admin/sources',
      '/api/admin/documentation/',
    ]
    const from = (remoteAddress: string, url: string) => server.inject({ url, remoteAddress, headers: json })
    for (let index = 0; index < 10; index++) {
      const answer = await from('192.0.2.7', paths[index % paths.length] ?? '')
      expect(rateOf(answer)).toEqual(['"address";q=10;w=5', `"address";r=${9 - index};t=${Math.ceil((index + 1) / 2)}`])
    }
    for (const path of paths) {
      const { statusCode, headers } = await from('192.0.2.7', path)
      expect
        .soft([path, statusCode, headers['retry-after'], headers.ratelimit])
        .toEqual([path, 429, '1', '"address";r=0;t=5'])
    }
    expect((await from('192.0.2.8', '/nowhere')).statusCode).toBe(404)
    // Health checks and CORS preflight requests are not limited.
    for (const url of ['/healthz', '/readyz']) expect((await from('192.0.2.7', url)).statusCode).toBe(200)
    const asked = await server.inject({ method: 'OPTIONS', url: '/api/admin/sources', remoteAddress: '192.0.2.7' })
    expect(asked.statusCode).toBe(204)
  })

  it('take the addresses of one network of IPv6 for one', async () => {
    server = await startServer(slowed)
    const from = async (remoteAddress: string) => (await server.inject({ url: '/nowhere', remoteAddress })).statusCode
    for (let index = 0; index < 10; index++) expect(await from(`2001:db8:0:1::${index}`)).toBe(404)
    expect(await from('2001:db8:0:1:ffff::1')).toBe(429)
    expect(await from('2001:db8:0:2::1')).toBe(404)
  })

  it('stop the guessing of tokens before any lookup, and accept known tokens', async () => {
    server = await startServer(slowed)
    expect((await server.admin.get('/sources')).status).toBe(200)
    const guess = (secret: string) => server.caller(`1|${secret.repeat(43)}`).get('/sources')
    for (let index = 0; index < 10; index++) expect((await guess('a')).status).toBe(401)
    const refused = await statementsOf(async () => {
      for (const secret of ['a', 'b']) {
        const { status, headers } = await guess(secret)
        expect([status, headers['retry-after']]).toEqual([429, '1'])
      }
      // An unknown token counts toward the limit of the address.
      const fresh = server.caller(`2|${'c'.repeat(43)}`)
      expect((await fresh.get('/sources')).status).toBe(429)
    })
    expect(refused).toEqual([])
    const accepted = await statementsOf(async () => {
      expect((await server.admin.get('/sources')).status).toBe(200)
    })
    expect(accepted.length).toBeGreaterThan(0)
  })
})

describe('memory for bodies that are arriving', () => {
  it('is lent to one address and to all up to a bound, and given back', async () => {
    server = await startServer()
    const { services } = server.app
    const mebibyte = 1024 * 1024
    const [first, second] = [reserve(services, '192.0.2.1'), reserve(services, '192.0.2.1')]
    expect([first.grow(20 * mebibyte), second.grow(12 * mebibyte), second.grow(1)]).toEqual([true, true, false])
    for (const last of [2, 3, 4]) expect(reserve(services, `192.0.2.${last}`).grow(32 * mebibyte)).toBe(true)
    const other = reserve(services, '192.0.2.5')
    expect(other.grow(1)).toBe(false)
    const refused = await server.admin.post('/sources', { name: 'Fair' })
    expect([refused.status, refused.body.code, refused.headers['retry-after']]).toEqual([503, 'unavailable', '1'])
    // A request without a body needs no memory.
    expect((await server.admin.get('/sources')).status).toBe(200)
    first.release()
    first.release()
    expect([other.grow(20 * mebibyte - 1024), second.grow(1024)]).toEqual([true, true])
    other.release()
    expect((await server.admin.post('/sources', { name: 'Fair' })).status).toBe(201)
  })
})

describe('more requests than the server can answer', () => {
  it('are refused with 503 when more wait than may, and answered again when they do not', async () => {
    listening = await listeningServer({ corsOrigins: ['https://app.example.com'] })
    const { app, url } = listening
    const { port } = new URL(url)
    const answers = await atOnce(Number(port), 400)
    expect(answers).toHaveLength(400)
    const statuses = new Map<string, number>()
    for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    expect([...statuses.keys()].sort()).toEqual(['404', '503'])
    expect(statuses.get('404')).toBeGreaterThanOrEqual(100)
    for (const { status, text } of answers.filter(({ status }) => status === '503')) {
      expect(text).toMatch(/^retry-after: 1\r$/im)
      expect([status, JSON.parse(text.slice(text.indexOf('{'))).code]).toEqual(['503', 'unavailable'])
    }
    // A load-shedding refusal skips the hooks but has the same headers, except the links of a 404.
    const named = (wanted: string) => {
      const [head = ''] = answers.find(({ status }) => status === wanted)?.text.split('\r\n\r\n') ?? []
      const headers = head.split('\r\n').slice(1)
      return headers.filter((each) => !/^(content-length|date|link|x-request-id|retry-after):/i.test(each)).sort()
    }
    expect(named('503')).toEqual(named('404'))
    expect(named('503')).toContain('access-control-allow-origin: https://app.example.com')
    const counted = await (await fetch(`${url}/metrics`)).text()
    expect(counted).toContain(`accord_http_requests_shed_total ${statuses.get('503')}\n`)
    expect(counted).toContain(`_count{operation="none",method="GET",status="503"} ${statuses.get('503')}\n`)
    expect((await fetch(`${url}/nowhere`)).status).toBe(404)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect(app.http.server.maxConnections).toBe(connectionsWithin(maxDescriptors()))
  })

  it('are refused as well when they come together with the ends of their bodies, also while the server closes', async () => {
    listening = await listeningServer({ rateFactor: 100 })
    const { app, url } = listening
    const { port } = new URL(url)
    const most = 300
    const together = async () => {
      const callers = await Promise.all(Array.from({ length: most }, () => begunPost(Number(port))))
      await inWork(listening as Listening, most)
      return { callers, finish: () => callers.forEach(({ socket }) => void socket.write('}')) }
    }
    const first = await together()
    first.finish()
    await until(() => first.callers.every(({ said }) => said().includes('\r\n\r\n')))
    const refused = first.callers.map(({ said }) => said()).filter((text) => text.startsWith('HTTP/1.1 503'))
    expect(refused.length).toBeGreaterThan(0)
    expect(refused.length).toBeLessThan(most)
    for (const text of refused) expect(text).toMatch(/^ratelimit: /im)
    for (const { socket } of first.callers) socket.destroy()

    const second = await together()
    second.finish()
    const closed = app.http.close()
    await until(() => second.callers.every(({ isClosed }) => isClosed()))
    await closed
    const heads = second.callers.map(({ said }) => said()).filter((text) => text !== '')
    expect(heads.filter((text) => !/^connection: close\r$/im.test(text))).toEqual([])
  })
})

describe('callers who hang up', () => {
  const size = 900 * 1024
  const open = new Set<Socket>()
  /** Sends a request without waiting for the reply. */
  function send(port: number, { body, token = '', cut = 0 }: { body: string; token?: string; cut?: number }): void {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    const head = [
      'POST /api/admin/sources HTTP/1.1',
      'host: localhost',
      `authorization: Bearer ${token}`,
      'content-type: application/json',
      `content-length: ${body.length}`,
      '\r\n',
    ]
    socket.write(`${head.join('\r\n')}${body.slice(0, body.length - cut)}`)
    open.add(socket)
  }
  function hangUp(): void {
    for (const socket of open) socket.destroy()
    open.clear()
  }

  it('leave the line and give back what their bodies took, at whatever stage', async () => {
    listening = await listeningServer()
    const { app, url } = listening
    const port = Number(new URL(url).port)
    const call = (path: string, body: string, authorization = '') =>
      fetch(`${url}/api/admin${path}`, {
        method: 'POST',
        headers: { ...json, 'content-type': 'application/json', authorization },
        body,
      })
    const signIn = { email: 'admin@example.com', password: adminPassword, device_name: 'x' }
    const { token } = (await (await call('/login', JSON.stringify(signIn))).json()).data
    const lent = () => bodies.lent.get(app.services)?.get('of 127.0.0.1') ?? 0
    const inWork = async () => Number(/in_work (\d+)/.exec(await app.services.metrics.text())?.[1])

    // Connections that close while the body is being sent.
    for (let count = 0; count < 10; count++) send(port, { body: '{'.padEnd(size), token, cut: 1 })
    await until(() => lent() === 10 * (size - 1))
    hangUp()
    await until(() => lent() === 0)

    // Connections that close while the requests run or wait in the queue.
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    // Every request that reads the database waits.
    const holding = listening.store.transaction(() => held)
    const source = (index: number) => JSON.stringify({ name: `Unheard ${index}` })
    for (let count = 0; count < 10; count++) send(port, { body: source(count).padEnd(size), token })
    await until(() => lent() === 10 * size)
    // Up to 150 writes are accepted.
    for (const total of [80, 110, 150]) {
      while (open.size < total) send(port, { body: source(open.size), token })
      await until(async () => (await inWork()) === total)
    }
    hangUp()
    await until(async () => (await inWork()) === 0)
    expect(lent()).toBe(0)
    // Their work is not done yet, but their places in the queue are free.
    expect((await fetch(`${url}/nowhere`)).status).toBe(404)
    release()
    await holding
    const large = await call('/sources', JSON.stringify({ name: 'Answered' }).padEnd(size), `Bearer ${token}`)
    expect(large.status).toBe(201)
    await until(() => lent() === 0)
  })
})

describe('a server that closes', () => {
  it('waits for no connection that has sent nothing', async () => {
    listening = await listeningServer()
    const { server: http } = listening.app.http
    const [silent, between] = [1, 2].map(() => connect(Number(new URL(listening?.url ?? '').port), '127.0.0.1'))
    between?.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await new Promise((resolve) => between?.once('data', resolve))
    await until(() => new Promise((resolve) => http.getConnections((_error, count) => resolve(count === 2))))
    const closed = new Promise((resolve) => silent?.once('close', resolve).resume())
    let isGraceOver = false
    const grace = setTimeout(() => {
      isGraceOver = true
    }, 7_900)
    await listening.close()
    await closed
    expect(isGraceOver).toBe(false)
    clearTimeout(grace)
  })
})

/** Sends this many requests in one packet, so that they arrive together. */
async function atOnce(port: number, count: number): Promise<{ status: string; text: string }[]> {
  const ask = (connection: string) =>
    `GET /nowhere HTTP/1.1\r\nHost: x\r\nOrigin: https://app.example.com\r\nConnection: ${connection}\r\n\r\n`
  const text = await said(port, ask('keep-alive').repeat(count - 1) + ask('close'))
  return text
    .split(/HTTP\/1\.1 (?=\d{3} )/)
    .slice(1)
    .map((text) => ({ status: text.slice(0, 3), text }))
}

/** Sends a request without its last byte. */
function begunPost(port: number): Promise<{ socket: Socket; said: () => string; isClosed: () => boolean }> {
  return new Promise((resolve, reject) => {
    let text = ''
    let isClosed = false
    const socket = connect(port, '127.0.0.1', () => {
      const head = 'POST /api/admin/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2'
      socket.write(`${head}\r\n\r\n{`)
      resolve({ socket, said: () => text, isClosed: () => isClosed })
    })
    socket.on('data', (bytes) => {
      text += bytes
    })
    socket.on('close', () => {
      isClosed = true
    })
    socket.on('error', reject)
  })
}

/** Sends bytes and returns all bytes that the server sends until it closes the connection. */
function said(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('close', () => resolve(text))
    socket.on('error', (error) => (text === '' ? reject(error) : resolve(text)))
  })
}

describe('a connection', () => {
  const rest = 'Host: x\r\nAccept: application/json\r\nConnection: close\r\n\r\n'
  const odd: [what: string, bytes: string, status: number, code: string][] = [
    ['what is no HTTP', 'hello\r\n\r\n', 400, 'malformed_request'],
    ['a method in lower case', `get /healthz HTTP/1.1\r\n${rest}`, 400, 'malformed_request'],
    ['an unknown method', `ABRACADABRA /healthz HTTP/1.1\r\n${rest}`, 400, 'malformed_request'],
    ['a method of other protocols', `PROPFIND /healthz HTTP/1.1\r\n${rest}`, 405, 'method_not_allowed'],
    ['TRACE', `TRACE /healthz HTTP/1.1\r\n${rest}`, 405, 'method_not_allowed'],
    ['CONNECT', `CONNECT example.com:443 HTTP/1.1\r\n${rest}`, 400, 'malformed_request'],
    ['another version', `GET /healthz HTTP/3.7\r\n${rest}`, 400, 'malformed_request'],
    ['no Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'malformed_request'],
    ['two Hosts', `GET /healthz HTTP/1.1\r\nHost: y\r\n${rest}`, 400, 'malformed_request'],
    ['a Host with a name in it', `GET /healthz HTTP/1.1\r\n${rest.replace('x', 'a@b')}`, 400, 'malformed_request'],
    ['a Host with a path', `GET /healthz HTTP/1.1\r\n${rest.replace('x', 'a/b?')}`, 400, 'malformed_request'],
    ['a Host with markup', `GET /healthz HTTP/1.1\r\n${rest.replace('x', '"><script>')}`, 400, 'malformed_request'],
    [
      'a Host with a port that is none',
      `GET /healthz HTTP/1.1\r\n${rest.replace('x', 'x:99999')}`,
      400,
      'malformed_request',
    ],
    [
      'two lengths',
      `POST /api/admin/login HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n${rest}{}`,
      400,
      'malformed_request',
    ],
    [
      'a length and chunks',
      `POST /api/admin/login HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n${rest}0\r\n\r\n`,
      400,
      'malformed_request',
    ],
    [
      'broken chunks',
      `POST /api/admin/login HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n${rest}zz\r\n`,
      400,
      'malformed_request',
    ],
    [
      'a header of 20 KiB',
      `GET /healthz HTTP/1.1\r\nX-Secret: ${'s'.repeat(20 * 1024)}\r\n${rest}`,
      400,
      'malformed_request',
    ],
    ['a path of 20 KiB', `GET /${'p'.repeat(20 * 1024)} HTTP/1.1\r\n${rest}`, 400, 'malformed_request'],
    ['a path of 12 KiB', `GET /api/admin/leads/${'p'.repeat(12 * 1024)} HTTP/1.1\r\n${rest}`, 401, 'unauthenticated'],
    ['200 headers', `GET /healthz HTTP/1.1\r\n${'X-A: 1\r\n'.repeat(200)}${rest}`, 400, 'malformed_request'],
    ['broken percents', `GET /api/admin/%zz HTTP/1.1\r\n${rest}`, 400, 'malformed_request'],
    ['a NUL in the path', `GET /api/admin/%00 HTTP/1.1\r\n${rest}`, 404, 'not_found'],
    ['two slashes', `GET //healthz HTTP/1.1\r\n${rest}`, 404, 'not_found'],
    ['no path', `OPTIONS * HTTP/1.1\r\n${rest}`, 404, 'not_found'],
    ['a whole address', `GET http://y/nowhere HTTP/1.1\r\n${rest}`, 404, 'not_found'],
    ['a long query', `GET /api/admin/leads?${'q'.repeat(9 * 1024)} HTTP/1.1\r\n${rest}`, 400, 'malformed_request'],
  ]

  it('that sends no request, or an odd one, is told so in a problem that repeats nothing', async () => {
    listening = await listeningServer()
    const port = Number(new URL(listening.url).port)
    for (const [what, bytes, status, code] of odd) {
      const text = await said(port, bytes)
      const [head = '', body = ''] = text.split('\r\n\r\n')
      expect.soft([what, head.slice(0, 12)]).toEqual([what, `HTTP/1.1 ${status}`])
      const headers = head.toLowerCase()
      for (const line of [
        'content-type: application/problem+json; charset=utf-8',
        'connection: close',
        'cache-control: no-store',
        'x-content-type-options: nosniff',
        "content-security-policy: default-src 'none';",
      ])
        expect.soft([what, headers]).toEqual([what, expect.stringContaining(line)])
      const problem = body === '' ? {} : JSON.parse(body)
      expect.soft([what, problem.code, problem.status]).toEqual([what, code, status])
      expect.soft(text).not.toContain('sssss')
    }
    expect((await fetch(`${listening.url}/healthz`)).status).toBe(200)
  })

  it('gets a plain answer to Expect, Upgrade and trailers', async () => {
    listening = await listeningServer()
    const port = Number(new URL(listening.url).port)
    const ask = (lines: string, body = '') => said(port, `${lines}\r\n${rest}${body}`)
    expect(await ask('GET /healthz HTTP/1.1\r\nExpect: the-unexpected')).toMatch(/^HTTP\/1.1 200 /)
    expect(await ask('GET /healthz HTTP/1.1\r\nUpgrade: websocket')).toMatch(/^HTTP\/1.1 200 /)
    expect(await ask('GET http://other/healthz HTTP/1.1')).toMatch(/^HTTP\/1.1 200 /)
    expect(await said(port, 'GET /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1.1 200 /)
    const sends = 'POST /api/admin/login HTTP/1.1\r\nContent-Type: application/json\r\n'
    const trailed = await ask(`${sends}Transfer-Encoding: chunked`, '2\r\n{}\r\n0\r\nX-Trailer: 1\r\n\r\n')
    expect(trailed).toMatch(/^HTTP\/1.1 422 /)
    expect(await ask(`${sends}Expect: 100-continue\r\nContent-Length: 2`, '{}')).toMatch(
      /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 422 /,
    )
  })

  it('that is slow to ask or to take what it asked for is cut off, and only that', async () => {
    const { http, port } = await hasty()
    try {
      const head = 'POST /echo HTTP/1.1\r\nHost: x\r\n'
      const late = 'The request could not be read. It did not arrive in time.'
      for (const bytes of [head, `${head}Content-Length: 10\r\nContent-Type: text/plain\r\n\r\nhello`]) {
        const text = await said(port, bytes)
        expect(text).toMatch(/^HTTP\/1\.1 400 /)
        expect(JSON.parse(text.slice(text.indexOf('{')))).toMatchObject({ code: 'malformed_request', detail: late })
      }
      const reader = connect(port, '127.0.0.1')
      const cut = new Promise((resolve) => reader.once('close', resolve))
      reader.on('error', () => undefined).pause()
      reader.write('GET /much HTTP/1.1\r\nHost: x\r\n\r\n')
      await expect.poll(() => http.cut, { timeout: 40_000 }).toBe(true)
      reader.destroy()
      await cut
      expect(await said(port, `${head}Content-Length: 5\r\nConnection: close\r\n\r\nhello`)).toMatch(/\r\n\r\nhello$/)
    } finally {
      await http.app.close()
    }
  })
})

/** Starts a server with the same limits but shorter timeouts. */
async function hasty() {
  const short = { headersMs: 500, requestMs: 1_000, keepAliveMs: 5_000, silenceMs: 2_000, checkMs: 50 }
  const app = Fastify(sockets(testConfig(), short))
  const http = { app, cut: false }
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body))
  app.post('/echo', async ({ body }) => body)
  app.get('/much', async ({ raw }) => {
    raw.socket.once('close', () => {
      http.cut = true
    })
    return Buffer.alloc(64 * 1024 * 1024)
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  return { http, port: (app.server.address() as AddressInfo).port }
}
