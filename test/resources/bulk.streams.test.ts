// A bulk write over a connection: answers while the body arrives, pressure on both sides, cuts, and
// the stored answers of an Idempotency-Key.
import { randomUUID } from 'node:crypto'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { startServer, type TestServer } from '../support/app.ts'
import { newName } from '../support/names.ts'
import { until } from '../support/until.ts'
import { addUser } from '../support/viewers.ts'

type Answer = Schema<'BulkAnswer'>

let server: TestServer
let port: number
const logged: string[] = []
beforeAll(async () => {
  server = await startServer({ lines: { write: (line) => logged.push(line) } })
  await server.app.http.listen({ host: '127.0.0.1', port: 0 })
  port = (server.app.http.server.address() as AddressInfo).port
})
afterAll(async () => server.close())

interface Stream {
  sending: ClientRequest
  reply: Promise<IncomingMessage>
  /** The answers that have arrived. */
  answers: Answer[]
  /** Resolves when the reply has ended or the connection was closed. */
  over: Promise<void>
}

/** Opens a bulk write. Its answers are read unless `isReading` is false. */
function open(headers: Record<string, string> = {}, { isReading = true, token = server.admin.token } = {}): Stream {
  const sending = request({
    ...{ host: '127.0.0.1', port, method: 'POST', path: '/api/admin/bulk' },
    headers: {
      ...{ accept: 'application/json', authorization: `Bearer ${token}`, 'content-type': 'application/x-ndjson' },
      ...headers,
    },
  })
  sending.flushHeaders()
  const answers: Answer[] = []
  const reply = new Promise<IncomingMessage>((resolve, reject) =>
    sending.once('response', resolve).once('error', reject),
  )
  const over = reply.then(
    (message) =>
      new Promise<void>((resolve) => {
        let rest = ''
        if (isReading)
          message.setEncoding('utf8').on('data', (text: string) => {
            const lines = (rest + text).split('\n')
            rest = lines.pop() ?? ''
            answers.push(...lines.map((line) => JSON.parse(line) as Answer))
          })
        message.once('close', resolve).on('error', () => undefined)
      }),
    () => undefined,
  )
  sending.on('error', () => undefined)
  return { sending, reply, answers, over }
}

const lead = (title: string) => `${JSON.stringify({ op: 'create', type: 'leads', fields: { title, lead_value: 1 } })}\n`
const titles = async (name: string): Promise<string[]> =>
  (
    await server.store.db.selectFrom('leads').select('title').where('title', 'like', `${name}%`).orderBy('id').execute()
  ).map(({ title }) => title)
const sent = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => lead(`${name} ${index}`))

describe('a bulk write over a connection', () => {
  it('answers each line while the next ones are not sent yet', async () => {
    const name = newName('Slow')
    const { sending, answers, over } = open()
    const bytes = Buffer.from(lead(`${name} 😀`))
    sending.write(lead(`${name} 0`))
    await until(() => answers.length === 1)
    const at = bytes.indexOf(0xf0) + 2
    sending.write(bytes.subarray(0, at))
    await pause(20)
    expect(answers).toHaveLength(1)
    sending.write(bytes.subarray(at))
    await until(() => answers.length === 2)
    sending.end(lead(`${name} 2`).trimEnd())
    await over
    expect(answers.map(({ did }) => did)).toEqual(['created', 'created', 'created'])
    expect(await titles(name)).toEqual([`${name} 0`, `${name} 😀`, `${name} 2`])
  })

  it('reads no further while the client does not take the answers', async () => {
    const { sending, reply, answers, over } = open({}, { isReading: false })
    const part = '{"op":"create","type":"leads","fields":{}}\n'.repeat(1000)
    let written = 0
    let isFull = false
    const write = (): void => {
      while (!isFull && written < 200) {
        written++
        isFull = !sending.write(part)
      }
    }
    sending.on('drain', () => {
      isFull = false
      write()
    })
    write()
    const message = await reply
    let before = -1
    while (written !== before) {
      before = written
      await pause(1_500)
    }
    expect(written).toBeLessThan(200)
    sending.destroy()
    message.destroy()
    await over
    expect(answers).toEqual([])
  }, 60_000)

  it('carries out no line that was cut, and logs no error, when the client hangs up', async () => {
    const name = newName('Gone')
    const from = logged.length
    const { sending, answers, over } = open()
    sending.write(lead(`${name} 0`) + lead(`${name} 1`).slice(0, -3))
    await until(() => answers.length === 1)
    sending.destroy()
    await over
    const idle = open()
    idle.sending.destroy()
    await until(() => logged.slice(from).some((line) => line.includes('bulkWrite')))
    await pause(100)
    expect(await titles(name)).toEqual([`${name} 0`])
    for (const line of logged.slice(from)) expect(JSON.parse(line).level, line).toBeLessThan(40)
  })

  it('ends with a 401 when the token is revoked meanwhile', async () => {
    const caller = await server.as(1)
    const { sending, answers, over } = open({}, { token: caller.token })
    sending.write(lead(newName('Before')))
    await until(() => answers.length === 1)
    const id = Number(caller.token?.split('|')[0])
    expect((await server.admin.delete(`/tokens/${id}`)).status).toBe(200)
    sending.write(lead(newName('After')))
    await over
    expect(answers.map(({ status }) => status)).toEqual([201, 401])
  })
})

describe('a bulk write with an Idempotency-Key', () => {
  it('continues after a cut at the first line that was not carried out, and repeats the earlier answers', async () => {
    const name = newName('Resumed')
    const lines = sent(name, 350)
    const key = { 'idempotency-key': randomUUID() }
    const first = open(key)
    first.sending.write(lines.slice(0, 150).join(''))
    await until(() => first.answers.length === 150)
    first.sending.destroy()
    await first.over
    const second = open(key)
    second.sending.write(lines.slice(0, 120).join(''))
    await until(() => second.answers.length >= 100)
    second.sending.destroy()
    await second.over
    const third = open(key)
    third.sending.end(lines.join(''))
    await third.over
    expect((await third.reply).headers['idempotency-replayed']).toBe('true')
    expect(third.answers.slice(0, 150)).toEqual(first.answers)
    expect(third.answers.map(({ line }) => line)).toEqual(lines.map((_line, index) => index + 1))
    expect(await titles(name)).toEqual(lines.map((_line, index) => `${name} ${index}`))
    const again = open(key)
    again.sending.end(lines.join(''))
    await again.over
    expect(again.answers).toEqual(third.answers)
    expect(await titles(name)).toHaveLength(350)
  })

  it('refuses other lines with the same key', async () => {
    const name = newName('Other')
    const key = { 'idempotency-key': randomUUID() }
    const answersTo = async (text: string, headers = key) => {
      const { sending, answers, over } = open(headers)
      sending.end(text)
      await over
      return answers.map(({ did, problem }) => did ?? problem?.code)
    }
    expect(await answersTo(sent(name, 2).join(''))).toEqual(['created', 'created'])
    const refused = ['idempotency_key_reused']
    expect(await answersTo(lead('Another'))).toEqual(refused)
    expect(await answersTo(`\n${sent(name, 2).join('')}`)).toEqual(refused)
    expect(await answersTo(sent(name, 3).join(''))).toEqual(['created', 'created', ...refused])
    expect(await titles(name)).toHaveLength(2)
    const create = await server.admin.post('/leads', { title: name, lead_value: 1 }, { headers: key })
    expect(create.body.code).toBe('idempotency_key_reused')
    const stopping = await server.admin.post('/bulk?on_error=stop', [], { headers: key })
    expect(stopping.body.code).toBe('idempotency_key_reused')
  })

  it('repeats where it stopped at a refused line', async () => {
    const key = { 'idempotency-key': randomUUID(), 'content-type': 'application/x-ndjson' }
    const text = [lead(newName('A')), '{}\n', lead(newName('B'))].join('')
    const send = () => server.admin.post('/bulk?on_error=stop', text, { headers: key })
    const [first, second] = [await send(), await send()]
    expect(first.text.trim().split('\n')).toHaveLength(2)
    expect(second.text).toBe(first.text)
    expect(second.headers['idempotency-replayed']).toBe('true')
  })

  it('answers 409 while the first request with the key is running', async () => {
    const key = { 'idempotency-key': randomUUID() }
    const first = open(key)
    first.sending.write(lead(newName('First')))
    await until(() => first.answers.length === 1)
    const second = await server.admin.post('/bulk', [], { headers: key })
    expect(second.body.code).toBe('idempotency_in_flight')
    first.sending.end()
    await first.over
  })
})

describe('the bulk writes of a caller', () => {
  /** Opens bulk writes that are under way: each has answered a line and waits for more. */
  async function underWay(token: string, count: number): Promise<Stream[]> {
    const streams = Array.from({ length: count }, () => open({}, { token }))
    for (const { sending } of streams) sending.write(lead(newName('Open')))
    await until(() => streams.every(({ answers }) => answers.length === 1))
    return streams
  }
  const sendLine = (token: string, title: string, headers: Record<string, string> = {}) =>
    server.anonymous.post('/bulk', lead(title), {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/x-ndjson', ...headers },
    })
  const newToken = async (): Promise<string> => (await server.as(1, ['*'])).token ?? ''

  it('are at most five of a token; another one writes nothing until one has ended', async () => {
    const token = await newToken()
    const five = await underWay(token, 5)
    const [title, key] = [newName('Sixth'), { 'idempotency-key': randomUUID() }]
    const sixth = await sendLine(token, title, key)
    expect([sixth.status, sixth.headers['retry-after'], sixth.body.code]).toEqual([429, '15', 'rate_limited'])
    expect(sixth.body.detail).toBe('A token can send 5 bulk writes at a time.')
    expect((await sendLine(token, title, { 'accord-dry-run': 'true' })).status).toBe(429)
    expect((await sendLine(await newToken(), newName('Other'))).status).toBe(200)
    expect(await titles(title)).toEqual([])
    five[0]?.sending.end()
    await five[0]?.over
    expect((await sendLine(token, title, key)).status).toBe(200)
    expect(await titles(title)).toEqual([title])
    for (const { sending } of five) sending.destroy()
    await until(async () => (await underWay(token, 5)).length === 5)
  })

  it('count no longer once their client has gone or they were refused', async () => {
    const token = await newToken()
    const key = { 'idempotency-key': randomUUID() }
    const first = open(key, { token })
    first.sending.write(lead(newName('Keyed')))
    await until(() => first.answers.length === 1)
    for (let sent = 0; sent < 10; sent++)
      expect((await sendLine(token, newName('Again'), key)).body.code).toBe('idempotency_in_flight')
    for (let sent = 0; sent < 10; sent++) {
      const early = open({}, { token })
      await new Promise((resolve) => early.sending.once('socket', (socket) => socket.once('connect', resolve)))
      early.sending.destroy()
      await early.over
    }
    await until(async () => (await sendLine(token, newName('After'))).status === 200)
    first.sending.end()
    await first.over
  })

  it('are at most twenty of a user', async () => {
    const { id } = await addUser(server, newName('Sender'))
    const tokens = await Promise.all([1, 2, 3, 4, 5].map(async () => (await server.as(id, ['*'])).token ?? ''))
    const streams: Stream[] = []
    for (const token of tokens.slice(0, 4)) streams.push(...(await underWay(token, 5)))
    const refused = await sendLine(tokens[4] ?? '', newName('More'))
    expect([refused.status, refused.body.detail]).toEqual([429, 'A user can send 20 bulk writes at a time.'])
    for (const { sending } of streams) sending.destroy()
    await until(async () => (await sendLine(tokens[4] ?? '', newName('More'))).status === 200)
  })
})

it('ends the answers with a 503 when the server closes', async () => {
  const { sending, answers, over } = open()
  sending.write(lead(newName('Last')))
  await until(() => answers.length === 1)
  await Promise.all([server.app.http.close(), over])
  expect(answers.at(-1)).toMatchObject({ line: 2, status: 503, problem: { code: 'unavailable' } })
})
