// Outgoing calls to hostile servers: names and notations of internal addresses, replies that a
// client must not accept, and environment variables that would redirect calls.
import { createServer, type Server, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addressCheck } from '../../../src/kernel/outbound/address-guard.ts'
import { createOutbound, OutboundError } from '../../../src/kernel/outbound/client.ts'
import { useReceiver } from '../../support/outside.ts'

const strict = { allowCidrs: [], allowHttp: true, connectMs: 20_000, totalMs: 20_000 }
const local = { ...strict, allowCidrs: ['127.0.0.1/32'] }

const receiver = useReceiver()

/** Returns the kind of fault, or `answered` for a successful call. */
const outcome = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'answered',
    (error: unknown) => {
      if (error instanceof OutboundError) return error.kind
      throw error
    },
  )

describe('an address of no particular host', () => {
  it.each([
    // Metadata services of cloud machines.
    '169.254.169.254',
    'fd00:ec2::254',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    // IPv6 addresses that embed an IPv4 address.
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::808:808',
    '2002:a9fe:a9fe::',
    '2001:0:a9fe:a9fe::1',
    '::127.0.0.1',
    '0:0:0:0:0:ffff:7f00:1',
    '192.88.99.1',
    // Link-local, documentation and other reserved networks.
    'fe80::1%lo',
    'fe80::1%1',
    '198.51.100.1',
    '203.0.113.1',
    '2001:2::1',
    '2001:10::1',
    '2001:20::1',
    '3fff::1',
    '5f00::1',
    '100.127.255.255',
    // Invalid addresses, and notations that other programs parse differently.
    '0177.0.0.1',
    '127.1',
    '2130706433',
    '1.1.1.1.',
    '0x7f000001',
    '',
    ' 1.1.1.1',
  ])('%s is not called', (address) => {
    expect(addressCheck([])(address)).not.toBeNull()
  })

  it.each([
    'http://127.0.0.1.',
    'http://localhost.',
    'http://LOCALHOST',
    'http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460',
    'http://0x7f000001',
    'http://017700000001',
    'http://127.0.0.1\u3002',
    'http://example.com@127.0.0.1',
    'http:\\\\127.0.0.1',
    'http://[::1%25lo]',
    'http://[::ffff:7f00:1]',
    'http://[0:0:0:0:0:0:0:1]',
  ])('%s is no way to the own network', async (origin) => {
    const url = `${origin}:${receiver.port}/`
    expect(['refused-address', 'invalid', 'dns']).toContain(
      await outcome(createOutbound(strict).request({ method: 'get', url })),
    )
    expect(receiver.received).toEqual([])
  })

  it('is resolved anew by every call: a name that turns to the own network is not called any more', async () => {
    const answers = [['127.0.0.1'], ['10.0.0.1'], ['::1'], ['::ffff:127.0.0.1'], ['127.0.0.1', '169.254.169.254']]
    let asked = 0
    const outbound = createOutbound({
      ...strict,
      allowCidrs: ['127.0.0.1/32'],
      lookup: async () => answers[asked++] ?? [],
    })
    const url = `http://rebinding.example:${receiver.port}/`
    const told: string[] = []
    for (const _each of answers) told.push(await outcome(outbound.request({ method: 'get', url })))
    expect(told).toEqual(
      ['answered', 'refused-address', 'refused-address', 'answered', 'refused-address'].map((each, index) =>
        index === 3 ? expect.stringMatching(/answered|connect/) : each,
      ),
    )
    expect(receiver.received.length).toBeLessThanOrEqual(2)
  })

  it('is not reached through a proxy that the environment names', async () => {
    const names = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY']
    const before = Object.fromEntries(names.map((name) => [name, process.env[name]]))
    for (const name of names) process.env[name] = receiver.url
    try {
      const outbound = createOutbound({ ...local, lookup: async () => ['127.0.0.2'] })
      expect(await outcome(outbound.request({ method: 'get', url: 'http://hooks.example:9/' }))).toBe('refused-address')
      const [url, port] = [`http://127.0.0.1:${receiver.port}/direct`, receiver.port]
      expect((await createOutbound(local).request({ method: 'get', url })).status).toBe(200)
      expect(receiver.received.map(({ path, headers }) => [path, headers.host])).toEqual([
        ['/direct', `127.0.0.1:${port}`],
      ])
    } finally {
      for (const [name, value] of Object.entries(before)) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    }
  })
})

describe('an answer made to hurt', () => {
  let server: Server
  const sockets = new Set<Socket>()
  let answer: (socket: Socket) => void = (socket) => socket.end()
  beforeAll(async () => {
    server = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
      socket.once('data', () => answer(socket))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const call = (options = local) => {
    const { port } = server.address() as { port: number }
    return createOutbound(options).request({ method: 'post', url: `http://127.0.0.1:${port}/?key=abc`, body: 'x' })
  }

  it('is not unpacked: what is compressed stays as it came, and the beginning of it is kept', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024))
    answer = (socket) =>
      socket.end(
        Buffer.concat([
          Buffer.from(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`),
          bomb,
        ]),
      )
    const { status, excerpt } = await call()
    expect(status).toBe(200)
    expect(excerpt.length).toBeLessThanOrEqual(1024)
  })

  it.each([
    ['headers without end', `HTTP/1.1 200 OK\r\n${'X-Pad: aaaaaaaaaaaaaaaaaaaaaaaa\r\n'.repeat(4000)}`],
    ['one header without end', `HTTP/1.1 200 OK\r\nX-Pad: ${'a'.repeat(200_000)}`],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
    ['a length that is none', 'HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n'],
    ['chunks that are none', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
    ['no HTTP at all', '220 mail.example ESMTP\r\n'],
    ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n'],
  ])('%s is a fault, and says nothing of the path', async (_what, text) => {
    answer = (socket) => socket.end(text)
    const error = await call().then(
      () => null,
      (error: unknown) => error,
    )
    expect(error).toBeInstanceOf(OutboundError)
    expect((error as Error).message).not.toMatch(/abc|\n/)
  })

  it('of interim replies without end is given up in time', async () => {
    answer = (socket) => {
      const more = setInterval(() => {
        if (socket.destroyed) clearInterval(more)
        else socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
      }, 20)
      more.unref()
    }
    expect(await outcome(call({ ...local, totalMs: 1000 }))).toMatch(/timeout|dropped|invalid/)
  })
})
