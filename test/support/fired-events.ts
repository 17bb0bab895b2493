// Records which events each operation fires, over all tests of a run. `npm test` compares the
// record with `x-events` of the contract, because clients would wait in vain for an event that an
// operation declares and never fires.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import type { AccordEvent } from '../../src/kernel/write/events.ts'
import { facts, operationAt } from './schema.ts'

/** The file of the record, a line `operationId event` each. Without it nothing is recorded. */
const record = process.env.ACCORD_TEST_FIRED
const recorded = new Set<string>()

/** Stands for the operation in lines about events that a job fires after the reply. */
const background = 'background'

function save(id: string, events: Iterable<string>): void {
  const fresh = [...events].map((event) => `${id} ${event}`).filter((line) => !recorded.has(line))
  for (const line of fresh) recorded.add(line)
  if (record !== undefined && fresh.length > 0) appendFileSync(record, `${fresh.join('\n')}\n`)
}

/** Collects the events of one server by request, until the reply says which operation it was. */
export function createFiredEvents() {
  const byRequest = new Map<string, Set<string>>()
  return {
    add: ({ name, requestId }: AccordEvent): void => {
      if (record === undefined) return
      const names = byRequest.get(requestId) ?? new Set()
      byRequest.set(requestId, names.add(name.replace(/\.(before|after)$/, '')))
    },
    /** Attributes the events of the request to the operation with the method and path. */
    answered: (requestId: string, { method, url }: { method: string; url: string }): void => {
      const id = operationAt(method, url.replace(/[?#].*/, ''))?.id
      if (id !== undefined) save(id, byRequest.get(requestId) ?? [])
      byRequest.delete(requestId)
    },
    /** Attributes what is left to jobs. */
    close: (): void => {
      for (const events of byRequest.values()) save(background, events)
    },
  }
}

const known = new URL('../contract/unfired.txt', import.meta.url)
const linesOf = (file: string | URL): string[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#'))
    : []

/**
 * Compares the record of a whole run with the contract. `missing` are the declared events that no
 * test has seen, except those of test/contract/unfired.txt; `stale` are the lines of that file
 * whose event a test has seen, or that the contract no longer declares.
 */
export function compareFired(file: string): { missing: string[]; stale: string[] } {
  const fired = new Set(linesOf(file))
  const isFired = (line: string): boolean => fired.has(line) || fired.has(line.replace(/^\w+/, background))
  const declared = facts.flatMap(([id, { events }]) => events.map((event) => `${id} ${event}`))
  const missing = declared.filter((line) => !isFired(line))
  const listed = linesOf(known)
  return {
    missing: missing.filter((line) => !listed.includes(line)),
    stale: listed.filter((line) => !missing.includes(line)),
  }
}
