// The statistics of the query planner. SQLite trusts stored sizes until the next analysis: it scans
// a table that had two rows then, however long it is now. So small tables have no statistics.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'

const minRows = 1000

/**
 * To be run after `analyze`. The second statement makes this connection reload the statistics;
 * others reload with the schema.
 */
export const discardSmallTableStatistics: readonly string[] = [
  // A partial index covers only some rows, so the largest number counts for the table.
  `delete from sqlite_stat1 where tbl in (select tbl from sqlite_stat1 group by tbl having max(cast(stat as integer)) < ${minRows})`,
  'analyze sqlite_schema',
]

/**
 * The rows of an index that SQLite samples, as its documentation recommends; a large table takes
 * milliseconds.
 */
const maxRows = 400
/** Other processes write between two tables; they try for the lock at least every 10 ms. */
const gapMs = 15
/** Returns the `ANALYZE` statements that are due, and runs none. */
const listDue = 'pragma optimize(0xffff)'
/**
 * FTS5 reads its own tables by key alone, so their statistics would be slow to collect and never
 * used.
 */
const shadows = `select shadow.name from pragma_table_list as shadow where shadow.type = 'shadow'`

/** Analyzes one table after another, because writes wait during each. */
export async function updatePlannerStatistics<Tables>(db: Kysely<Tables>): Promise<void> {
  await sql.raw(`pragma analysis_limit = ${maxRows}`).execute(db)
  const { rows: due } = await sql.raw<Record<string, string>>(listDue).execute(db)
  const { rows: unread } = await sql.raw<{ name: string }>(shadows).execute(db)
  for (const text of due.flatMap(Object.values<string>)) {
    if (!text.startsWith('ANALYZE ') || unread.some(({ name }) => text.endsWith(`."${name}"`))) continue
    await sql.raw(text).execute(db)
    await sleep(gapMs)
  }
  const { rows } = await sql`select 1 from sqlite_schema where name = 'sqlite_stat1'`.execute(db)
  if (rows.length === 0) return
  for (const text of discardSmallTableStatistics) await sql.raw(text).execute(db)
}
