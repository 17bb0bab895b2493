// Refuses statements on tables that another session has locked, such as by ALTER TABLE. Otherwise
// the requests for one locked table would occupy all connections, and no other request would be
// answered. The first statements wait for `lock_timeout`. Then the server tells which tables are
// locked, and for each of them one statement at a time tries again.
import type { PoolClient } from 'pg'
import { sqlStateOf } from './errors.ts'

/** The time after a failed attempt in which no further statement tries. */
const restMs = 500

/**
 * The tables that a session has locked exclusively, or waits to lock: later readers queue behind
 * it.
 */
const lockedTables = `select distinct class.relname as name
  from pg_locks join pg_class as class on class.oid = pg_locks.relation
  where pg_locks.locktype = 'relation' and pg_locks.mode = 'AccessExclusiveLock'
    and pg_locks.database = (select oid from pg_database where datname = current_database())
    and class.relnamespace = current_schema()::regnamespace`

const lockNotAvailable = '55P03'

/** A statement was refused because its table is locked. It counts as a failure of the server. */
export class LockedTableError extends Error {
  readonly code = lockNotAvailable
  readonly severity = 'ERROR'

  constructor(table: string) {
    super(`The table ${table} is locked by another session.`)
    this.name = 'LockedTableError'
  }
}

export const isLockTimeout = (error: unknown): boolean =>
  sqlStateOf(error) === lockNotAvailable && !(error instanceof LockedTableError)

interface LockedTable {
  /** Finds the name of the table in a statement. */
  word: RegExp
  /** The time before which no statement tries. */
  restsUntil: number
  isTried: boolean
}

export class LockedTables {
  readonly #tables = new Map<string, LockedTable>()
  #asking: Promise<void> | null = null

  /**
   * Throws `LockedTableError` if the statement reads or writes a locked table. Otherwise returns a
   * function to call with the outcome of the statement.
   */
  enter(text: string): (isDone: boolean) => void {
    if (this.#tables.size === 0) return () => undefined
    const used = [...this.#tables].filter(([, { word }]) => word.test(text))
    const now = performance.now()
    for (const [name, { restsUntil, isTried }] of used) {
      if (isTried || now < restsUntil) throw new LockedTableError(name)
    }
    for (const [, table] of used) table.isTried = true
    return (isDone) => {
      for (const [name, table] of used) {
        table.isTried = false
        if (isDone) this.#tables.delete(name)
      }
    }
  }

  /** Asks the server which tables are locked, after a statement waited too long for a lock. */
  learn(client: PoolClient): Promise<void> {
    this.#asking ??= this.#ask(client).finally(() => {
      this.#asking = null
    })
    return this.#asking
  }

  async #ask(client: PoolClient): Promise<void> {
    const { rows } = await client.query<{ name: string }>(lockedTables)
    const restsUntil = performance.now() + restMs
    for (const { name } of rows)
      this.#tables.set(name, { word: new RegExp(`\\b${name}\\b`), restsUntil, isTried: false })
  }
}
