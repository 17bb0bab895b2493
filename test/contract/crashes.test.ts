// Crashes after each commit of every operation with an Idempotency-Key: the repeated request must
// return the same reply and leave the same database as an uninterrupted request.
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Reply, TestServer } from '../support/app.ts'
import { csvOf, importing, path } from '../support/importing.ts'
import { document, fact, facts } from '../support/schema.ts'
import { useNewServers } from '../support/using.ts'
import { type Commits, startAgain, watchCommits } from './commits.ts'
import { type Answer, type Request, request, send } from './support.ts'
import { useWorld } from './use-world.ts'

let commits: Commits
beforeAll(() => {
  commits = watchCommits()
})
afterAll(() => commits.stop())

interface Outcome {
  answer: Answer | Reply
  tables: Record<string, unknown[]>
}

/**
 * Returns whether a table may differ: owners of keys and locks differ in each attempt, and segments
 * of the full-text index depend on the commits.
 */
const isOfProcesses = (table: string): boolean =>
  table === 'idempotency_keys' || table === 'locks' || /_(data|idx|docsize|config)$/.test(table)

/** Returns all stored data by table and row. */
async function stored({ store: { db } }: TestServer): Promise<Outcome['tables']> {
  const all: Outcome['tables'] = {}
  for (const { name } of await db.introspection.getTables()) {
    if (isOfProcesses(name)) continue
    all[name] = (await sql`select * from ${sql.table(name)}`.execute(db)).rows
  }
  return all
}

/**
 * Returns `third` with `?` wherever the results of two runs of the same request differ, such as in
 * secrets and request ids.
 */
function masked(one: unknown, other: unknown, third: unknown): unknown {
  const isPlain = [one, other].some((each) => typeof each !== 'object' || each === null)
  if (isPlain) return one === other ? third : '?'
  if (typeof third !== 'object' || third === null) return third
  const [of, and] = [one as Record<string, unknown>, other as Record<string, unknown>]
  const entries = Object.entries(third).map(([key, value]) => [key, masked(of[key], and[key], value)] as const)
  return Array.isArray(third) ? entries.map(([, value]) => value) : Object.fromEntries(entries)
}

/**
 * Crashes the request after each of its commits and compares the results. Returns the number of
 * commits, of which the first only stores the key.
 */
async function survives(server: TestServer, ask: () => Promise<Outcome['answer']>, ignored: string[] = []) {
  const run = async (): Promise<Outcome> => ({ answer: await ask(), tables: await stored(server) })
  const beginning = await server.store.image()
  const other = await run()
  await server.rewind(beginning)
  let first = other
  const images = await commits.during(async () => {
    first = await run()
  })
  expect(first.answer.status, first.answer.text).toBeLessThan(300)
  const told = ({ answer, tables }: Outcome): unknown => {
    const shown = masked([first.answer.body, first.tables], [other.answer.body, other.tables], [answer.body, tables])
    return JSON.parse(JSON.stringify(shown, (name, value) => (ignored.includes(name) ? undefined : value)))
  }
  for (const image of images) {
    await startAgain(server, image)
    const again = await run()
    expect(again.answer.status, again.answer.text).toBe(first.answer.status)
    expect(told(again)).toEqual(told(first))
    const { text, headers } = again.answer
    if (image === images.at(-1)) expect([text, headers['idempotency-replayed']]).toEqual([first.answer.text, 'true'])
  }
  return images.length
}

const headers = { 'idempotency-key': 'crash' }

describe('after a crash a repeated key', () => {
  const world = useWorld()

  const takesKey = ([, { path, method }]: (typeof facts)[number]): boolean => {
    const { parameters = [] } = (document.paths as any)[path][method]
    return parameters.some(({ $ref }: { $ref?: string }) => $ref === '#/components/parameters/IdempotencyKey')
  }
  const keyed = facts.filter(takesKey).map(([id]) => id)
  const isMass = (id: string): boolean => /\/mass-\w+$/.test(fact(id).path)

  /** Returns a request. For mass operations it has several records, one of which does not exist. */
  function wanted(id: string): Request {
    const { body, ...sent } = request(world, id)
    const entity = sent.url.split('/').at(-2) ?? ''
    const ids = [world.plain, world.spare, world.main].flatMap((each) => each[entity] ?? [])
    return { ...sent, headers, body: isMass(id) ? { ...body, ids: [...new Set(ids), 999_999] } : body }
  }

  beforeEach(() => world.server.rewind())

  // Not `logout`, because it deletes the token and thus its idempotency keys.
  it.each(keyed.filter((id) => id !== 'logout'))('of %s has the first answer and does what is left', async (id) => {
    const sent = wanted(id)
    // The duration of an outgoing call differs in each attempt.
    const count = await survives(world.server, () => send(world, id, sent), ['duration_ms'])
    expect(count).toBeGreaterThanOrEqual(isMass(id) ? 4 : 2)
  })

  it('of logout is refused with its token, as without a crash', async () => {
    const { token } = await world.server.as(1)
    const leave = () => send(world, 'logout', { method: 'POST', url: '/api/admin/logout', headers, token })
    const images = await commits.during(leave)
    expect((await leave()).status).toBe(401)
    for (const image of images) {
      await startAgain(world.server, image)
      expect((await leave()).status).toBe(image === images.at(-1) ? 401 : 200)
    }
  })

  it('has all records of a mass operation changed, or none', async () => {
    const body = {
      ...(wanted('massUpdateLeads').body as object),
      atomic: true,
      ids: [world.main.leads, world.spare.leads],
    }
    const sent = { ...wanted('massUpdateLeads'), body }
    expect(await survives(world.server, () => send(world, 'massUpdateLeads', sent))).toBe(3)
  })
})

describe('an import that runs while its caller waits, after a crash,', () => {
  const server = useNewServers()

  const rows = Array.from({ length: 250 }, (_, number) => [`sku-${number}`, `Product ${number}`, number])
  const table = csvOf([['sku', 'name', 'price'], ...rows])

  it.each(['validate', 'start'] as const)('goes on with %s and answers its end', async (what) => {
    const imports = importing(server.admin)
    const { id } = await imports.record('products', table)
    if (what === 'start') await imports.post(id, 'validate')
    const ask = () => server.admin.post(`${path}/${id}/${what}`, undefined, { headers })
    // The comparison ignores `version`, which a repeated step increases once more.
    const count = await survives(server, ask, ['version'])
    expect(count).toBeGreaterThan(4)
  })
})
