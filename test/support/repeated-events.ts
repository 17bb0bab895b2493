// Filters repeated `.before` events. A PostgreSQL transaction that is retried after a conflict
// fires them again, but tests expect each event once. test/postgres/transactions.test.ts tests the
// repetitions.
import type { AccordEvent } from '../../src/kernel/write/events.ts'
import { isPostgres } from './engine.ts'

/** The `.before` events that a request has fired since its last `.after`. */
interface Attempt {
  first: string
  names: string[]
  /** How many of `names` the running repetition has fired; null in the first attempt. */
  repeated: number | null
}

/**
 * Returns a function that tells whether an event is the repetition of an earlier one. The first
 * event of a transaction repeats with the same input. Those behind it may have other ids, because a
 * sequence does not roll back, so only their names and their order count.
 */
export function findRepetitions(): (event: AccordEvent) => boolean {
  const attempts = new Map<string, Attempt>()
  return ({ name, requestId, entityId, input }) => {
    if (!isPostgres || !requestId) return false
    const request = requestId
    if (!name.endsWith('.before')) {
      attempts.delete(request)
      return false
    }
    const attempt = attempts.get(request)
    const key = `${name} ${entityId} ${JSON.stringify(input)}`
    if (attempt === undefined) {
      attempts.set(request, { first: key, names: [name], repeated: null })
      return false
    }
    if (key === attempt.first) {
      attempt.repeated = 1
      return true
    }
    if (attempt.repeated !== null && attempt.names[attempt.repeated] === name) {
      attempt.repeated += 1
      return true
    }
    // The repetition fires more than the first attempt did, or this is the first attempt.
    attempt.names.push(name)
    if (attempt.repeated !== null) attempt.repeated += 1
    return false
  }
}
