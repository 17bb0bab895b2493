// An export keeps the log of the database from beginning anew. A client that does not read its export is cut off once the log has 64 MiB;
// one that reads, however long the log is, gets all of it.
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openStore } from '../../db/open.ts'
import { maxHeldLogBytes } from '../../src/kernel/export.patience.ts'
import { handlers } from '../../src/operations.ts'
import { start, startServer, type TestServer } from '../support/app.ts'

const count = 3_000
let folder: string
let server: TestServer
let logged = ''
const cutOff = 'An export was cut off'

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'accord-log-'))
  const file = join(folder, 'accord.db')
  server = await startServer({
    open: (image) => {
      writeFileSync(file, image)
      return openStore(`sqlite:${file}`)
    },
    lines: {
      write: (line: string) => {
        logged += line
      },
    },
  })
  await sql`
    insert into products (sku, sku_key, name, name_key, description, price, created_at, updated_at)
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})
    select 'S-' || n, 's-' || n, 'Product ' || n, 'product ' || n, 'd', n * 10000, ${start}, ${start} from numbers
  `.execute(server.store.db)
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const logMiB = (): number => statSync(join(folder, 'accord.db-wal')).size / 1024 / 1024

async function rowsOfExport(): Promise<AsyncIterator<string>> {
  const products = handlers.exportProducts as (ctx: any, input: any) => Promise<any>
  const ctx = {
    services: server.app.services,
    db: server.store.db,
    operation: null,
    unit: null,
    user: null,
    token: null,
    time: new Date(start),
    query: '',
    headers: {},
  }
  const { parts } = await products(ctx, { query: { sort: ['id'] } })
  return parts.body[Symbol.asyncIterator]()
}

/** Changes every product again and again, a thousand in each commit, until so much is in the log or the time is over. */
async function write(enough: () => boolean): Promise<void> {
  for (let turn = 0; !enough() && turn < 400; turn++) {
    const text = `${turn} `.repeat(500)
    const from = (turn * 1_000) % count
    await sql`update products set description = ${text} where id > ${from} and id <= ${from + 1_000}`.execute(
      server.store.db,
    )
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

it('is cut off at 64 MiB when nobody reads it, with a line in the log, and the log is short again', async () => {
  const rows = await rowsOfExport()
  expect((await rows.next()).value).toContain('Product 1')
  // From here on it counts as a client that does not read.
  await new Promise((resolve) => setTimeout(resolve, 2_500))
  const since = performance.now()
  await write(() => logged.includes(cutOff) || logMiB() > (maxHeldLogBytes / 1024 / 1024) * 2)
  await expect.poll(() => logged).toContain(cutOff)
  const longest = logMiB()
  console.log(
    `exports: cut off at ${longest.toFixed(0)} MiB after ${((performance.now() - since) / 1000).toFixed(1)} s`,
  )
  // Looked at four times a second.
  expect(longest).toBeLessThan(80)
  await expect(rows.next()).rejects.toThrow('closed while it was read')
  await server.store.tend()
  expect(logMiB()).toBeLessThanOrEqual(16)
})

it('is not cut off while it is read, however long the log becomes', async () => {
  logged = ''
  const rows = await rowsOfExport()
  let lines = 0
  let isOver = false
  const writing = write(() => isOver)
  for (let batch = await rows.next(); !batch.done; batch = await rows.next()) {
    lines += batch.value.split('\n').length - 1
    // Takes each batch after a pause that is shorter than what counts as not reading.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
  expect(logMiB()).toBeGreaterThan(maxHeldLogBytes / 1024 / 1024)
  isOver = true
  await writing
  expect([lines, logged.includes(cutOff)]).toEqual([count, false])
})
