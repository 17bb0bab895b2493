// What SQLite knows of the sizes of tables when it plans a query. It notes them now and then and believes them until the next time: a
// table that had two rows then is read from end to end, however long it has become. Of small ones it is better told nothing.

import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'

const fewest = 1000

/** To be run after `analyze`. The second makes this connection believe it; others do when they read the tables anew. */
export const discardSmallTableStatistics: readonly string[] = [
  // An index of some rows says how many these are; the table has as many as the longest.
  `delete from sqlite_stat1 where tbl in (select tbl from sqlite_stat1 group by tbl having max(cast(stat as integer)) < ${fewest})`,
  'analyze sqlite_schema',
]

/** Rows of an index that are looked at, as SQLite recommends it: a large table takes milliseconds. */
const maxRows = 400
/** Others write between two tables; they try for the lock every 10 ms at most. */
const gapMs = 15
/** Asks which tables are due, as statements, and does nothing. */
const asking = 'pragma optimize(0xffff)'
/** FTS5 and SQLite read these by their keys alone: their sizes decide nothing, and to count them takes long. */
const shadows = `select shadow.name from pragma_table_list as shadow where shadow.type = 'shadow'`

/** One table after another: nobody writes while one is looked at. */
export async function updatePlannerStatistics<Tables>(db: Kysely<Tables>): Promise<void> {
  await sql.raw(`pragma analysis_limit = ${maxRows}`).execute(db)
  const { rows: due } = await sql.raw<Record<string, string>>(asking).execute(db)
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
