// Filters repeated `.before` events. A PostgreSQL transaction that is retried after a conflict
// fires them again, but tests expect each event once. test/postgres/transactions.test.ts tests the
// repetitions.
import type { AccordEvent } from '../../src/kernel/write/events.ts'
import { isPostgres } from './engine.ts'

/** Returns a function that returns whether an event repeats an earlier event. */
export function findRepetitions(): (event: AccordEvent) => boolean {
  const asked = new Set<string>()
  return ({ name, requestId, entityId, input }) => {
    if (!isPostgres || !name.endsWith('.before')) {
      if (name.endsWith('.after')) forget(asked, `${requestId} ${name.replace(/after$/, 'before')}`)
      return false
    }
    const key = `${requestId} ${name} ${entityId} ${JSON.stringify(input)}`
    if (asked.has(key)) return true
    asked.add(key)
    return false
  }
}

function forget(asked: Set<string>, beginning: string): void {
  for (const key of asked) if (key.startsWith(`${beginning} `)) asked.delete(key)
}
