// Counts the SQL statements that a piece of work runs, at the engine itself: a statement that
// Kysely compiles into one counts as one, and a cached statement counts each time it runs.
import { Sqlite } from '../../db/sqlite/driver.ts'

type Run = (this: { source: string }, ...parameters: unknown[]) => unknown

const connection = new Sqlite(':memory:')
const statement = Object.getPrototypeOf(connection.prepare('select 1')) as Record<string, Run>
connection.close()

const ways = ['all', 'get', 'run', 'iterate'] as const

/** The statements in the order they ran. Two pieces of work must not use this at the same time. */
export async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const seen: string[] = []
  const originals = ways.map((way) => [way, statement[way] as Run] as const)
  for (const [way, original] of originals)
    statement[way] = function (...parameters) {
      seen.push(this.source)
      return original.apply(this, parameters)
    }
  try {
    await work()
  } finally {
    for (const [way, original] of originals) statement[way] = original
  }
  return seen
}
