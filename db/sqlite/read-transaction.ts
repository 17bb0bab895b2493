// What a connection that only reads sees at one time. Its statements of one turn of the event loop share a transaction: beginning one
// takes as long as a simple query, and every statement outside of one begins its own.

import type Database from 'better-sqlite3'

export interface ReadTransaction {
  /** What is read from now on is of one moment, until `end` or the end of this turn of the event loop. */
  begin(): void
  /** What is read after that is as new as it can be; or at least as new as so many milliseconds ago. */
  end(agoMs?: number): void
  /** Another number once a connection other than the one that writes here has committed a change. */
  generation(): number
}

/**
 * `onSchema`: another connection has changed the tables, so that what is known of them holds no more. `others`: another number once
 * others than the one that writes here have committed.
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
    // A disk that fails may have ended it.
    if (!database.open || !database.inTransaction) return
    try {
      commit?.run()
    } catch {
      // After a damaged page SQLite fails to commit even what only read. Nothing is lost by a rollback.
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
        // Whoever reads next meets it.
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
      lookAround()
    } catch (error) {
      // What was not seen to the end is looked for again.
      end()
      throw error
    }
  }

  function lookAround(): void {
    // The first that is read: from here on it is of this moment.
    const now = version?.get() ?? 0
    if (now === last.version) return
    // What others commit from here on is counted as well, and will be seen only next time: then it is counted once more.
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
