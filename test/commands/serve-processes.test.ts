// The number of processes that `accord serve` accepts. test/postgres/serve-processes.test.ts starts
// them.
import { describe, expect, it } from 'vitest'
import { serveProcessesCommand } from '../../src/commands/serve-processes.ts'
import { testConfig } from '../support/app.ts'
import { said } from '../support/installed.ts'

const refusal = async (processes: string, databaseUrl: string): Promise<string> => {
  const { code, stdout, stderr } = await said(() =>
    serveProcessesCommand(() => testConfig({ databaseUrl }), { processes }),
  )
  expect([code, stdout]).toEqual([1, ''])
  return stderr
}

describe('accord serve --processes', () => {
  it.each(['0', '-1', '1.5', 'two', '65', ''])('refuses the number "%s"', async (number) => {
    expect(await refusal(number, 'postgres://127.0.0.1:1/crm')).toBe(
      `--processes must be a whole number from 1 to 64, not "${number}".\n`,
    )
  })

  it('refuses more than one process on SQLite, and says why', async () => {
    expect(await refusal('2', 'sqlite:/nowhere/accord.db')).toMatch(/^--processes 2 needs PostgreSQL/)
  })
})
