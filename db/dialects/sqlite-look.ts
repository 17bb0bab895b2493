// What a connection that only reads sees at one time. Its statements of one turn of the event loop share a transaction: beginning one
// takes as long as a simple query, and every statement outside of one begins its own.

import type Database from 'better-sqlite3'

export interface Look {
  /** What is read from now on is of one moment, until `end` or the end of this turn of the event loop. */
  begin(): void
  /** What is read after that is as new as it can be; or at least as new as so many milliseconds ago. */
  end(agoMs?: number): void
  /** Another number once another connection has committed a change. */
  generation(): number
}

export function lookOf(database: Database.Database): Look {
  const [begin, commit] = ['begin', 'commit'].map((text) => database.prepare<[]>(text))
  const version = database.prepare<[], number>('pragma data_version').pluck()
  let isOpen = false
  let isEndDue = false
  let seen: number | null = null
  let since = 0

  function end(agoMs = 0): void {
    if (!isOpen || (agoMs > 0 && since > performance.now() - agoMs)) return
    isOpen = false
    seen = null
    // A disk that fails may have ended it.
    if (database.open && database.inTransaction) commit?.run()
  }

  function endSoon(): void {
    if (isEndDue) return
    isEndDue = true
    setImmediate(() => {
      isEndDue = false
      end()
    })
  }

  function open(): void {
    if (isOpen && database.inTransaction) return
    begin?.run()
    isOpen = true
    seen = null
    since = performance.now()
    endSoon()
  }

  return {
    begin: open,
    end,
    generation() {
      open()
      seen ??= version.get() ?? 0
      return seen
    },
  }
}
