// Manages the read transaction of the read-only connection. All statements in one turn of the event
// loop share a transaction, because its begin takes as long as a simple query.

import type Database from 'better-sqlite3'

export interface ReadTransaction {
  /**
   * Begins a transaction if none is open. Reads see the same data until `end` or the end of this
   * turn of the event loop.
   */
  begin(): void
  /**
   * Ends the transaction, so that later reads see current data. A transaction that began less than
   * `agoMs` milliseconds ago stays open.
   */
  end(agoMs?: number): void
  /** Returns a number that changes after a commit of another process. */
  generation(): number
}

/**
 * Calls `onSchema` after another connection has changed the schema. `others` must return a number
 * that changes after each commit of a connection other than the store's write connection.
 */
export function createReadTransaction(
  database: Database.Database,
  { onSchema, others }: { onSchema: () => void; others: () => number },
): ReadTransaction {
  const [begin, commit] = ['begin', 'commit'].map((text) => database.prepare<[]>(text))
  const [version, schema] = ['data_version', 'schema_version'].map((name) =>
    database.prepare<[], number>(`pragma ${name}`).pluck(),
  )
  const last = { version: version?.get() ?? 0, schema: schema?.get() ?? 0, others: others() }
  let generation = 0
  let mayHaveMissedCommit = false
  let isOpen = false
  let isEndDue = false
  let since = 0

  function end(agoMs = 0): void {
    if (!isOpen || (agoMs > 0 && since > performance.now() - agoMs)) return
    isOpen = false
    // A failing disk may have ended the transaction.
    if (!database.open || !database.inTransaction) return
    try {
      commit?.run()
    } catch {
      // SQLite refuses to commit a transaction that has read a damaged page. A rollback loses
      // nothing.
      if (database.inTransaction) database.exec('rollback')
    }
  }

  function endSoon(): void {
    if (isEndDue) return
    isEndDue = true
    setImmediate(() => {
      isEndDue = false
      try {
        end()
      } catch {
        // Ignored, because the next read throws the same error.
      }
    })
  }

  function open(): void {
    if (isOpen && database.inTransaction) return
    if (!database.inTransaction) begin?.run()
    isOpen = true
    since = performance.now()
    endSoon()
    try {
      detectCommits()
    } catch (error) {
      // The transaction ends, so that the next `begin` detects commits again.
      end()
      throw error
    }
  }

  function detectCommits(): void {
    // This first read determines which data the transaction sees.
    const now = version?.get() ?? 0
    if (now === last.version) return
    // `others` may already count a commit that this transaction does not see, because it was made
    // after the first read. So the next change of `data_version` also counts.
    const foreign = others()
    const tables = schema?.get() ?? 0
    const isForeign = foreign !== last.others
    if (isForeign || mayHaveMissedCommit) generation++
    mayHaveMissedCommit = isForeign
    if (tables !== last.schema) onSchema()
    Object.assign(last, { version: now, others: foreign, schema: tables })
  }

  return {
    begin: open,
    end,
    generation() {
      open()
      return generation
    },
  }
}
