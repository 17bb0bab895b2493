// The connection that writes, inside a transaction and out of one. A disk that is full, or fails, makes SQLite undo all of a
// transaction or one statement of it as it likes: what came behind would stand alone, so then nothing of it is kept.

import type Database from 'better-sqlite3'
import type { QueryResult } from 'kysely'
import type { StorageFault } from '../../dialect.ts'
import { sqliteStorageFault } from '../errors.ts'
import { hasChanged, type PreparedStatements, runStatement, type SqlQuery } from '../prepared-statements.ts'
import type { FaultLog } from '../storage-faults.ts'

/** What keeps the connection from writing: null again with the next write that has come to the disk. */
export interface SqliteHealth {
  trouble: Exclude<StorageFault, 'busy'> | null
  /** How often this connection has committed a change of more than bookkeeping. */
  commits: number
}

export type OldPages = 'file' | 'memory'

export interface Guarded {
  run<R>(query: SqlQuery): QueryResult<R>
  /** The same for whoever has the connection alone and says itself where a transaction begins and ends. */
  runAlone<R>(query: SqlQuery): QueryResult<R>
  /** `oldPages`: where the pages are kept that undo a statement or a savepoint. In a file when one may change much of the database. */
  begin(oldPages: OldPages): void
  /** Commits, or throws what keeps all of it from being kept; then nothing of it is there. */
  commit(): void
  undo(): void
  /** From here on it can be undone alone. Marks do not stand inside each other. */
  mark(): void
  forgetMark(): void
  backToMark(): void
  /** Whether the transaction takes no further member: it can be committed no more, or has changed tables. */
  isFinal(): boolean
}

interface Callbacks {
  health: SqliteHealth
  /** Tables have changed. */
  onSchema: () => void
  /** Before anything that others may have to be waited for, or whose end others wait for: who reads an old state keeps them waiting. */
  onWriting: () => void
  /** Changes are committed, and so many pieces of full text; no transaction is under way. */
  onCommitted: (pieces: number) => void
  /** Another number once others have committed. */
  others: () => number
  /** A transaction begins that may see what others have committed and not synced. */
  onForeign: () => void
  /** Throws when the file is not where it was opened. */
  assertPlace: () => void
  faults: FaultLog
}

export function createWriteConnection(
  database: Database.Database,
  statements: PreparedStatements,
  { health, onSchema, onWriting, onCommitted, others, onForeign, assertPlace, faults }: Callbacks,
): Guarded {
  let isInside = false
  let isChanged = false
  let isMoreChanged = false
  let pieces = 0
  let isSchemaChanged = false
  let seenOfOthers = others()
  let lost: unknown
  let oldPages: OldPages = 'file'

  function attempt<T>(work: () => T, isForWriting: boolean): T {
    try {
      return work()
    } catch (error) {
      faults.record(error)
      const trouble = sqliteStorageFault(error)
      if (trouble !== null && trouble !== 'busy') {
        // What cannot be read is told to whoever reads it.
        if (isForWriting) health.trouble = trouble
        if (isInside) lost ??= error
      }
      throw error
    }
  }

  /** SQLite can have ended it before anybody asked for it. */
  function check(): void {
    if (!isInside) return
    if (lost === undefined && !database.inTransaction)
      lost = new Error('The database has ended the transaction by itself.')
    if (lost !== undefined) throw lost
  }

  function undo(): void {
    isInside = false
    isChanged = false
    isMoreChanged = false
    pieces = 0
    lost = undefined
    try {
      if (database.inTransaction) database.exec('rollback')
    } catch (error) {
      // What failed has undone it, or the disk cannot; then it is tried again before the next one begins.
      if (sqliteStorageFault(error) === null) throw error
    }
    told()
  }

  function committed(): void {
    isInside = false
    if (isChanged) health.trouble = null
    if (isMoreChanged) health.commits++
    const written = isChanged ? pieces : null
    isChanged = false
    isMoreChanged = false
    pieces = 0
    told()
    if (written !== null) onCommitted(written)
  }

  function told(): void {
    if (isSchemaChanged) onSchema()
    isSchemaChanged = false
  }

  function plainly(text: string): void {
    check()
    const { prepared } = statements.prepare(text)
    attempt(() => prepared.run(), text === 'commit')
  }

  function runOne<R>(query: SqlQuery): QueryResult<R> {
    check()
    const statement = attempt(() => statements.prepare(query.sql), false)
    if (!isInside) onWriting()
    if (!isInside && statement.writes) assertPlace()
    const done = attempt(() => runStatement<R>(statement, query.parameters), statement.writes)
    const isChange = hasChanged(statement, done)
    isChanged ||= isChange
    isMoreChanged ||= isChange && !statement.isHousekeeping
    if (isChange && statement.addsSegment) pieces++
    isSchemaChanged ||= statement.isSchema
    // Before the next statement is prepared; and once more when it is certain which tables there are.
    if (statement.isSchema) onSchema()
    // Outside a transaction it is on the disk by now.
    if (!isInside && !database.inTransaction) committed()
    return done
  }

  function begin(where: OldPages): void {
    undo()
    assertPlace()
    onWriting()
    keepOldPages(where)
    const { prepared } = statements.prepare('begin')
    attempt(() => prepared.run(), true)
    isInside = true
    const now = others()
    if (now === seenOfOthers) return
    seenOfOthers = now
    onForeign()
  }

  /** Each page as it was. By default that is a file, and every page is written to it on its own. */
  function keepOldPages(where: OldPages): void {
    if (where === oldPages) return
    database.pragma(`temp_store = ${where}`)
    oldPages = where
  }

  function commit(): void {
    onWriting()
    try {
      assertPlace()
      plainly('commit')
    } catch (error) {
      undo()
      throw error
    }
    committed()
  }

  const bounds = new Map([
    ['begin', () => begin('file')],
    ['commit', commit],
    ['rollback', undo],
  ])

  return {
    run: runOne,
    runAlone(query) {
      const bound = bounds.get(query.sql)
      if (bound === undefined) return runOne(query)
      bound()
      return { rows: [] }
    },
    begin,
    commit,
    undo,
    mark: () => plainly('savepoint member'),
    forgetMark: () => plainly('release savepoint member'),
    backToMark() {
      plainly('rollback to savepoint member')
      plainly('release savepoint member')
    },
    isFinal: () => isInside && (isSchemaChanged || lost !== undefined || !database.inTransaction),
  }
}
