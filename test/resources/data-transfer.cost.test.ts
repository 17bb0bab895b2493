// The cost of an import row: the number of statements, none of which is compiled for each row.
// Counting statements makes the test independent of the machine.
import { mkdtempSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { SqliteQueryCompiler } from 'kysely'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { newOwnerId } from '../../src/kernel/runtime/process-identity.ts'
import { processRows } from '../../src/resources/data-transfer/run/process-rows.ts'
import { writesDocuments } from '../db/documents.ts'
import { startServer } from '../support/app.ts'
import { openAt } from '../support/engine.ts'
import { given } from '../support/given.ts'
import { csvOf, importing } from '../support/importing.ts'
import { statementsOf } from '../support/statements.ts'
import { useSharedServer } from '../support/using.ts'

const few = 200
const many = 800

const server = useSharedServer({ config: { env: 'production' } })
beforeAll(async () => {
  await given(server.admin).person({ name: 'Ada', emails: [{ value: 'ada@example.com' }] })
})

interface Cost {
  statements: readonly string[]
  /** The number of statements that Kysely compiled. */
  compiled: number
}

async function costOf(work: () => Promise<unknown>): Promise<Cost> {
  const compiler = vi.spyOn(SqliteQueryCompiler.prototype, 'compileQuery')
  try {
    const statements = await statementsOf(work)
    return { statements, compiled: compiler.mock.calls.length }
  } finally {
    compiler.mockRestore()
  }
}

async function imported(rows: number): Promise<Record<'validate' | 'start', Cost>> {
  const { record, post } = importing(server.admin)
  const lines = Array.from({ length: rows }, (_, n) => [`Lead ${n}`, n, 'ada@example.com', 'Big'])
  const { id } = await record('leads', csvOf([['title', 'lead_value', 'person_email', 'tags'], ...lines]))
  const run = (what: 'validate' | 'start', state: string) =>
    costOf(async () => expect(await post(id, what)).toMatchObject({ state, processed_rows_count: rows, errors: [] }))
  return { validate: await run('validate', 'validated'), start: await run('start', 'completed') }
}

describe('a row of an import of leads', () => {
  it('takes few statements, and none that is built for it alone', async () => {
    // Fills the caches.
    await imported(few)
    const [short, long] = [await imported(few), await imported(many)]
    for (const [what, most] of [['validate', 14] as const, ['start', 16] as const]) {
      const more = (of: (cost: Cost) => number): number => (of(long[what]) - of(short[what])) / (many - few)
      expect(
        more(({ statements }) => statements.length),
        `${what}: ${told(long[what])}`,
      ).toBeLessThan(most)
      // One statement writes the search documents of a batch.
      expect(
        more(({ statements }) => statements.filter(writesDocuments).length),
        what,
      ).toBeLessThanOrEqual(0.01)
      // Undo data of a savepoint stays in memory, because a file would be written page by page.
      expect(long[what].statements, what).not.toContain('PRAGMA temp_store = file')
      // All rows of a batch share the compiled statements.
      expect(
        more(({ compiled }) => compiled),
        what,
      ).toBeLessThan(0.5)
    }
  })
})

/**
 * Mocks a disk that confirms no sync while `isHalted` returns true. Returns a function that ends
 * the wait.
 */
async function haltingOnce(isHalted: () => boolean): Promise<() => void> {
  const handle = await open(fileURLToPath(import.meta.url), 'r')
  const prototype = Object.getPrototypeOf(handle) as FileHandle
  await handle.close()
  const { datasync } = prototype
  let go = (): void => undefined
  const waiting = new Promise<void>((resolve) => {
    go = resolve
  })
  vi.spyOn(prototype, 'datasync').mockImplementation(async function (this: FileHandle) {
    if (isHalted()) await waiting
    return datasync.call(this)
  })
  return go
}

describe('a batch of an import', () => {
  it('begins while the one before it comes to the disk, and only that one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'accord-import-'))
    const kept = join(folder, 'accord.db')
    const own = await startServer({ open: openAt(kept) })
    const { record, post } = importing(own.admin)
    const table = csvOf([['title', 'lead_value'], ...Array.from({ length: 350 }, (_, n) => [`Lead ${n}`, n])])
    const { id } = await record('leads', table, { process_in_queue: true })
    await post(id, 'validate')
    await own.work()
    await post(id, 'start')
    const other = new Sqlite(kept, { readonly: true })
    const counted = other.prepare<[], number>('select count(*) from import_batches').pluck()
    const batches = (): number => counted.get() ?? 0
    const go = await haltingOnce(() => batches() > 0)
    try {
      let told = 0
      const onProgress = () => void told++
      const run = processRows({ services: own.app.services, id, own: newOwnerId(), onProgress })
      // The first batch is not synced, and the second batch waits for the sync.
      await expect.poll(batches).toBe(2)
      await pause(100)
      expect([batches(), told]).toEqual([2, 0])
      go()
      expect(await run).toBe(true)
      expect([batches(), told]).toEqual([4, 4])
    } finally {
      go()
      vi.restoreAllMocks()
      other.close()
      await own.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }, 60_000)
})

function told({ statements }: Cost): string {
  const counts = new Map<string, number>()
  for (const text of statements) counts.set(text, (counts.get(text) ?? 0) + 1)
  const often = [...counts].filter(([, count]) => count >= many / 2)
  return often.map(([text, count]) => `\n${count} ${text.slice(0, 120)}`).join('')
}
