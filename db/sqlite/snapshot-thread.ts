// Runs long reads on a thread, in one read transaction, so that they do not block the event loop or
// writes.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { kyselySqliteRemote } from './kysely-driver.ts'
import { createMaintenanceThread } from './maintenance/maintenance-thread.ts'

/** Returns the path of the database file, or null for a database in memory. */
export async function mainFileOf<Tables>(db: Kysely<Tables>): Promise<string | null> {
  const { rows } = await sql<{ file: string }>`select file from pragma_database_list where name = 'main'`.execute(db)
  return rows[0]?.file || null
}

export const readInThread: Dialect['readInThread'] = async (db, work) => {
  const file = await mainFileOf(db)
  if (file === null) return work(db)
  const thread = createMaintenanceThread(file, { isReading: true, isUnsafe: true })
  try {
    // The transaction stays open until the thread closes its connection.
    await thread.run('begin')
    return await work(
      kyselySqliteRemote(async <R>({ sql: text, parameters }: { sql: string; parameters: readonly unknown[] }) => {
        const { rows } = await thread.run(text, parameters)
        return { rows: rows as R[] }
      }),
    )
  } finally {
    await thread.end()
  }
}
