// Outgoing calls: allowed addresses, a DNS name whose address changes, and invalid replies.
import { createServer } from 'node:net'
import { SMTPServer } from 'smtp-server'
import { describe, expect, it } from 'vitest'
import { addressCheck } from '../../../src/kernel/outbound/address-guard.ts'
import { createOutbound, OutboundError, type OutboundOptions } from '../../../src/kernel/outbound/client.ts'
import { useReceiver } from '../../support/outside.ts'

const receiver = useReceiver()

const strict = { allowCidrs: [], allowHttp: true, connectMs: 20_000, totalMs: 20_000 }
const local = { ...strict, allowCidrs: ['127.0.0.1/32'] }

const get = (url: string, options: OutboundOptions = local) => createOutbound(options).request({ method: 'get', url })
/** Returns the kind and the sentence of a fault. */
const fault = async (call: Promise<unknown>): Promise<[string, string]> => {
  const error = await call.then(
    () => null,
    (error: unknown) => error,
  )
  if (!(error instanceof OutboundError)) throw new Error('This should have failed as OutboundError.', { cause: error })
  expect(error.message).not.toContain('\n')
  return [error.kind, error.message]
}

describe('the addresses that may be reached', () => {
  it.each([
    ['127.0.0.1', 'a loopback'],
    ['127.255.255.254', 'a loopback'],
    ['10.1.2.3', 'a private'],
    ['172.16.0.1', 'a private'],
    ['172.31.255.255', 'a private'],
    ['192.168.1.1', 'a private'],
    ['169.254.169.254', 'a link-local'],
    ['100.64.0.1', 'a carrier-grade NAT'],
    ['0.0.0.0', 'an unspecified'],
    ['0.1.2.3', 'an unspecified'],
    ['255.255.255.255', 'a broadcast'],
    ['224.0.0.1', 'a multicast'],
    ['239.255.255.255', 'a multicast'],
    ['240.0.0.1', 'a reserved'],
    ['192.0.0.1', 'a reserved'],
    ['192.0.2.1', 'a reserved'],
    ['198.18.0.1', 'a reserved'],
    ['::', 'an unspecified'],
    ['::1', 'a loopback'],
    ['::7f00:1', 'a reserved'],
    ['::ffff:127.0.0.1', 'an IPv4-mapped'],
    ['::ffff:8.8.8.8', 'an IPv4-mapped'],
    ['::ffff:0:127.0.0.1', 'a translated'],
    ['64:ff9b::7f00:1', 'a translated'],
    ['64:ff9b:1::a00:1', 'a translated'],
    ['2002:7f00:1::', 'a 6to4'],
    ['2001:0:1::1', 'a tunnelled'],
    ['fc00::1', 'a unique-local'],
    ['fd12:3456::1', 'a unique-local'],
    ['fe80::1', 'a link-local'],
    ['fec0::1', 'a reserved'],
    ['ff02::1', 'a multicast'],
    ['100::1', 'a reserved'],
    ['2001:db8::1', 'a reserved'],
    ['4000::1', 'a reserved'],
    ['no address', 'an unreadable'],
  ])('%s is %s address and none of them', (address, kind) => {
    expect(addressCheck([])(address)).toBe(kind)
  })

  it.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '2606:4700::1111'])('%s is public', (address) => {
    expect(addressCheck([])(address)).toBeNull()
  })

  it('are widened by networks and single addresses, of which a mapped address is one as well', () => {
    const check = addressCheck(['10.1.0.0/16', '192.168.7.7', 'fd00::/8'])
    for (const address of ['10.1.255.1', '192.168.7.7', 'fd12::1', '::ffff:10.1.0.1']) expect(check(address)).toBeNull()
    for (const address of ['10.2.0.1', '192.168.7.8', 'fc00::1', '::ffff:10.2.0.1', '64:ff9b::a01:1'])
      expect(check(address)).not.toBeNull()
  })
})

describe('where a call goes', () => {
  it.each([
    ['localhost', (port: number) => `http://localhost:${port}/`],
    ['127.0.0.1', (port: number) => `http://127.0.0.1:${port}/`],
    ['a short notation', (port: number) => `http://127.1:${port}/`],
    ['a hexadecimal one', (port: number) => `http://0x7f.1:${port}/`],
    ['an octal one', (port: number) => `http://0177.0.0.1:${port}/`],
    ['a single number', (port: number) => `http://2130706433:${port}/`],
    ['full-width digits', (port: number) => `http://\uff11\uff12\uff17.0.0.1:${port}/`],
    ['a mapped address', (port: number) => `http://[::ffff:127.0.0.1]:${port}/`],
    ['the loopback of IPv6', (port: number) => `http://[::1]:${port}/`],
    ['zero', (port: number) => `http://0:${port}/`],
  ])('is not the own network: %s', async (_what, url) => {
    const [kind, message] = await fault(get(url(receiver.port), strict))
    expect(kind).toBe('refused-address')
    expect(message).toMatch(/ address\. ACCORD_WEBHOOK_ALLOW_CIDRS names networks that may be called\.$/)
    expect(receiver.received).toEqual([])
  })

  it('is the own network where it is allowed', async () => {
    const reply = await get(`http://127.0.0.1:${receiver.port}/hooks?a=1#part`)
    expect(reply).toMatchObject({ status: 200, excerpt: 'thank you' })
    expect(reply.ms).toBeGreaterThanOrEqual(0)
    expect(receiver.received).toMatchObject([{ method: 'GET', path: '/hooks', query: { a: '1' }, body: '' }])
    expect(receiver.received[0]?.headers).toMatchObject({ host: `127.0.0.1:${receiver.port}`, connection: 'close' })
  })

  it('is refused when one address of several is not fit to be reached', async () => {
    const lookup = async () => ['127.0.0.1', '10.0.0.1']
    const [kind] = await fault(get(`http://hooks.example:${receiver.port}/`, { ...local, lookup }))
    expect(kind).toBe('refused-address')
    expect(receiver.received).toEqual([])
  })

  it('is the address that was checked, although the name answers another one when it is asked again', async () => {
    const answers = [['127.0.0.1'], ['127.0.0.2']]
    let asked = 0
    const lookup = async () => answers[asked++] ?? ['127.0.0.2']
    const reply = await get(`http://hooks.example:${receiver.port}/`, { ...local, lookup })
    expect([reply.status, asked]).toEqual([200, 1])
    expect(receiver.received[0]?.headers.host).toBe(`hooks.example:${receiver.port}`)
    // The address changes the other way round: only its current value counts.
    const [kind] = await fault(get(`http://hooks.example:${receiver.port}/`, { ...local, lookup }))
    expect([kind, receiver.received.length]).toEqual(['refused-address', 1])
  })

  it('is never where a redirect points', async () => {
    receiver.behave({ mode: 'redirect', to: `http://127.0.0.1:${receiver.port}/inner` })
    const reply = await get(`http://127.0.0.1:${receiver.port}/outer`)
    expect([reply.status, reply.headers.location]).toEqual([302, `http://127.0.0.1:${receiver.port}/inner`])
    expect(receiver.received.map(({ path }) => path)).toEqual(['/outer'])
  })

  it.each([
    ['ftp://example.com/', 'Only https addresses are called.'],
    ['file:///etc/passwd', 'Only https addresses are called.'],
    ['/hooks', 'The address is not an absolute URL.'],
    ['https://user:pass@example.com/?token=abc', 'The address must not carry a name or password.'],
  ])('is nothing else than a plain web address: %s', async (url, sentence) => {
    expect(await fault(get(url))).toEqual(['invalid', sentence])
  })

  it('is encrypted unless the installation says otherwise', async () => {
    const [kind] = await fault(get(receiver.url, { ...local, allowHttp: false }))
    expect([kind, receiver.received.length]).toEqual(['invalid', 0])
  })
})

describe('what is sent', () => {
  it('is method, headers and body as they were handed in', async () => {
    const { status } = await createOutbound(local).request({
      method: 'PATCH',
      url: `${receiver.url}/x`,
      headers: { 'X-Team': 'sales', 'content-type': 'application/json' },
      body: '{"a":"ä"}',
    })
    expect(status).toBe(200)
    const [request] = receiver.received
    expect(request).toMatchObject({ method: 'PATCH', body: '{"a":"ä"}' })
    expect(request?.headers).toMatchObject({ 'x-team': 'sales', 'content-length': '10' })
    expect(request?.headers['user-agent']).toMatch(/^Accord-CRM\//)
  })

  it('is never a header of two lines, and the refusal does not show its value', async () => {
    const call = createOutbound(local).request({
      method: 'POST',
      url: receiver.url,
      headers: { 'x-key': 'a\r\nb: hidden' },
    })
    const [kind, message] = await fault(call)
    expect(kind).toBe('invalid')
    expect(message).not.toContain('hidden')
    expect(receiver.received).toEqual([])
  })
})

describe('bad answers', () => {
  const url = (): string => `${receiver.url}/hooks?key=abc`

  it.each([
    ['hang', 'timeout', /did not answer within \d+ ms\.$/],
    ['slowBody', 'timeout', /did not answer within \d+ ms\.$/],
    ['drop', 'dropped', /ended the connection before its answer was complete\.$/],
    ['half', 'dropped', /ended the connection before its answer was complete\.$/],
  ] as const)('%s is a fault of the kind %s, sent once, told without path and query', async (mode, kind, sentence) => {
    receiver.behave(mode)
    const found = await fault(get(url(), kind === 'timeout' ? { ...local, totalMs: 1_500 } : local))
    expect(found).toEqual([kind, expect.stringMatching(sentence)])
    expect(found[1]).not.toMatch(/abc|hooks/)
    expect(receiver.received).toHaveLength(1)
  })

  it('a body without end is read no further than anybody needs, and 1 KB of it is kept', async () => {
    receiver.behave('huge')
    const { status, excerpt } = await get(url())
    expect([status, excerpt]).toEqual([200, 'x'.repeat(1024)])
  })

  it('unhandled rejection', async () => {
    await receiver.stop()
    expect(await fault(get(url()))).toEqual(['connect', 'No connection to 127.0.0.1 (ECONNREFUSED).'])
    await receiver.start()
    expect((await get(url())).status).toBe(200)
  })

  it('a name that does not exist, one without addresses, and one whose server is silent', async () => {
    const named = (lookup: () => Promise<string[]>) =>
      fault(get('http://hooks.example/', { ...local, connectMs: 50, lookup }))
    expect(await named(() => Promise.reject(new Error('ENOTFOUND')))).toEqual(['dns', 'hooks.example was not found.'])
    expect(await named(async () => [])).toEqual(['dns', 'hooks.example has no address.'])
    expect(await named(() => new Promise(() => undefined))).toEqual([
      'timeout',
      'hooks.example was not resolved in time.',
    ])
  })

  it('name servers that are silent hold two look-ups at most, one for a name, and none without a waiting caller', async () => {
    const asked: string[] = []
    const answers = new Map<string, (addresses: string[]) => void>()
    const lookup = (host: string) =>
      new Promise<string[]>((answer) => {
        asked.push(host)
        answers.set(host, answer)
      })
    const outbound = createOutbound({ ...local, connectMs: 2_000, lookup })
    const call = (host: string) => outbound.request({ method: 'get', url: `http://${host}:${receiver.port}/` })
    const late = ['a.example', 'b.example', 'a.example', 'c.example'].map((host) => fault(call(host)))
    expect((await Promise.all(late)).map(([kind]) => kind)).toEqual(['timeout', 'timeout', 'timeout', 'timeout'])
    expect(asked).toEqual(['a.example', 'b.example'])
    const patient = [call('d.example'), call('b.example')]
    answers.get('a.example')?.([])
    await expect.poll(() => asked, { interval: 5 }).toEqual(['a.example', 'b.example', 'd.example'])
    for (const name of ['d.example', 'b.example']) answers.get(name)?.(['127.0.0.1'])
    expect((await Promise.all(patient)).map(({ status }) => status)).toEqual([200, 200])
  })

  it('an answer that is no HTTP', async () => {
    const server = createServer((socket) => void socket.on('error', () => undefined).end('220 mail.example ESMTP\r\n'))
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const { port } = server.address() as { port: number }
    expect((await fault(get(`http://127.0.0.1:${port}/`)))[0]).toBe('dropped')
    server.close()
  })

  it('a certificate without a trusted issuer, and no encryption at all', async () => {
    const smtp = new SMTPServer({ secure: true, logger: false })
    smtp.on('error', () => undefined)
    await new Promise<void>((done) => smtp.listen(0, '127.0.0.1', done))
    const { port } = smtp.server.address() as { port: number }
    expect((await fault(get(`https://127.0.0.1:${port}/`)))[0]).toBe('tls')
    expect((await fault(get(`https://127.0.0.1:${receiver.port}/`)))[0]).toBe('tls')
    await new Promise<void>((done) => smtp.close(done))
  })

  it('a call that is called off ends at once', async () => {
    receiver.behave('hang')
    const controller = new AbortController()
    const call = createOutbound(local).request({ method: 'get', url: url() }, controller.signal)
    setTimeout(() => controller.abort(), 50)
    await expect(call).rejects.toMatchObject({ name: 'AbortError' })
  })
})
