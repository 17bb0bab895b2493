// Classifies the errors of PostgreSQL by SQLSTATE: violated constraints, storage faults, and errors
// after which a transaction is retried.

import type { StorageFault } from '../dialect.ts'

/** The connection failed while a COMMIT was under way, so its outcome is unknown. */
export class UncertainCommitError extends Error {
  constructor(cause: unknown) {
    super('The connection was lost during a commit.', { cause })
    this.name = 'UncertainCommitError'
  }
}

/** The server could not be reached, or the connection was lost. No commit was under way. */
export class ConnectionLostError extends Error {
  constructor(cause: unknown) {
    super(`The connection to PostgreSQL failed: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'ConnectionLostError'
  }
}

/** The server is a standby, which accepts no writes. */
export class StandbyError extends Error {
  constructor(cause?: unknown) {
    super('The PostgreSQL server is a standby, which only reads.', { cause })
    this.name = 'StandbyError'
  }
}

/** No connection of the pool became free in time. */
export class PoolFullError extends Error {
  constructor(cause: unknown) {
    super('All connections to PostgreSQL are in use.', { cause })
    this.name = 'PoolFullError'
  }
}

/** The SQLSTATE of a statement whose table does not exist. */
export const undefinedTable = '42P01'
/**
 * The SQLSTATE of two errors: a standby refuses a read-write transaction, or a prepared plan is
 * stale.
 */
export const unsupportedFeature = '0A000'

const sqlStatePattern = /^[0-9A-Z]{5}$/

/** Returns the SQLSTATE of an error that the server sent, or an empty text for any other error. */
export function sqlStateOf(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error) || !('severity' in error)) return ''
  return typeof error.code === 'string' && sqlStatePattern.test(error.code) ? error.code : ''
}

export const isUniqueViolation = (error: unknown): boolean => sqlStateOf(error) === '23505'
export const isForeignKeyViolation = (error: unknown): boolean => ['23503', '23001'].includes(sqlStateOf(error))

/**
 * Returns whether a prepared statement failed because a migration has changed its result columns.
 */
export const isStalePlan = (error: unknown): boolean =>
  sqlStateOf(error) === unsupportedFeature && (error as { routine?: string }).routine === 'RevalidateCachedQuery'

/**
 * Returns whether a retry of the transaction can succeed: after a serialization failure, a deadlock
 * or a stale plan.
 */
export const mustRunAgain = (error: unknown): boolean =>
  ['40001', '40P01'].includes(sqlStateOf(error)) || isStalePlan(error)

/** Maps SQLSTATEs and classes of SQLSTATEs to storage faults. */
const faults: readonly [RegExp, StorageFault][] = [
  [/^(40001|40P01|55P03|57014|25P03|53300|53400)$/, 'busy'],
  [/^53100$/, 'full'],
  [/^25006$/, 'standby'],
  [/^(08...|57P0[1-5]|53200)$/, 'unreachable'],
  [/^(58...|F0000)$/, 'failing'],
  [/^XX00[12]$/, 'damaged'],
]

export function postgresStorageFault(error: unknown): StorageFault | null {
  if (error instanceof UncertainCommitError) return 'uncertain'
  if (error instanceof ConnectionLostError) return 'unreachable'
  if (error instanceof PoolFullError) return 'busy'
  if (error instanceof StandbyError) return 'standby'
  const state = sqlStateOf(error)
  return faults.find(([pattern]) => pattern.test(state))?.[1] ?? null
}

const lostStates = /^(08...|57P0[1-5])$/

/**
 * Returns whether the error of a COMMIT leaves its outcome unknown: the server or the connection
 * failed.
 */
export const leavesCommitUnknown = (error: unknown): boolean => {
  const state = sqlStateOf(error)
  return state === '' || lostStates.test(state)
}

/**
 * Returns whether the connection must be closed: it is lost, its server is a standby, or its
 * prepared statements are stale.
 */
export const endsConnection = (error: unknown): boolean =>
  leavesCommitUnknown(error) || ['25P03', '25006'].includes(sqlStateOf(error)) || isStalePlan(error)

/**
 * Turns an error without an SQLSTATE into `ConnectionLostError`, except a RangeError or TypeError:
 * the parsers of column values throw these.
 */
export const asLost = (error: unknown): unknown =>
  sqlStateOf(error) !== '' || error instanceof StandbyError || error instanceof RangeError || error instanceof TypeError
    ? error
    : new ConnectionLostError(error)
