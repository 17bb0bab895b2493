// A reply that violates the contract, and its effects for the caller, the log and the metrics.
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ContractDocument, SchemaObject } from '../../codegen/read.ts'
import { contract, startServer, type TestServer } from '../support/app.ts'

let server: TestServer
afterEach(async () => {
  vi.restoreAllMocks()
  await server.close()
})

/** Starts a server with a changed schema of sources. Returns a function that returns its log. */
async function serving(
  env: 'development' | 'production',
  change: (source: SchemaObject) => void,
): Promise<() => string> {
  const document = structuredClone(contract) as ContractDocument
  change(document.components?.schemas?.Source as SchemaObject)
  let log = ''
  server = await startServer({
    config: { env },
    contract: document,
    refusesBreaches: true,
    lines: {
      write: (line: string) => {
        log += line
      },
    },
  })
  return () => log
}

const withoutDate = ({ properties = {}, required }: SchemaObject): void => {
  delete properties.updated_at
  ;(required as string[]).splice((required as string[]).indexOf('updated_at'), 1)
}
const withNumbers = ({ properties = {} }: SchemaObject): void => {
  properties.name = { type: 'integer' }
}
const breaches = async (): Promise<string | undefined> =>
  /^accord_http_replies_in_breach_total (\d+)$/m.exec(await server.app.services.metrics.text())?.[1]

describe('a reply that breaks the contract', () => {
  it.each([
    ['with a key it lacks', withoutDate, /must NOT have additional properties.*updated_at/],
    ['with a value of another type', withNumbers, /name must be integer/],
  ])('%s is logged and refused in development', async (_what, change, finding) => {
    const log = await serving('development', change)
    const { status, body } = await server.admin.get('/sources')
    expect(status === 200 ? body.data : [status, body.code]).toEqual([500, 'internal_error'])
    expect(log()).toMatch(/A reply breaks the contract/)
    expect(log()).toMatch(finding)
    expect(await breaches()).toBe('1')
  })

  it('is counted and logged in production, and sent', async () => {
    const log = await serving('production', withoutDate)
    vi.spyOn(Math, 'random').mockReturnValue(0.0005)
    expect((await server.admin.get('/sources')).status).toBe(200)
    expect(await breaches()).toBe('1')
    expect(log()).toMatch(/must NOT have additional properties.*updated_at/)
    vi.mocked(Math.random).mockReturnValue(0.5)
    expect((await server.admin.get('/sources?page=1')).status).toBe(200)
    expect(await breaches()).toBe('1')
  })
})
