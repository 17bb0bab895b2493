// Migrates the sales data set from SQLite to PostgreSQL and compares every list, report and search:
// each page, sort key and quarter. ACCORD_TEST_FULL=1 uses the whole data set if it is beside the
// repository, and otherwise a small one.
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openStore } from '../../db/store.ts'
import { migrateToCommand } from '../../src/commands/migrate-to.ts'
import { adminPassword, startServer, type TestServer } from '../support/app.ts'
import { type Folder, installedFolder, said } from '../support/installed.ts'
import { type Cluster, startCluster } from '../support/postgres-cluster.ts'
import { needing } from '../support/programs.ts'
import { facts, parametersOf } from '../support/schema.ts'
import { signIn } from './sales/api.ts'
import { besideTheRepository, missingIn, readSales, type Sales, salesOf } from './sales/data.ts'
import { type Loaded, loadSales } from './sales/load.ts'
import { smallTexts } from './sales/small.ts'

const isWhole = process.env.ACCORD_TEST_FULL === '1' && missingIn(besideTheRepository).length === 0
const quarters = ['01-01', '04-01', '07-01', '10-01'].map((day) => `2017-${day}`)

const collections = facts.filter(
  ([id, { method, path }]) =>
    method === 'get' && !path.includes('{') && parametersOf(id, 'query').some(({ name }) => name === 'page'),
)
const reports = facts.filter(([, { method, path }]) => method === 'get' && path.startsWith('/api/admin/reports/'))
const short = (path: string): string => path.replace('/api/admin', '')

const sortKeysOf = (id: string): string[] =>
  (parametersOf(id, 'query').find(({ name }) => name === 'sort')?.schema.items?.enum ?? []) as string[]

needing('postgres').describe('the sales data set on PostgreSQL', { timeout: 1_200_000 }, () => {
  let cluster: Cluster
  let folder: Folder
  let sales: Sales
  let loaded: Loaded
  let before: TestServer
  let after: TestServer

  beforeAll(async () => {
    sales = isWhole ? readSales(besideTheRepository) : salesOf(smallTexts())
    cluster = await startCluster()
    folder = await installedFolder()
    const { dataDir, databaseUrl } = folder.config
    const loader = await startServer({ config: { dataDir, databaseUrl }, open: () => folder.store })
    const url = await loader.app.http.listen({ host: '127.0.0.1', port: 0 })
    const api = await signIn({ url, email: 'admin@example.com', password: adminPassword })
    loaded = await loadSales(api, sales, () => undefined)
    await loader.work()
    await loader.app.http.close()
    // migrate-to refuses a database that another connection has open.
    await folder.stop()

    const target = cluster.url('postgres')
    const { code, stderr } = await said(() => migrateToCommand(folder.config, target, { json: true }))
    expect(code, stderr).toBe(0)
    // Both servers start in the same way, because each test server creates a token.
    const serve = (databaseUrl: string) =>
      startServer({ config: { dataDir, databaseUrl }, open: () => openStore(databaseUrl) })
    before = await serve(databaseUrl)
    after = await serve(target)
  }, 1_200_000)
  afterAll(async () => {
    for (const server of [before, after]) {
      await server?.app.http.close()
      await server?.store.close()
    }
    await folder?.close()
    cluster?.stop()
  })

  /** Sends a request to both servers and expects equal replies. Returns the first reply. */
  async function compare(path: string, query: Record<string, string>, isSet = false) {
    const [one, other] = await Promise.all([before, after].map((server) => server.admin.get(path, { query })))
    const [was, is] = [one, other].map((reply) => ({ status: reply?.status, body: comparable(reply?.body, isSet) }))
    if (!isDeepStrictEqual(was, is)) expect({ path, query, ...is }).toEqual({ path, query, ...was })
    return one as NonNullable<typeof one>
  }

  it('answers every page of every list as before', async () => {
    let rows = 0
    for (const [id, { path }] of collections) {
      const takesCount = parametersOf(id, 'query').some(({ name }) => name === 'per_page')
      for (let page = 1; ; page++) {
        const query = { page: String(page), ...(takesCount && { per_page: '100' }) }
        const { body } = await compare(short(path), query)
        rows += Array.isArray(body.data) ? body.data.length : 0
        if (!body.links?.next) break
      }
    }
    expect(rows).toBeGreaterThan(sales.opportunities.length + sales.accounts.length + sales.products.length)
  })

  it('sorts every list as before, by each of its keys', async () => {
    let requests = 0
    for (const [id, { path }] of collections)
      for (const sort of sortKeysOf(id)) {
        const { body } = await compare(short(path), { sort, per_page: '50' })
        const next = body.links?.next
        if (next) await compare(short(new URL(next).pathname), Object.fromEntries(new URL(next).searchParams))
        requests++
      }
    expect(requests).toBeGreaterThan(100)
  })

  it('answers every report as before, for each quarter and for the pipeline', async () => {
    for (const [id, { path }] of reports)
      for (const start of quarters) {
        const [year, month] = start.split('-').map(Number) as [number, number]
        const end = new Date(Date.UTC(year, month + 2, 0)).toISOString().slice(0, 10)
        const takesPipeline = parametersOf(id, 'query').some(({ name }) => name === 'pipeline_id')
        for (const pipeline of takesPipeline ? [{}, { pipeline_id: String(loaded.pipelineId) }] : [{}])
          expect((await compare(short(path), { start, end, ...pipeline })).status).toBe(200)
      }
    for (const sort of ['-lead_value', 'title'])
      await compare('/leads/kanban', { pipeline_id: String(loaded.pipelineId), sort })
  })

  it('finds the same records for each word of the names', async () => {
    const names = [...sales.accounts, ...sales.products].map(({ name }) => name)
    const ids = sales.opportunities.slice(0, 20).map(({ id }) => id)
    const words = new Set([...names, ...names.flatMap((name) => name.split(' ')), ...ids, 'a', 'co', 'ópp', '%', '"'])
    let hits = 0
    for (const [id, { path }] of collections) {
      if (!parametersOf(id, 'query').some(({ name }) => name === 'q')) continue
      for (const q of [...words].slice(0, isWhole ? 60 : 12)) {
        const { body } = await compare(short(path), { q, per_page: '100' }, true)
        hits += body.data?.length ?? 0
      }
    }
    expect(hits).toBeGreaterThan(20)
  })
})

/**
 * Returns a body without values that may differ: the last use of tokens, request ids, and in a
 * search the scores and the order.
 */
function comparable(body: unknown, isSet: boolean): unknown {
  const plain = JSON.parse(JSON.stringify(body ?? null), (name, value) =>
    name.startsWith('last_used_') || name === 'request_id' ? null : value,
  )
  if (!isSet || !Array.isArray(plain?.data)) return plain
  const hits = plain.data.map((hit: object) => JSON.stringify({ ...hit, score: null })).sort()
  return { ...plain, data: hits }
}
