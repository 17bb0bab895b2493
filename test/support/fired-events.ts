// Records which events each operation fires, over all tests of a run. `npm test` compares the
// record with `x-events` of the contract, because an event that an operation declares and never
// fires is a promise that clients wait for in vain.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import type { AccordEvent } from '../../src/kernel/write/events.ts'
import { facts, operationAt } from './schema.ts'

/** The file of the record, a line `operationId event` each. Without it nothing is recorded. */
const record = process.env.ACCORD_TEST_FIRED
const recorded = new Set<string>()

/** Collects the events of one server by request, until the reply says which operation it was. */
export function createFiredEvents() {
  const byRequest = new Map<string, string[]>()
  return {
    add: ({ name, requestId }: AccordEvent): void => {
      if (record === undefined) return
      const names = byRequest.get(requestId) ?? []
      byRequest.set(requestId, [...names, name.replace(/\.(before|after)$/, '')])
    },
    /** Attributes the events of the request to the operation with the method and path. */
    answered: (requestId: string, { method, url }: { method: string; url: string }): void => {
      const fired = byRequest.get(requestId) ?? []
      byRequest.delete(requestId)
      const id = operationAt(method, url.replace(/[?#].*/, ''))?.id
      const fresh = [...new Set(fired)].map((name) => `${id} ${name}`).filter((line) => !recorded.has(line))
      for (const line of fresh) recorded.add(line)
      if (record !== undefined && fresh.length > 0) appendFileSync(record, `${fresh.join('\n')}\n`)
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
 * Returns the findings of a whole run: declared events that no test has seen, and lines of
 * test/contract/unfired.txt whose event a test has seen or that the contract no longer declares.
 */
export function firedFindings(file: string): string[] {
  const fired = new Set(linesOf(file))
  const missing = facts
    .flatMap(([id, { events }]) => events.map((event) => `${id} ${event}`))
    .filter((line) => !fired.has(line))
  const listed = linesOf(known)
  return [
    ...missing
      .filter((line) => !listed.includes(line))
      .map((line) => `No test sees an event that x-events declares: ${line}. Write a test, or remove the event.`),
    ...listed
      .filter((line) => !missing.includes(line))
      .map((line) => `Remove from test/contract/unfired.txt, which may only shrink: ${line}`),
  ]
}
