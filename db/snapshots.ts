// Read-only snapshots of a database, for long reads while other connections write. This file
// creates those of SQLite.

import type { Database as SqliteConnection } from 'better-sqlite3'
import type { Compilable, Kysely } from 'kysely'
import { eachSqliteRow } from './sqlite/dialect.ts'
import { kyselySqliteSnapshot } from './sqlite/kysely-driver.ts'
import { createPreparedStatements } from './sqlite/prepared-statements.ts'
import { createFaultLog, type FaultLog } from './sqlite/storage-faults.ts'
import type { DB } from './tables.gen.ts'

export interface DatabaseSnapshot {
  readonly db: Kysely<DB>
  /** Streams the rows of the query. `db` can run other queries during the stream. */
  each<Row>(query: Compilable<Row>): AsyncIterable<Row>
  close(): Promise<void>
}

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
