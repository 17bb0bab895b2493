// A running export keeps the WAL from being reset. If the client does not read, its export is cut
// off when the WAL reaches 64 MiB. A client that reads gets the whole export, even if the WAL is
// longer. The clock of exports is a fake timer.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { Sqlite } from '../../../db/sqlite/driver.ts'
import { maxHeldLogBytes, stallMs } from '../../../src/kernel/resource/export-stall.ts'
import { handlers } from '../../../src/operations.ts'
import { start } from '../../support/app.ts'
import { openAt } from '../../support/engine.ts'
import { useFolder } from '../../support/folders.ts'
import { addProducts } from '../../support/products.ts'
import { useSharedServer } from '../../support/using.ts'

const count = 3_000
const folder = useFolder('log')
let logged = ''
const bound = maxHeldLogBytes / 1024 / 1024
const cutOff = 'An export was cut off'

const lines = {
  write: (line: string) => {
    logged += line
  },
}
const server = useSharedServer({ open: openAt(join(folder, 'accord.db')), lines })
beforeAll(() => addProducts(server.store.db, count, 'd'))

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
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

/** Changes a thousand products in one commit. Returns the growth of the WAL in MiB. */
let turn = 0
async function write(): Promise<number> {
  const before = logMiB()
  const from = (turn * 1_000) % count
  const text = `${turn++} `.repeat(500)
  await sql`update products set description = ${text} where id > ${from} and id <= ${from + 1_000}`.execute(
    server.store.db,
  )
  return logMiB() - before
}

it('is cut off by the commit that makes the log longer than 64 MiB when no client reads it, and the log is short again', async () => {
  const rows = await rowsOfExport()
  expect((await rows.next()).value).toContain('Product 1')
  await vi.advanceTimersByTimeAsync(stallMs)
  // From here on, the clock stays at this time.
  let largest = 0
  while (!logged.includes(cutOff) && logMiB() < 2 * bound) largest = Math.max(largest, await write())
  expect(logged).toContain(cutOff)
  expect(logMiB()).toBeLessThanOrEqual(bound + largest)
  expect(largest).toBeLessThan(bound / 4)
  await expect(rows.next()).rejects.toThrow('closed while it was read')
  await server.store.maintain()
  expect(logMiB()).toBeLessThanOrEqual(16)
})

it('is cut off soon after another process has made the log too long', async () => {
  logged = ''
  const rows = await rowsOfExport()
  expect((await rows.next()).value).toContain('Product 1')
  await vi.advanceTimersByTimeAsync(stallMs)
  const other = new Sqlite(join(folder, 'accord.db'))
  other.function('fold', { deterministic: true }, String)
  while (logMiB() <= bound) other.prepare('update products set description = hex(randomblob(500))').run()
  other.close()
  expect(logged).not.toContain(cutOff)
  await vi.advanceTimersByTimeAsync(stallMs)
  expect(logged).toContain(cutOff)
  await expect(rows.next()).rejects.toThrow('closed while it was read')
})

it('is not cut off while it is read, however long the log becomes', async () => {
  logged = ''
  const rows = await rowsOfExport()
  let lines = 0
  for (let batch = await rows.next(); !batch.done; batch = await rows.next()) {
    lines += batch.value.split('\n').length - 1
    // The pause before each batch is shorter than the stall limit.
    await vi.advanceTimersByTimeAsync(stallMs / 2)
    for (let commits = 0; commits < 5; commits++) await write()
  }
  expect(logMiB()).toBeGreaterThan(1.5 * bound)
  expect([lines, logged.includes(cutOff)]).toEqual([count, false])
})
