// A short fuzz run with a fixed seed, so that a failure is caused by the tested change. `npm run
// test:fuzz` is the long run.
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { unanswered } from './check.ts'
import { fuzz } from './fuzz.ts'
import { randomOf } from './random.ts'
import type { Wanted } from './requests.ts'
import { bytesOf, exchange } from './socket.ts'

describe('whatever is sent', { timeout: 60_000 }, () => {
  it('is answered as the contract says, and leaves everything whole', async () => {
    const findings: string[] = []
    const { byStatus } = await fuzz({ seed: 5, requests: 1_500, onFinding: (text) => findings.push(text) })
    expect(findings).toEqual([])
    // Many requests succeeded, so the run tested more than refusals.
    expect(byStatus.get(200)).toBeGreaterThan(100)
    expect(byStatus.get(201)).toBeGreaterThan(20)
    expect([...byStatus.keys()].filter((status) => status >= 500)).toEqual([])
  }, 180_000)
})

describe('the fuzzer', { timeout: 60_000 }, () => {
  it.each([
    ['drops the connection', (socket: Socket) => socket.destroy()],
    ['says nothing', () => undefined],
    ['breaks off in the head', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-le')],
  ])('notices a server that %s, unless the request demands it', async (_what, answer) => {
    const sockets: Socket[] = []
    const server = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => undefined)
      socket.once('data', () => answer(socket))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const wanted: Wanted = {
      operation: 'getHealth',
      method: 'GET',
      url: '/healthz',
      headers: [],
      bytes: undefined,
      who: 'admin',
      transport: 'socket',
    }
    const streamed: Wanted = { ...wanted, headers: [['accept', 'text/event-stream']] }
    expect(await exchange(port, bytesOf(wanted), 200)).toBeUndefined()
    for (const socket of sockets) socket.destroy()
    server.close()
    expect(unanswered(wanted)).toEqual(['had no answer at all.'])
    expect([unanswered(streamed), unanswered({ ...wanted, transport: 'abused' })]).toEqual([[], []])
  })

  it('draws the same numbers for the same seed and index, and others for others', () => {
    const draw = (seed: number, index: number): number[] => {
      const random = randomOf(seed, index)
      return Array.from({ length: 20 }, () => random.whole(0, 1_000_000))
    }
    expect(draw(1, 7)).toEqual(draw(1, 7))
    expect(new Set([draw(1, 7), draw(2, 7), draw(1, 8), draw(7, 1)].map(String)).size).toBe(4)
  })
})
