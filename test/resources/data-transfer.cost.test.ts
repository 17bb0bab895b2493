// What a row of an import costs: how many statements it takes, and that none of them is built and compiled for the row. Counted, so that
// it does not depend on the machine.
import { SqliteQueryCompiler } from 'kysely'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { startServer, type TestServer } from '../support/app.ts'
import { given } from '../support/given.ts'
import { csvOf, importing } from '../support/importing.ts'
import { statementsOf } from '../support/statements.ts'

const few = 200
const many = 800

let server: TestServer
beforeAll(async () => {
  // In tests a server asks again for much of what it keeps, to compare.
  server = await startServer({ config: { env: 'production' } })
  await given(server.admin).person({ name: 'Ada', emails: [{ value: 'ada@example.com' }] })
})
afterAll(() => server.close())

interface Cost {
  statements: readonly string[]
  /** Statements that Kysely put together. */
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
    // What is kept from one to the next is there by then.
    await imported(few)
    const [short, long] = [await imported(few), await imported(many)]
    for (const [what, most] of [['validate', 12] as const, ['start', 11] as const]) {
      const more = (of: (cost: Cost) => number): number => (of(long[what]) - of(short[what])) / (many - few)
      expect(
        more(({ statements }) => statements.length),
        `${what}: ${told(long[what])}`,
      ).toBeLessThan(most)
      // What undoes a row alone is kept in memory: a file would be written page by page.
      expect(long[what].statements, what).not.toContain('PRAGMA temp_store = file')
      // Those of a batch are shared by its hundred rows.
      expect(
        more(({ compiled }) => compiled),
        what,
      ).toBeLessThan(0.5)
    }
  }, 60_000)
})

function told({ statements }: Cost): string {
  const counts = new Map<string, number>()
  for (const text of statements) counts.set(text, (counts.get(text) ?? 0) + 1)
  const often = [...counts].filter(([, count]) => count >= many / 2)
  return often.map(([text, count]) => `\n${count} ${text.slice(0, 120)}`).join('')
}
