// Reads all stored rows, to compare them before a merge and after it was taken back.
import { sql } from 'kysely'
import type { TestServer } from './app.ts'

/** Tables of logs, caches and positions, and those that follow from others. */
const others =
  /^(events|archives|search_.*|jobs|job_.*|idempotency_keys|sessions|tokens|event_readers|locks|schedules|lead_count.*|commit_order|migrations|.*_log|call_counts|sign_in_devices|workflow_runs|webhook_deliveries)$/
const bookkeeping = new Set(['version', 'updated_at', 'moves'])

/** Returns the rows of all tables with records, as sorted texts. */
export async function everything({ store }: Pick<TestServer, 'store'>): Promise<Record<string, string[]>> {
  const { columns } = await store.dialect.relations(store.db as never)
  const found: Record<string, string[]> = {}
  for (const table of [...columns.keys()].sort().filter((each) => !others.test(each))) {
    const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(table)}`.execute(store.db)
    const texts = rows.map((row) => JSON.stringify(Object.entries(row).filter(([column]) => !bookkeeping.has(column))))
    if (texts.length > 0) found[table] = texts.sort()
  }
  return found
}
