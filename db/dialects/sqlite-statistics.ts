// What SQLite knows of the sizes of tables when it plans a query. It notes them now and then and believes them until the next time: a
// table that had two rows then is read from end to end, however long it has become. Of small ones it is better told nothing.

import { type Kysely, sql } from 'kysely'

const fewest = 1000

/** To be run after `analyze`. The second makes this connection believe it; others do when they read the tables anew. */
export const forgetSmallTables: readonly string[] = [
  // An index of some rows says how many these are; the table has as many as the longest.
  `delete from sqlite_stat1 where tbl in (select tbl from sqlite_stat1 group by tbl having max(cast(stat as integer)) < ${fewest})`,
  'analyze sqlite_schema',
]

export async function noteSizes<Tables>(db: Kysely<Tables>): Promise<void> {
  await sql`pragma optimize`.execute(db)
  const { rows } = await sql`select 1 from sqlite_schema where name = 'sqlite_stat1'`.execute(db)
  if (rows.length === 0) return
  for (const text of forgetSmallTables) await sql.raw(text).execute(db)
}
