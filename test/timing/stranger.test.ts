// One stranger sends dear bodies without a pause. Others are never refused, and a refusal takes
// little CPU time. The full run (`npm run test:faults`) prints measurements.
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { isFull, type Strained, strained } from '../faults/serving.ts'
import { measure } from './measure.ts'
import { sendAsStranger } from './stranger.ts'

const seconds = isFull ? 60 : 5
/** The milliseconds of CPU time that a refusal may take, with room for a slow machine. */
const mostMs = 30

let server: Strained | undefined
afterEach(async () => {
  await server?.stop()
})

/** Returns the CPU time of a process so far in milliseconds. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

describe.each([
  ['with the usual rate limits', 'on'],
  ['without rate limits', 'off'],
])('a stranger who sends dear bodies, %s', (_name, limit) => {
  it('barely delays other callers, and costs little', { timeout: 600_000 }, async () => {
    server = await strained({ ACCORD_RATE_LIMIT: limit })
    const { url, token, pid } = server
    const reads = { url, token, aSecond: 40, warmsUp: true }
    await measure({ ...reads, seconds: 2 })
    const quiet = await measure({ ...reads, seconds })
    const before = cpuMs(pid)
    const alone = await sendAsStranger({ url, seconds })
    const spentMs = cpuMs(pid) - before
    const [beside, sent] = await Promise.all([
      measure({ ...reads, seconds: seconds - 2 }),
      sendAsStranger({ url, seconds }),
    ])

    const requests = alone.cut + Object.values(alone.statuses).reduce((sum, count) => sum + count, 0)
    for (const status of [...Object.keys(alone.statuses), ...Object.keys(sent.statuses)])
      expect(status).toMatch(/^4\d\d$|^503$/)
    expect(quiet.statuses).toEqual({ 200: quiet.answered.count })
    expect(beside.statuses).toEqual({ 200: beside.answered.count })
    expect(beside.failed).toBe(0)
    expect(spentMs / requests).toBeLessThan(mostMs)
    if (isFull)
      console.log(
        [
          `stranger, rate limits ${limit}: ${alone.kinds} kinds, ${requests} requests alone in ${seconds} s`,
          `${JSON.stringify(alone.statuses)}, ${alone.cut} cut, ${(spentMs / requests).toFixed(2)} ms of CPU each`,
          `others quiet: p50 ${quiet.answered.p50}, p99 ${quiet.answered.p99} ms`,
          `beside: p50 ${beside.answered.p50}, p99 ${beside.answered.p99} ms, ${JSON.stringify(beside.statuses)}`,
          `p99 beside / quiet: ${(beside.answered.p99 / quiet.answered.p99).toFixed(1)}`,
        ].join('; '),
      )
  })
})
