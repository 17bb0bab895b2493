// Classifies the errors of PostgreSQL by their SQLSTATE: violated constraints, storage faults, and
// transactions that must run again.

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

/** All connections of the pool stayed in use. */
export class PoolFullError extends Error {
  constructor(cause: unknown) {
    super('All connections to PostgreSQL are in use.', { cause })
    this.name = 'PoolFullError'
  }
}

/** The SQLSTATE for a table that does not exist. */
export const undefinedTable = '42P01'
/** The SQLSTATE of a standby for the beginning of a transaction that writes. */
export const unsupportedFeature = '0A000'

const sqlStatePattern = /^[0-9A-Z]{5}$/

/** The SQLSTATE of an error that the server sent; an empty text for any other error. */
export function sqlStateOf(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error) || !('severity' in error)) return ''
  return typeof error.code === 'string' && sqlStatePattern.test(error.code) ? error.code : ''
}

export const isUniqueViolation = (error: unknown): boolean => sqlStateOf(error) === '23505'
export const isForeignKeyViolation = (error: unknown): boolean => ['23503', '23001'].includes(sqlStateOf(error))

/** A migration has changed the columns of a prepared statement since its connection planned it. */
export const isStalePlan = (error: unknown): boolean =>
  sqlStateOf(error) === unsupportedFeature && (error as { routine?: string }).routine === 'RevalidateCachedQuery'

/**
 * A serialization failure, a deadlock or a stale plan: the same transaction can succeed when it
 * runs again.
 */
export const mustRunAgain = (error: unknown): boolean =>
  ['40001', '40P01'].includes(sqlStateOf(error)) || isStalePlan(error)

/** Classes of SQLSTATE, or whole states, and their meaning for a caller. */
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

/** The server or the connection failed, so the outcome of a COMMIT is unknown. */
export const leavesCommitUnknown = (error: unknown): boolean => {
  const state = sqlStateOf(error)
  return state === '' || lostStates.test(state)
}

/**
 * The connection must not return to its pool: it is lost, its server is a standby, or its prepared
 * statements are stale.
 */
export const endsConnection = (error: unknown): boolean =>
  leavesCommitUnknown(error) || ['25P03', '25006'].includes(sqlStateOf(error)) || isStalePlan(error)

/**
 * Turns an error without an SQLSTATE into `ConnectionLostError`. RangeError and TypeError come from
 * the parsers of values and do not mean a lost connection.
 */
export const asLost = (error: unknown): unknown =>
  sqlStateOf(error) !== '' || error instanceof StandbyError || error instanceof RangeError || error instanceof TypeError
    ? error
    : new ConnectionLostError(error)
