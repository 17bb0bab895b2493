// Classifies the errors of SQLite: violated constraints and storage faults.

import type { Dialect, StorageFault } from '../dialect.ts'
import { Sqlite } from './driver.ts'
import { DatabaseFilesLostError } from './file-identity.ts'
import { UnconfirmedCommitError } from './group-commit/wal-sync.ts'

const codeOf = (error: unknown): string => (error instanceof Sqlite.SqliteError ? error.code : '')

export const isSqliteUniqueViolation = (error: unknown): boolean =>
  ['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY'].includes(codeOf(error))

// SQLite enforces `on delete restrict` with an internal trigger, so its error has the trigger code.
export const isSqliteForeignKeyViolation = (error: unknown): boolean =>
  codeOf(error) === 'SQLITE_CONSTRAINT_FOREIGNKEY' ||
  (codeOf(error) === 'SQLITE_CONSTRAINT_TRIGGER' && String(error).includes('FOREIGN KEY'))

const faults: readonly [RegExp, StorageFault][] = [
  [/^SQLITE_(BUSY|LOCKED)/, 'busy'],
  [/^SQLITE_FULL/, 'full'],
  [/^SQLITE_READONLY/, 'readonly'],
  [/^SQLITE_(IOERR|CANTOPEN|NOMEM|PROTOCOL)/, 'failing'],
  [/^SQLITE_(CORRUPT|NOTADB)/, 'damaged'],
]

export const sqliteStorageFault: Dialect['storageFault'] = (error) => {
  if (error instanceof UnconfirmedCommitError) return 'uncertain'
  if (error instanceof DatabaseFilesLostError) return 'lost'
  const code = codeOf(error)
  return faults.find(([pattern]) => pattern.test(code))?.[1] ?? null
}

/**
 * Returns whether an error of SQLite may mean damage. Errors of locks, full disks and other storage
 * faults do not mean damage.
 */
export const isDamage = (error: unknown): error is Error =>
  error instanceof Sqlite.SqliteError && [null, 'damaged'].includes(sqliteStorageFault(error))
