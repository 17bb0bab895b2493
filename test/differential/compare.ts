// Compares the replies of both engines to the same request. Contains all exceptions with their
// reasons.
import { isDeepStrictEqual } from 'node:util'
import type { Wanted } from '../fuzz/requests.ts'

export interface Reply {
  status: number
  headers: Readonly<Record<string, string>>
  bytes: Buffer
}

/** A reply, or the error that `inject` threw. */
export type Outcome = Reply | Error

const excerptLength = 1_200

/** Returns the differences between the reply of SQLite and the reply of PostgreSQL. */
export function differences(operation: string | null, wanted: Wanted, sqlite: Outcome, postgres: Outcome): string[] {
  if (sqlite instanceof Error || postgres instanceof Error) {
    const [one, other] = [String(sqlite), String(postgres)]
    const areSame = sqlite instanceof Error && postgres instanceof Error && one === other
    return areSame ? [] : [difference('outcome', short(sqlite), short(postgres))]
  }
  const found: string[] = []
  if (sqlite.status !== postgres.status) found.push(difference('status', sqlite.status, postgres.status))
  found.push(...headerDifferences(sqlite, postgres, mayDiffer(operation, wanted)))
  const [one, other] = [bodyOf(operation, wanted, sqlite), bodyOf(operation, wanted, postgres)]
  if (!isDeepStrictEqual(one, other)) found.push(bodyDifference(one, other))
  return found
}

const short = (outcome: Outcome): string =>
  outcome instanceof Error ? String(outcome) : `${outcome.status} ${outcome.bytes.subarray(0, 300)}`

export const difference = (what: string, sqlite: unknown, postgres: unknown): string =>
  `${what}:\n  sqlite   ${textOf(sqlite)}\n  postgres ${textOf(postgres)}`

const textOf = (value: unknown): string =>
  (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing')).slice(0, excerptLength)

/** Headers that depend on the time of the machine. */
const ofTheMachine = new Set(['date'])
/** Headers that depend on the body. They may differ where the body may differ. */
const ofTheBody = new Set(['etag', 'content-length'])

/** Returns whether the headers of a HEAD reply describe a body that may differ. */
const mayDiffer = (operation: string | null, { method }: Wanted): boolean =>
  method === 'HEAD' && operation !== null && (operation === 'getMetrics' || operation in exceptions)

function headerDifferences(sqlite: Reply, postgres: Reply, isBodyFree: boolean): string[] {
  const haveSameBody = !isBodyFree && sqlite.bytes.equals(postgres.bytes)
  const names = new Set([...Object.keys(sqlite.headers), ...Object.keys(postgres.headers)])
  return [...names]
    .filter((name) => !ofTheMachine.has(name) && (haveSameBody || !ofTheBody.has(name)))
    .filter((name) => String(sqlite.headers[name]) !== String(postgres.headers[name]))
    .map((name) => difference(`header ${name}`, sqlite.headers[name], postgres.headers[name]))
}

type Body = Record<string, unknown>

/** The operations whose bodies may differ. Each function returns the part that must be equal. */
export const exceptions: Readonly<Record<string, (body: Body, wanted: Wanted) => unknown>> = {
  // BM25 and ts_rank compute different scores. The found records must be the same. If they do not
  // all fit into the reply, only their number must be the same.
  searchRecords: (body, { url }) => {
    const hits = (body.data ?? []) as { type: string; id: number; score: number }[]
    if (!Array.isArray(body.data)) return body
    const size = Number(/[?&]per_page=(\d+)/.exec(url)?.[1] ?? 10)
    if (hits.length >= size) return { ...body, data: hits.length }
    const key = ({ type, id }: { type: string; id: number }): string => `${type} ${id}`
    return {
      ...body,
      data: hits.map(({ score: _score, ...hit }) => hit).sort((one, other) => (key(one) < key(other) ? -1 : 1)),
    }
  },
}

/** The duration of a webhook call in milliseconds. */
const measured = /("duration_ms":)\d+/g
/**
 * The request id of background work is a random UUID. The number of UUIDs that a worker generated
 * before depends on the timing of the event loop. The request ids of requests are compared as
 * headers.
 */
const requestIds = /("request_?[iI]d":)"[^"]*"/g
/**
 * The last use of a token is stored concurrently with the request. Whether a list of tokens already
 * shows its own request depends on the timing of the event loop.
 */
const uses = /("last_used_(?:at|ip)":)(?:null|"[^"]*")/g
/** Masks values that depend on timing. */
export const comparable = (text: string): string =>
  text.replaceAll(measured, '$1').replaceAll(requestIds, '$1').replaceAll(uses, '$1')

function bodyOf(operation: string | null, wanted: Wanted, { headers, bytes }: Reply): unknown {
  // The metrics of a process differ, such as connections, statements and the size of the database.
  if (operation === 'getMetrics') return undefined
  const isJson = /[/+]json\b/.test(headers['content-type'] ?? '')
  const text = comparable(bytes.toString('latin1'))
  const exception = operation === null ? undefined : exceptions[operation]
  if (!isJson || !exception) return text
  return exception(JSON.parse(bytes.toString()) as Body, wanted)
}

/** Returns excerpts of both bodies around the first difference. */
export function bodyDifference(one: unknown, other: unknown, what = 'body'): string {
  const [first, second] = [one, other].map((each) => (typeof each === 'string' ? each : JSON.stringify(each))) as [
    string,
    string,
  ]
  let at = 0
  while (at < first.length && first[at] === second[at]) at++
  const from = Math.max(0, at - 300)
  return difference(`${what} from ${from}`, first.slice(from, at + 300), second.slice(from, at + 300))
}
