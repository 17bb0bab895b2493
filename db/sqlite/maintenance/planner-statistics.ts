// Updates the statistics of the query planner. SQLite trusts stored table sizes until the next
// analysis. It would scan a large table that had two rows then, so small tables get no statistics.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'

const minRows = 1000

/**
 * Run after `analyze`. The first statement deletes the statistics of small tables. The second makes
 * this connection reload the statistics. Other connections reload them with the schema.
 */
export const discardSmallTableStatistics: readonly string[] = [
  // A partial index counts only some rows, so the largest count is the size of the table.
  `delete from sqlite_stat1 where tbl in (select tbl from sqlite_stat1 group by tbl having max(cast(stat as integer)) < ${minRows})`,
  'analyze sqlite_schema',
]

/**
 * The number of rows that SQLite samples from each index. With the value that its documentation
 * recommends, the analysis of a large table takes milliseconds.
 */
const maxRows = 400
/**
 * The pause between two tables in milliseconds, in which other processes can write. They try to get
 * the lock at least every 10 ms.
 */
const gapMs = 15
/** Returns the due `ANALYZE` statements without running them. */
const listDue = 'pragma optimize(0xffff)'
/**
 * Returns the names of FTS5's internal tables. They get no statistics, because FTS5 reads them only
 * by key.
 */
const shadows = `select shadow.name from pragma_table_list as shadow where shadow.type = 'shadow'`

/**
 * Updates the statistics of all tables that need it, with a pause after each, because an analysis
 * blocks writes.
 */
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
