// A stranger sends bodies that cost much to read. Each is refused for little CPU time, on both
// APIs.
import { describe, expect, it } from 'vitest'
import { dearBodies } from '../support/dear-bodies.ts'
import { useSharedServer } from '../support/using.ts'

const repeats = 5
/** The CPU time that a refusal may take, as a multiple of the time to parse a dear body. */
const most = 1
const dearJson = `[${Array(250_000).fill('[]').join()}]`

/** Returns the milliseconds of CPU time that one call takes on average. */
async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  for (let at = 0; at < repeats; at++) await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / repeats
}
const paths = ['/api/admin/login', '/api/admin/leads', '/api/v1/login', '/api/v1/leads', '/web-forms/forms/none']

const server = useSharedServer()

describe.each(paths)('a dear body to %s without a credential', (url) => {
  it.each(dearBodies())('is refused cheaply: $name', async ({ type, body }) => {
    const ask = () =>
      server.inject({
        method: 'POST',
        url,
        headers: { 'content-type': type, accept: 'application/json' },
        payload: body,
      })
    const { statusCode } = await ask()
    expect(statusCode).toBeGreaterThanOrEqual(400)
    expect(statusCode).toBeLessThan(500)
    const parsingMs = await cpuMsOf(() => JSON.parse(dearJson))
    expect((await cpuMsOf(ask)) / parsingMs).toBeLessThan(most)
  })
})
