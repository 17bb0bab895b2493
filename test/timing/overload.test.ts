// Overload: twice as many requests as the server can handle, with five reads per write. Accepted
// requests are fast, others are refused immediately, and the server recovers. The full run (`npm
// run test:faults`) prints measurements.
import { afterEach, describe, expect, it } from 'vitest'
import { isFull, type Strained, strained } from '../faults/serving.ts'
import { measure } from './measure.ts'

const seconds = isFull ? 20 : 2
let server: Strained | undefined
afterEach(async () => {
  await server?.stop()
})

describe('a server under twice its capacity', () => {
  it('answers what it can, refuses the rest with 503, and is itself again when it is over', async () => {
    server = await strained()
    const { url, token } = server
    const task = { url, token, writes: 17, warmsUp: true }
    // Warm-up, in which the server's code is compiled.
    await measure({ ...task, seconds: isFull ? 10 : 2, atOnce: 16 })
    const usual = await measure({ ...task, seconds: isFull ? 10 : 2, atOnce: 16 })
    const capacity = usual.answered.count / usual.seconds
    const unloaded = await measure({ ...task, seconds: isFull ? 10 : 1, aSecond: capacity / 10 })
    const over = await measure({ ...task, seconds, aSecond: capacity * 2 })
    // After the overload, new requests are accepted again.
    const since = performance.now()
    let status = 0
    await expect
      .poll(
        async () => {
          const answer = await fetch(`${url}/api/admin/account`, {
            headers: { accept: 'application/json', authorization: `Bearer ${token}` },
          })
          status = answer.status
          await answer.arrayBuffer()
          return status
        },
        { timeout: 30_000, interval: 20 },
      )
      .toBe(200)
    const recovered = performance.now() - since
    const after = await measure({ ...task, seconds: 1, atOnce: 4 })

    const others = [usual, unloaded, over, after].flatMap(({ statuses }) => Object.keys(statuses))
    expect(others.filter((each) => !['200', '201', '429', '503'].includes(each))).toEqual([])
    for (const { silent, failed } of [usual, unloaded, over, after]) expect([silent, failed]).toEqual([0, 0])
    expect(over.answered.count).toBeGreaterThan(0)
    expect(after.answered.count).toBeGreaterThan(0)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    // Refusals have the same log line as other replies.
    const lines = server.logged().split('\n')
    const line = lines.find((each) => each.includes('"status":503'))
    if (over.statuses['503'] !== undefined) {
      expect(JSON.parse(line ?? '{}')).toMatchObject({ status: 503, code: 'unavailable', msg: 'answered' })
      expect(JSON.parse(line ?? '{}').operation).not.toBe('none')
    }
    if (isFull) {
      // Measures the capacity again, because it may have changed. The load was then not exactly
      // double.
      const again = await measure({ ...task, seconds: 10, atOnce: 16 })
      expect(over.refused.count).toBeGreaterThan(0)
      const all = over.answered.count + over.refused.count
      const share = Math.round((100 * over.refused.count) / all)
      console.log(
        [
          `overload: capacity ${Math.round(capacity)}/s (p50 ${usual.answered.p50} ms, p99 ${usual.answered.p99} ms, 16 at once)`,
          `unloaded (a tenth of it): p50 ${unloaded.answered.p50}, p99 ${unloaded.answered.p99} ms`,
          `accepted p99 / unloaded p99: ${(over.answered.p99 / unloaded.answered.p99).toFixed(1)}, of writes ${(over.written.p99 / unloaded.written.p99).toFixed(1)}`,
          `${Math.round(again.answered.count / again.seconds)}/s after all this`,
          `offered ${Math.round(all / seconds)}/s for ${seconds} s`,
          `answered ${Math.round(over.answered.count / over.seconds)}/s: p50 ${over.answered.p50}, p99 ${over.answered.p99}, max ${over.answered.max} ms`,
          `refused ${share} % (${JSON.stringify(over.statuses)}): p50 ${over.refused.p50}, p99 ${over.refused.p99} ms`,
          `after the first 5 s: answered p50 ${over.later.answered.p50}, p99 ${over.later.answered.p99} ms, refused p50 ${over.later.refused.p50}, p99 ${over.later.refused.p99} ms`,
          `${over.opened.count} of all on new connections: p50 ${over.opened.p50}, p99 ${over.opened.p99} ms`,
          `answering again after ${Math.round(recovered)} ms, then p99 ${after.answered.p99} ms`,
        ].join('; '),
      )
    }
  }, 600_000)
})
