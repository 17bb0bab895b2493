// Manages the read transaction of the connection that only reads. All statements of one turn of the
// event loop share a transaction, because beginning one takes as long as a simple query.

import type Database from 'better-sqlite3'

export interface ReadTransaction {
  /**
   * Begins a transaction unless one is open. Reads see the same data until `end` or the end of this
   * turn of the event loop.
   */
  begin(): void
  /**
   * Ends the transaction, so that later reads see current data. With `agoMs`, a transaction younger
   * than that many milliseconds stays open.
   */
  end(agoMs?: number): void
  /**
   * Returns a number that changes once a connection other than this store's writer has committed.
   */
  generation(): number
}

/**
 * Returns the read transaction of `database`. `onSchema` is called when another connection has
 * changed the schema. `others` returns a number that changes when a connection other than this
 * store's writer has committed.
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
      // SQLite refuses to commit even a read transaction that met a damaged page. A rollback loses
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
        // The error is ignored, because the next read throws the same error.
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
      // The next `begin` looks for commits again.
      end()
      throw error
    }
  }

  function detectCommits(): void {
    // This first read fixes the data that the transaction sees.
    const now = version?.get() ?? 0
    if (now === last.version) return
    // `others` may already count a commit that came after the first read and that this transaction
    // does not see. So the next change counts again.
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
