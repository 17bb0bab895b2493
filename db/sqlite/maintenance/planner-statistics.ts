// Updates the statistics of the query planner. SQLite trusts stored table sizes until the next
// analysis, so it would scan a large table that had two rows at the last analysis. For this reason
// small tables get no statistics.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'

const minRows = 1000

/**
 * The statements that delete the statistics of small tables after `analyze`. The second statement
 * makes this connection reload the statistics. Other connections reload them with the schema.
 */
export const discardSmallTableStatistics: readonly string[] = [
  // A partial index covers only some rows, so the largest number counts for the table.
  `delete from sqlite_stat1 where tbl in (select tbl from sqlite_stat1 group by tbl having max(cast(stat as integer)) < ${minRows})`,
  'analyze sqlite_schema',
]

/**
 * The number of rows that SQLite samples of each index, as its documentation recommends. The
 * analysis of a large table then takes milliseconds.
 */
const maxRows = 400
/**
 * The pause between two tables in milliseconds, in which other processes write. A waiting process
 * tries to get the lock at least every 10 ms.
 */
const gapMs = 15
/** A pragma that returns the due `ANALYZE` statements and runs none of them. */
const listDue = 'pragma optimize(0xffff)'
/**
 * A query for FTS5's own tables. FTS5 reads these tables only by key, so their statistics would be
 * slow to collect and never used.
 */
const shadows = `select shadow.name from pragma_table_list as shadow where shadow.type = 'shadow'`

/**
 * Updates the statistics of all tables that need it. Analyzes one table after another, because
 * writes wait during each analysis.
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
