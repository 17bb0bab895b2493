// Creates the snapshots of SQLite.
import type { Database as SqliteConnection } from 'better-sqlite3'
import type { Compilable } from 'kysely'
import type { DatabaseSnapshot } from '../snapshots.ts'
import type { DB } from '../tables.gen.ts'
import { eachSqliteRow } from './dialect.ts'
import { kyselySqliteSnapshot } from './kysely-driver.ts'
import { createPreparedStatements } from './prepared-statements.ts'
import { createFaultLog, type FaultLog } from './storage-faults.ts'

export function createSnapshot(connection: SqliteConnection, faults: FaultLog = createFaultLog()): DatabaseSnapshot {
  const db = kyselySqliteSnapshot<DB>(createPreparedStatements(connection), faults)
  let isClosed = false
  // The running queries. SQLite cannot close the connection while a query runs.
  const open = new Set<IterableIterator<unknown>>()
  return {
    db,
    async *each<Row>(query: Compilable<Row>) {
      const rows = faults.recording(() => eachSqliteRow(connection, query.compile()))
      open.add(rows)
      for (;;) {
        const { done, value } = faults.recording(() => rows.next())
        if (done) break
        yield value as Row
      }
      open.delete(rows)
      // Closing the snapshot ends the rows early. The caller must not mistake that for the last
      // row.
      if (isClosed) throw new Error('The snapshot was closed while it was read.')
    },
    close: async () => {
      isClosed = true
      for (const rows of open) rows.return?.()
      open.clear()
      connection.close()
    },
  }
}
