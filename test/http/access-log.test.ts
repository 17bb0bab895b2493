// The log has one line for each request, with its request id. No line contains texts of users or
// secrets. The tests use unique names, addresses and secrets in all inputs and search for them in
// the log.
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { bufferedSink, loggedPath, wholeLines } from '../../src/http/access-log.ts'
import { errorOf, redactLine, scrubWhole } from '../../src/http/log-redaction.ts'
import { BuryJob } from '../../src/jobs/queue.ts'
import { Veto } from '../../src/kernel/write/events.ts'
import { MailDeferred } from '../../src/mail/failures.ts'
import { createMailer } from '../../src/mail/outbound.ts'
import { adminPassword, startServer } from '../support/app.ts'
import { given } from '../support/given.ts'
import { needing } from '../support/programs.ts'
import { startReceiver } from '../support/receiver.ts'
import { startSmtp } from '../support/smtp.ts'
import { until } from '../support/until.ts'
import { useNewServers } from '../support/using.ts'

interface Line {
  level: number
  msg: string
  request_id?: string
  [key: string]: unknown
}

let written: string[] = []
let refuse: string | null
let breaks: string | null
const lines = (): Line[] => written.map((line) => JSON.parse(line) as Line)
const answered = (): Line[] => lines().filter(({ msg }) => msg === 'answered')
const errors = (): Line[] => lines().filter(({ level }) => level >= 50)
const capture = { write: (line: string) => void written.push(line) }
/** Texts that no log line may contain. */
const planted = [
  'Wilhelmina',
  'Quackenbush',
  'wilhelmina@quackenbush.example',
  '+49 170 5550123',
  'hunter2-hunter2',
  '192.0.2.99',
]
const person = { name: 'Wilhelmina Quackenbush', emails: [{ value: 'wilhelmina@quackenbush.example', label: 'work' }] }
function expectNothingOf(texts: readonly string[]): void {
  for (const text of texts)
    expect(written.filter((line) => line.toLowerCase().includes(text.toLowerCase()))).toEqual([])
}

const server = useNewServers({
  lines: capture,
  extensions: [
    (events) =>
      events.on('contacts.person.*.before', () => {
        if (refuse !== null) throw new Veto(refuse)
        if (breaks !== null) throw new TypeError(breaks)
      }),
  ],
})
beforeEach(() => {
  written = []
  refuse = null
  breaks = null
})

describe('the line of a request', () => {
  it('is one and the same for all: id, operation, method, path, status, time, bytes, and who asked, by ids', async () => {
    const headers = { 'x-request-id': 'find-me' }
    const reply = await server.admin.get('/leads?title=Wilhelmina', { headers })
    expect(reply.status).toBe(200)
    expect(lines()).toHaveLength(1)
    const { level, time, pid, hostname, ms, bytes, token_id, ...line } = lines()[0] as Line
    expect(line).toEqual({
      request_id: 'find-me',
      operation: 'listLeads',
      method: 'GET',
      path: '/api/admin/leads',
      status: 200,
      user_id: 1,
      session_id: null,
      msg: 'answered',
    })
    expect([typeof ms, bytes, typeof token_id]).toEqual(['number', Number(reply.headers['content-length']), 'number'])
  })

  it('is there for whatever comes: refused, unknown, unreadable, of another method, and says why by a code', async () => {
    const call = (method: 'GET' | 'POST', url: string, payload?: string) =>
      server.inject({
        method,
        url,
        headers: { accept: 'application/json', 'content-type': 'application/json' },
        ...(payload !== undefined && { payload }),
      })
    await call('GET', '/api/admin/leads')
    await server.admin.get('/leads/999')
    await call('GET', '/nothing/here')
    await call('GET', '/%zz')
    await call('POST', '/healthz', '{}')
    await call('POST', '/api/admin/login', '{"email": Wilhelmina}')
    await server.admin.post('/contacts/persons', { name: 7 })
    expect(answered().map(({ operation, status, code }) => [operation, status, code])).toEqual([
      ['listLeads', 401, 'unauthenticated'],
      ['getLead', 404, 'not_found'],
      ['none', 404, 'not_found'],
      ['none', 400, 'malformed_request'],
      ['none', 405, 'method_not_allowed'],
      ['login', 400, 'malformed_json'],
      ['createPerson', 422, 'validation_failed'],
    ])
    expect(lines()).toHaveLength(7)
    expect(new Set(lines().map(({ request_id }) => request_id)).size).toBe(7)
    expectNothingOf(planted)
  })

  it('is written for a caller that goes away before the answer, and for those that wait behind it on the connection', async () => {
    await server.app.http.listen({ host: '127.0.0.1', port: 0 })
    const { port } = server.app.http.server.address() as { port: number }
    written.length = 0
    const socket = connect(port, '127.0.0.1')
    const head = `host: localhost\r\nauthorization: Bearer ${server.admin.token}\r\n`
    socket.write(`GET /api/admin/events HTTP/1.1\r\nx-request-id: first\r\naccept: text/event-stream\r\n${head}\r\n`)
    await new Promise((resolve) => socket.once('data', resolve))
    socket.write(`GET /api/admin/leads HTTP/1.1\r\nx-request-id: second\r\n${head}\r\n`)
    await until(async () => /in_work 2/.test(await server.app.services.metrics.text()))
    socket.destroy()
    await until(() => answered().length === 2)
    const line = Object.fromEntries(answered().map(({ request_id, ...rest }) => [request_id, rest]))
    expect(line.first).toMatchObject({ operation: 'listEvents', status: 200, aborted: true })
    expect(line.first?.bytes).toBeGreaterThan(100)
    expect(line.second).toMatchObject({ operation: 'listLeads', aborted: true })
    expect(await server.app.services.metrics.text()).toMatch(/in_work 0/)
  })

  it('has words of the contract and ids in its path, and nothing else', async () => {
    expect(loggedPath('/api/admin/leads/7/products/12?search=Ada')).toBe('/api/admin/leads/7/products/12')
    expect(loggedPath('/api/unsubscribe/c2VjcmV0LXRva2Vu')).not.toContain('c2VjcmV0')
    expect(loggedPath('/api/admin/contacts/persons/Wilhelmina%20Q')).toBe('/api/admin/contacts/persons/*')
    expect(loggedPath('/api/admin/contacts/persons/4917055501230')).toBe('/api/admin/contacts/persons/*')
    expect(loggedPath('/api/admin/contacts/persons/external/phone/1705550123')).toBe(
      '/api/admin/contacts/persons/external/*/*',
    )
    expect(loggedPath(`/${'a/'.repeat(500)}`).length).toBeLessThan(50)
    await server.anonymous.get('/files/1/signed?expires=4102444800&signature=hunter2-hunter2')
    await server.anonymous.get('//web-forms/unsubscribe/hunter2-hunter2')
    await server.admin.put('/contacts/persons/external/phone/1705550123', person)
    await server.admin.get(`/contacts/persons?email=${encodeURIComponent('wilhelmina@quackenbush.example')}`)
    await server.admin.get('/contacts/persons?phone=1705550123&q=Quackenbush')
    expect(answered().map(({ path }) => path)).toContain('/api/admin/contacts/persons/external/*/*')
    expectNothingOf(['hunter2', '4102444800', '1705550123', ...planted, 'wilhelmina%40'])
  })
})

describe('what went wrong here', () => {
  it('is one line with the stack, beside the line of the request and with the same id', async () => {
    await server.store.db.schema.alterTable('persons').renameTo('persons_gone').execute()
    const reply = await server.admin.post('/contacts/persons', person, { headers: { 'x-request-id': 'broken' } })
    expect(reply.status).toBe(500)
    expect(lines().map(({ msg, request_id }) => [msg, request_id])).toEqual([
      ['A request failed.', 'broken'],
      ['answered', 'broken'],
    ])
    const [error] = errors()
    expect(error?.err).toMatchObject({
      type: 'SqliteError',
      message: expect.stringContaining('no such table'),
      stack: expect.stringMatching(/^SqliteError: no such table.*\n\s+at /),
    })
    expectNothingOf(planted)
  })

  it('records a listener that fails, and not the words of one that refuses, which are for the caller', async () => {
    refuse = 'Wilhelmina Quackenbush asked not to be stored: wilhelmina@quackenbush.example'
    const vetoed = await server.admin.post('/contacts/persons', person)
    expect([vetoed.status, vetoed.body.detail]).toEqual([403, refuse])
    expect(lines().map(({ msg, code }) => [msg, code])).toEqual([['answered', 'event_vetoed']])
    refuse = null
    breaks = 'wilhelmina@quackenbush.example is not a function'
    expect((await server.admin.post('/contacts/persons', person)).status).toBe(500)
    expect(lines().filter(({ level, msg }) => level === 50 && msg !== 'answered')).toMatchObject([
      {
        msg: 'A request failed.',
        err: {
          type: 'ListenerFailed',
          message: 'A listener of contacts.person.create.before failed.',
          cause: { type: 'TypeError', message: '[e-mail] is not a function' },
        },
      },
    ])
    expectNothingOf(planted)
  })

  it('contains no text of requests and replies when users sign in, write and search', async () => {
    const login = { email: 'admin@example.com', password: adminPassword, device_name: 'Phone of Wilhelmina' }
    const { body } = await server.anonymous.post('/login', login)
    await server.anonymous.post('/login', { ...login, email: person.emails[0]?.value, password: 'hunter2-hunter2' })
    await server.admin.post('/contacts/persons', person)
    await server.admin.post('/contacts/persons', person)
    await server.admin.get('/contacts/persons/search?query=Quackenbush')
    await server.inject({
      method: 'GET',
      url: '/api/admin/leads',
      remoteAddress: '192.0.2.99',
      headers: {
        authorization: 'Bearer hunter2-hunter2',
        cookie: 'accord_session=hunter2-hunter2',
        'user-agent': 'Quackenbush',
      },
    })
    expect(answered()).toHaveLength(lines().length)
    expectNothingOf([...planted, 'admin@example.com', adminPassword, body.data.token, body.data.token.split('|')[1]])
  })
})

describe('what others say', () => {
  it('a mail server that refuses with names and addresses is not quoted; the job and the kind of failure are told', async () => {
    const smtp = await startSmtp({ login: { user: 'postman', pass: 'hunter2-hunter2' } })
    const mailer = createMailer({ url: smtp.url, domain: 'localhost' })
    const mailing = await startServer({ lines: capture, mailer })
    written.length = 0
    const letter = {
      subject: 'For Quackenbush',
      html: 'Dear Wilhelmina',
      to: ['wilhelmina@quackenbush.example'],
    }
    const replies = [550, 451, 535]
    for (const reply of replies) {
      smtp.behave({
        reply,
        at: 'rcpt',
        text: '<wilhelmina@quackenbush.example> Wilhelmina Quackenbush at 192.0.2.99 is away',
      })
      const { body } = await mailing.admin.post('/emails', letter)
      await mailing.work()
      const shown = (await mailing.admin.get(`/emails/${body.data.id}`)).body.data
      // The API shows the error to users.
      expect(shown.error).toContain('Wilhelmina Quackenbush')
    }
    const failed = lines().filter(({ level }) => level >= 40)
    expect(failed.map(({ msg, kind }) => [msg, kind])).toEqual([
      ['A job was buried.', 'emails.send'],
      ['A job failed and will be tried again.', 'emails.send'],
      [expect.any(String), 'emails.send'],
    ])
    expectNothingOf([...planted, 'postman'])
    mailer.close()
    await mailing.close()
    await smtp.close()
  })

  it('a receiver of webhooks that answers with names, and its secret, are in no line', async () => {
    const receiver = await startReceiver()
    const config = { webhookAllowHttp: true, webhookAllowCidrs: ['127.0.0.1/32'] }
    const hooked = await startServer({ lines: capture, config })
    const url = `${receiver.url}/hooks/hunter2-hunter2?key=hunter2-hunter2`
    const hook = { name: 'For Wilhelmina', url, events: ['lead.create.after'] }
    const made = await hooked.admin.post('/settings/webhooks', hook)
    expect(made.status, made.text).toBe(201)
    for (const behavior of [{ mode: 'status', status: 500 }, { mode: 'drop' }] as const) {
      receiver.behave(behavior)
      await given(hooked.admin).lead({ title: 'Quackenbush' })
      await hooked.work()
    }
    expect(lines().length).toBeGreaterThan(0)
    expectNothingOf([...planted, made.body.data.secret ?? 'whsec_', 'whsec_'])
    await hooked.close()
    await receiver.close()
  })
})

const words = ['token', 'password', 'cookie', 'Bearer ', 'bob@x.example', '192.0.2.7', '":', '\\"', 'null', '://a:b@c']

describe('the last line of defence', () => {
  const clean = (text: string): unknown =>
    (JSON.parse(redactLine(`${JSON.stringify({ text })}\n`)) as { text: string }).text

  it.each([
    ['550 <bob@x> unknown', '550 <[e-mail]> unknown'],
    ['to "Bob Smith"@example.com, now', 'to [e-mail], now'],
    ['jörg.müller+crm@straße.example.', '[e-mail].'],
    ["o'neil@[192.0.2.1]", '[e-mail]'],
    ['GET /x?email=bob%40example.com', 'GET /x?email=[e-mail]'],
    ['Bearer 12|abcdefghijklmnopqrstuvwxyz', 'Bearer [secret]'],
    ['token 12|abcdefghijklmnopqrstuvwxyz was', 'token [token] was'],
    ['Basic dXNlcjpwYXNz', 'Basic [secret]'],
    ['smtp://user:p@ss:word@mail.example.com:25', 'smtp://[secret]@mail.example.com:25'],
    ['postgres://crm:secret@[::1]/x', 'postgres://[secret]@[::1]/x'],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', '[secret]'],
    ['cookie: accord_session=abc; XSRF-TOKEN=def', 'cookie: [secret]'],
    ['accord_session=abcdef; Path=/', 'accord_session=[secret]; Path=/'],
    ['{"password":"hunter2","n":1}', '{"password":"[secret]","n":1}'],
    ['{"password": "hunter2, and \\"more\\" of it","n":1}', '{"password": "[secret]","n":1}'],
    ['api_key=hunter2&x=1', 'api_key=[secret]&x=1'],
    ['of Accord CRM listens on http://192.168.1.5:8000', 'of Accord CRM listens on http://[address]:8000'],
    ['connect ECONNREFUSED 192.0.2.7:587', 'connect ECONNREFUSED [address]:587'],
    ['from 2001:db8::17 and fe80:0:0:0:1:2:3:4', 'from [address] and [address]'],
  ])('takes the secret out of %j', (text, expected) => {
    expect(clean(text)).toBe(expected)
  })

  it.each([
    'Accord CRM listens on http://127.0.0.1:8000',
    // The operator needs the address of the server.
    'Accord CRM listens on http://192.168.1.5:8000',
    'Accord CRM listens on http://[2001:db8::17]:8000',
    '    at file:///srv/accord/node_modules/@fastify/busboy/lib/main.js:12:34',
    '    at serve (/srv/accord/node_modules/@fastify/busboy/lib/main.js:12:34)',
    'SQLITE_CONSTRAINT_UNIQUE: UNIQUE constraint failed: persons.name',
    '2026-03-01T09:30:00.000Z 12:34:56',
    'node 20.19.1, 5|6, ::',
  ])('leaves %j as it is', (text) => {
    expect(clean(text)).toBe(text)
  })

  it('takes the value of a secret whatever it is, and leaves what says that there is none', () => {
    const line = (fields: object): unknown => JSON.parse(redactLine(`${JSON.stringify(fields)}\n`))
    const of = { a: 1 }
    expect(line({ token: 'abc def', password: 7, cookie: [of], 'set-cookie': of, x: { authorization: 'y' } })).toEqual({
      token: '[secret]',
      password: '[secret]',
      cookie: '[secret]',
      'set-cookie': '[secret]',
      x: { authorization: '[secret]' },
    })
    const none = { token: null, secret: false, cookie: null, token_id: 7, 'token=': 5 }
    expect(line(none)).toEqual(none)
  })

  it('leaves every line one line of JSON, however deep its secrets are', () => {
    const secret = fc.constantFrom('token', 'password', 'Set-Cookie', 'cookie', 'authorization', 'api_key', 'a secret')
    const { any } = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        fc.string({ unit: fc.constantFrom(...'"\\:=[]{},;@|\n a1ü'.split(''), ...words) }),
        fc.constantFrom(null, true, 1.5e30, -7),
        fc.dictionary(fc.oneof(secret, fc.string()), tie('any')),
        fc.array(tie('any'), { maxLength: 4 }),
        // JSON inside a text, as in quoted messages of other servers.
        tie('any').map((value) => JSON.stringify({ token: value, text: value })),
      ),
    }))
    fc.assert(
      fc.property(any, secret, fc.constantFrom('', '"', ' ', ',', '}', '\\'), (value, name, sign) => {
        const hidden = `hun${sign}ter2-hunter2`
        const about = { msg: 'x', [name]: hidden, value, said: JSON.stringify({ token: hidden, n: value }) }
        const written = redactLine(`${JSON.stringify(about)}\n`)
        expect(written.split('\n')).toEqual([expect.any(String), ''])
        expect(JSON.parse(written)).toMatchObject({ msg: 'x', [name]: '[secret]' })
        expect(written).not.toContain('ter2-hunter2')
      }),
    )
  })

  it('passes nothing over that would be taken out', () => {
    const part = fc.oneof(
      fc.constantFrom(
        ...words,
        '\t',
        '\n',
        ' ',
        '=',
        ':',
        'a',
        'f00d',
        '|',
        '%40',
        '@',
        '[',
        '12',
        '.',
        '8.8.8.8',
        'fe80::1',
      ),
      fc.constantFrom(
        'basic',
        'Cookie',
        'whsec_',
        'XSRF-TOKEN',
        '__Host-a',
        'accord_session',
        'apikey',
        'Signature',
        'ü',
      ),
      fc.string({ maxLength: 4 }),
    )
    const text = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''))
    const value = fc.oneof(text, fc.dictionary(text, text, { maxKeys: 2 }), fc.array(text, { maxLength: 2 }))
    fc.assert(
      fc.property(text, value, (name, said) => {
        const line = `${JSON.stringify({ level: 30, [name]: said, msg: 'x' })}\n`
        expect(JSON.parse(redactLine(line))).toEqual(JSON.parse(scrubWhole(line)))
      }),
      { numRuns: 2_000 },
    )
  })

  it('takes no longer for a long line than for as many short ones', () => {
    const long = `${'a'.repeat(200_000)} ${'1:'.repeat(50_000)} ${'://'.repeat(30_000)} ${'"a'.repeat(20_000)}`
    expect(clean(long)).toBe(long)
  })

  it('records the kind and place of an error, and no words that may quote a person', () => {
    const quoting = new Error('550 Wilhelmina is away', {
      cause: new MailDeferred('550 Wilhelmina is away', { cause: 'raw' }),
    })
    expect(errorOf(quoting)).toMatchObject({
      type: 'Error',
      message: '',
      cause: { type: 'MailDeferred', message: '', stack: '' },
    })
    expect(JSON.stringify(errorOf(quoting))).not.toContain('Wilhelmina')
    expect(JSON.stringify(errorOf(new BuryJob('No Wilhelmina', { cause: new Error('Wilhelmina') })))).not.toContain(
      'Wilhelmina',
    )
    const library = Object.assign(new Error('failed'), {
      response: 'Wilhelmina',
      code: 'EAUTH',
      config: { password: 'x' },
    })
    expect(errorOf(library)).toMatchObject({ type: 'Error', message: 'failed', code: 'EAUTH' })
    expect(Object.keys(errorOf(library)).sort()).toEqual(['code', 'message', 'stack', 'type'])
    let parsing: unknown
    try {
      JSON.parse('{"name": Wilhelmina}')
    } catch (error) {
      parsing = error
    }
    expect(JSON.stringify(errorOf(parsing))).not.toContain('Wilh')
    expect(errorOf('Wilhelmina')).toEqual({ type: 'string', message: '', stack: '' })
  })
})

describe('where the lines go', () => {
  it('takes pieces of whole lines that a pipe does not split, and a longer line alone', () => {
    const line = (length: number): string => `${'x'.repeat(length - 1)}\n`
    const piece = (...lengths: number[]): number => wholeLines(Buffer.from(lengths.map(line).join('')))
    expect(piece(300, 300)).toBe(600)
    expect(piece(4_000, 96, 300)).toBe(4_096)
    expect(piece(4_000, 97, 300)).toBe(4_000)
    expect(piece(5_000, 300)).toBe(5_000)
    expect(wholeLines(Buffer.from('x'.repeat(5_000)))).toBe(5_000)
  })

  const line = (level: number, n: number) => `${JSON.stringify({ level, n })}\n`

  it('gets several at a time, in their order, and at once what warns', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'accord-lines-')), 'log')
    const file = openSync(path, 'w')
    const { write } = bufferedSink(file)
    const written = () => readFileSync(path, 'utf8')
    write(line(30, 1))
    write(line(30, 2))
    expect(written()).toBe('')
    write(line(40, 3))
    expect(written()).toBe(line(30, 1) + line(30, 2) + line(40, 3))
    write(line(30, 4))
    await until(() => written().endsWith(line(30, 4)))
    closeSync(file)
    rmSync(join(path, '..'), { recursive: true })
  })

  needing('/dev/full').it('may have no room: the lines are lost, and nothing waits for it', () => {
    const full = openSync('/dev/full', 'w')
    const { write } = bufferedSink(full)
    for (let n = 0; n < 3; n++) write(line(50, n))
    closeSync(full)
  })
})
