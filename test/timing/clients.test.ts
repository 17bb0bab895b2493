// Many clients that send slowly, read slowly, or only connect. Normal clients are not affected, and
// slow clients are disconnected. The full run (`npm run test:faults`) prints measurements, and the
// short run has few clients.
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { isFull, type Strained, strained } from '../faults/serving.ts'
import { type Figures, measure } from './measure.ts'

const many = isFull
  ? { slow: 1_002, idle: 5_000, seconds: 8, aSecond: 100 }
  : { slow: 60, idle: 200, seconds: 1, aSecond: 20 }

let server: Strained | undefined
let clients: Client[] = []
afterEach(async () => {
  for (const { socket } of clients) socket.destroy()
  clients = []
  await server?.stop()
})

interface Client {
  socket: Socket
  kind: 'head' | 'body' | 'reader' | 'idle'
  said: string
  isCut: boolean
}

const begins: Record<Client['kind'], string> = {
  head: 'GET /api/admin/leads HTTP/1.1\r\nHost: x\r\n',
  body: 'POST /api/admin/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{',
  reader: 'GET /api/admin/openapi.json?custom=false HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(8),
  idle: 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
}

async function open(kind: Client['kind'], port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  const client: Client = { socket, kind, said: '', isCut: false }
  clients.push(client)
  socket.on('close', () => {
    client.isCut = true
  })
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
  if (kind === 'reader') socket.pause()
  else
    socket.setEncoding('latin1').on('data', (text) => {
      client.said += text
    })
  socket.write(begins[kind])
}

/**
 * Opens connections gradually, because overload.test.ts tests floods. Each reader requests eight
 * replies of more than a megabyte, so that a part stays in the server and not in system buffers.
 */
async function openAll(kind: Client['kind'], count: number, port: number): Promise<void> {
  const atOnce = kind === 'reader' ? 5 : 50
  for (let opened = 0; opened < count; opened += atOnce) {
    await Promise.all(Array.from({ length: Math.min(atOnce, count - opened) }, () => open(kind, port)))
    if (kind === 'reader') await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const of = (...kinds: Client['kind'][]): Client[] => clients.filter(({ kind }) => kinds.includes(kind))

const areCut = (...kinds: Client['kind'][]): boolean => of(...kinds).every(({ isCut }) => isCut)

describe('many slow clients', () => {
  it('do not delay the replies of others, and are cut off', async () => {
    server = await strained()
    const { url, token } = server
    const { slow, idle, seconds, aSecond } = many
    const port = Number(new URL(url).port)
    const task = { url, token, seconds, aSecond, writes: 10 }
    await measure({ ...task, seconds: isFull ? 30 : 1 })
    const before = await measure(task)

    await openAll('idle', idle, port)
    await openAll('reader', slow / 3, port)
    // Waits until the server has sent the data that fits into the buffers of the readers.
    if (isFull) await new Promise((resolve) => setTimeout(resolve, 3_000))
    await openAll('body', slow / 3, port)
    await openAll('head', slow / 3, port)
    // Sends a byte every second, like the slowest clients.
    const drip = setInterval(() => {
      for (const { socket, kind } of of('head', 'body')) if (socket.writable) socket.write(kind === 'head' ? 'X' : ' ')
    }, 1_000)
    const loaded: Figures[] = []
    const there = clients.filter(({ isCut }) => !isCut).length
    try {
      loaded.push(await measure(task))
      if (isFull) await expect.poll(() => areCut('head', 'body'), { timeout: 60_000, interval: 250 }).toBe(true)
      // Idle connections must not slow down other clients.
      if (isFull) loaded.push(await measure(task))
    } finally {
      clearInterval(drip)
    }

    // In the short run, other tests use the machine, so the server may be overloaded at times.
    const expected = isFull ? ['200', '201'] : ['200', '201', '503']
    for (const { answered, statuses, failed } of [before, ...loaded]) {
      expect(Object.keys(statuses).filter((status) => !expected.includes(status))).toEqual([])
      expect([failed, answered.count > 0]).toEqual([0, true])
    }
    for (const { said } of of('idle')) expect(said).toMatch(/^HTTP\/1\.1 (200|503) /)
    // Slow clients get only timeouts. In the short run they may also get 503.
    const tellable = isFull
      ? /^$|^HTTP\/1\.1 400 [\s\S]*It did not arrive in time\./
      : /^$|^HTTP\/1\.1 (400 [\s\S]*It did not arrive in time|503 [\s\S]*The server has too much to do)\./
    for (const { said } of of('head', 'body')) expect(said).toMatch(tellable)
    if (!isFull) return
    const cut = of('head', 'body').filter(({ said }) => said !== '').length
    expect(cut).toBe(of('head', 'body').length)
    for (const [index, { answered }] of loaded.entries()) {
      const what = index === 0 ? 'with all' : 'with the idle ones'
      console.log(
        `clients: ${slow} slow, ${idle} idle, ${there} of them there as it begins; p50/p99 unloaded ${before.answered.p50}/${before.answered.p99} ms, ` +
          `${what} ${answered.p50}/${answered.p99} ms, ratio ${Math.round((100 * answered.p99) / before.answered.p99) / 100}`,
      )
    }
    console.log(`clients: ${cut} slow senders told that it took too long`)
  }, 900_000)
})
