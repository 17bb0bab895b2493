// A transaction of PostgreSQL that runs again after a conflict asks its `.before` listeners again.
// Tests expect each event once; test/postgres/transactions.test.ts is about the repetitions.
import type { AccordEvent } from '../../src/kernel/write/events.ts'
import { isPostgres } from './engine.ts'

/** Returns a function that tells whether an event is the repetition of an earlier one. */
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
