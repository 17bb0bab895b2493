// What waits for a turn of the event loop: requests that were read while connections come, and answers of one turn.
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createArrivals } from '../../src/kernel/arrivals.ts'
import { together } from '../../src/kernel/together.ts'
import { inWork, type Listening, listeningServer } from '../support/listening.ts'
import { until } from '../support/until.ts'

let listening: Listening | undefined
afterEach(async () => {
  vi.restoreAllMocks()
  await listening?.close()
  listening = undefined
})

/** What is put off in our own code until the next turn waits for `go`. */
function stopped() {
  let later: (() => void)[] = []
  const spy = vi
    .spyOn(globalThis, 'setImmediate')
    .mockImplementation((next, ...args) => later.push(() => (next as (...given: unknown[]) => void)(...args)) as never)
  const step = (): void => {
    const due = later
    later = []
    for (const each of due) each()
  }
  const go = (): void => {
    spy.mockRestore()
    while (later.length > 0) step()
  }
  return { step, go, count: () => later.length }
}

describe('requests that were read while connections come', () => {
  it('are looked at after those were taken, for a bounded time in each turn', async () => {
    let now = 0
    const arrivals = createArrivals(() => {
      const start = now
      return () => now - start
    })
    const looked: number[] = []
    const ask = (number: number) =>
      arrivals.request(() => {
        looked.push(number)
        now += 1
      })
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    ask(1)
    expect([looked, arrivals.areComing()]).toEqual([[1], false])
    arrivals.connection()
    for (let number = 2; number <= 12; number++) ask(number)
    expect([looked, arrivals.areComing()]).toEqual([[1], true])
    await turn()
    expect(looked).toEqual([1, 2])
    arrivals.connection()
    await turn()
    expect(looked).toEqual([1, 2, 3])
    // Nobody comes any more: more of them, and still not all, because somebody may.
    await turn()
    expect([looked.length, arrivals.areComing()]).toEqual([8, true])
    ask(13)
    await turn()
    expect([looked, arrivals.areComing()]).toEqual([Array.from({ length: 13 }, (_, index) => index + 1), false])
    ask(14)
    expect(looked).toHaveLength(14)
    // The more of them wait, the more are looked at, so that they do not become more and more; beyond 2,000 nobody waits.
    arrivals.connection()
    for (let number = 15; number < 2_017; number++) ask(number)
    expect(looked).toHaveLength(16)
    await turn()
    expect(looked).toHaveLength(21)
  })

  it('are looked at even if what is done with one of them fails', () => {
    const { step, count } = stopped()
    const arrivals = createArrivals()
    let looked = 0
    arrivals.connection()
    arrivals.request(() => {
      throw new Error('Nobody catches this.')
    })
    arrivals.request(() => {
      looked++
    })
    expect(step).toThrow('Nobody catches this.')
    step()
    expect([looked, arrivals.areComing(), count()]).toEqual([1, false, 0])
  })

  it('are not worked on when who has sent them has gone', async () => {
    listening = await listeningServer({ rateFactor: 100 })
    const { metrics, clock } = listening.app.services
    const turns = stopped()
    const socket = await asking(listening, 'GET /api/admin/account')
    await inWork(listening, 1)
    socket.destroy()
    await inWork(listening, 0)
    expect(await metrics.text()).toMatch(/operation="getAccount",method="get",status="499"} 1\n/i)
    // It would be counted against a rate.
    const asked = vi.spyOn(clock, 'now')
    turns.go()
    expect(asked).not.toHaveBeenCalled()
  })

  it('are worked on otherwise', async () => {
    listening = await listeningServer({ rateFactor: 100 })
    const turns = stopped()
    await asking(listening, 'GET /api/admin/account')
    await inWork(listening, 1)
    const asked = vi.spyOn(listening.app.services.clock, 'now')
    turns.go()
    expect(asked).toHaveBeenCalled()
  })
})

describe('answers of one turn', () => {
  it('are sent together at its end, all of them, even if one of them fails', () => {
    const { step, count } = stopped()
    const send = together()
    const sent: number[] = []
    for (const number of [1, 2, 3])
      send(() => {
        if (number === 2) throw new Error('Nobody catches this.')
        sent.push(number)
      })
    expect([sent, count()]).toEqual([[], 1])
    expect(step).toThrow('Nobody catches this.')
    step()
    expect([sent, count()]).toEqual([[1, 3], 0])
    send(() => void sent.push(4))
    step()
    expect(sent).toEqual([1, 3, 4])
  })

  it('wait for the next turn when they are asked for while others are sent', () => {
    const { step } = stopped()
    const send = together()
    const sent: number[] = []
    send(() => {
      sent.push(1)
      for (let number = 3; number < 110; number++) send(() => void sent.push(number))
    })
    send(() => void sent.push(2))
    step()
    step()
    expect([...sent].sort((one, other) => one - other)).toEqual(Array.from({ length: 109 }, (_, index) => index + 1))
  })

  it('are given up when who has asked goes before they are sent', async () => {
    listening = await listeningServer()
    const turns = stopped()
    const socket = await asking(listening, 'GET /healthz')
    await inWork(listening, 1)
    // It was looked at before the connections that may come, and waits to be sent.
    expect(turns.count()).toBeGreaterThan(0)
    socket.destroy()
    await inWork(listening, 0)
    turns.go()
    expect((await fetch(`${listening.url}/healthz`)).status).toBe(200)
    await inWork(listening, 0)
  })

  it('are sent at once when they have become a hundred', () => {
    const { step } = stopped()
    const send = together()
    let sent = 0
    for (let number = 0; number < 150; number++) send(() => void sent++)
    expect(sent).toBe(100)
    step()
    expect(sent).toBe(150)
  })

  it('end their connection when the server closes before they are sent', async () => {
    listening = await listeningServer()
    const { server } = listening.app.http
    const turns = stopped()
    let said = ''
    const socket = await asking(listening, 'GET /healthz')
    socket.on('data', (bytes: Buffer) => {
      said += bytes
    })
    await inWork(listening, 1)
    const ended = new Promise((resolve) => socket.once('close', resolve))
    const closed = listening.close()
    listening = undefined
    await until(() => !server.listening)
    turns.go()
    await Promise.all([ended, closed])
    expect(said).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\nconnection: close\r\n/i)
  })
})

function asking({ url }: Listening, what: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
      socket.write(`${what} HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n`)
      resolve(socket)
    })
    socket.on('error', reject)
  })
}
