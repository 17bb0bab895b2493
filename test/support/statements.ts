// Records the SQL statements that the database driver runs, including each run of a cached
// statement. Statements that begin and end transactions are not recorded.
import pg from 'pg'
import { Sqlite } from '../../db/sqlite/driver.ts'
import { isPostgres } from './engine.ts'

type Run = (this: { source: string }, ...parameters: unknown[]) => unknown

const connection = new Sqlite(':memory:')
const statement = Object.getPrototypeOf(connection.prepare('select 1')) as Record<string, Run>
connection.close()

const ways = ['all', 'get', 'run', 'iterate'] as const

/** Returns the statements of `work` in order. Must not be called concurrently. */
export async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const seen: string[] = []
  const restore = isPostgres ? watchPostgres(seen) : watchSqlite(seen)
  try {
    await work()
  } finally {
    restore()
  }
  return seen
}

function watchSqlite(seen: string[]): () => void {
  const originals = ways.map((way) => [way, statement[way] as Run] as const)
  for (const [way, original] of originals)
    statement[way] = function (...parameters) {
      seen.push(this.source)
      return original.apply(this, parameters)
    }
  return () => {
    for (const [way, original] of originals) statement[way] = original
  }
}

const isUncounted = (text: string): boolean =>
  /^(begin|commit|rollback)\b|pg_current_snapshot|from commit_order/.test(text)

function watchPostgres(seen: string[]): () => void {
  const client = pg.Client.prototype as unknown as { query: (...parameters: unknown[]) => unknown }
  const original = client.query
  client.query = function (...parameters) {
    const [text] = parameters
    if (typeof text === 'string' && !isUncounted(text)) seen.push(text)
    return original.apply(this, parameters)
  }
  return () => {
    client.query = original
  }
}
