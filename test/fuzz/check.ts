// Finds errors in a reply: a status, header or body that the contract does not declare, an
// incomplete problem document, or unescaped hostile input.

import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { problemCodes } from '../../src/contract/output/problem-codes.ts'
import { createReplyChecker } from '../../src/contract/output/reply-check.ts'
import { schemaFindings } from '../contract/support.ts'
import { headerChecker } from '../support/headers.ts'
import { document, fact, facts, operationAt } from '../support/schema.ts'
import { mark, markup } from './hostile.ts'
import type { Wanted } from './requests.ts'
import type { Received } from './socket.ts'

const checker = createReplyChecker(document)

/** Statuses of unknown paths and unknown methods. */
const atTheDoor = [204, 400, 404, 405]
/**
 * The start page and the paths that redirect to it, also with a slash at the end. They are for
 * people, so the contract does not list them.
 */
const startPages = ['/', '/api', '/api/', '/api/admin', '/api/admin/']
/** Statuses of requests that are refused before routing. */
const unread = [400, 404, 408, 411, 413, 414, 417, 431, 501, 505]

/**
 * Returns the findings in a reply. `isAbused`: the request was not valid HTTP, so its operation is
 * unknown.
 */
export function findingsOf(
  wanted: Wanted,
  compressed: Received,
  isAbused: boolean,
): { operation: string | null; findings: string[] } {
  const { method } = wanted
  const received = { ...compressed, bytes: decompressed(compressed) }
  const { status, headers, bytes } = received
  const path = pathOf(wanted)
  const operation = isAbused ? null : (operationAt(method, path)?.id ?? null)
  const findings: string[] = []
  const isOdd = operation === null || operation !== wanted.operation
  const [type = ''] = (headers['content-type'] ?? '').split(';')
  const json = readJson(type, bytes, findings)
  if (status >= 500 && !(isAbused && unread.includes(status))) findings.push(`answered ${status}.`)
  else if (!isAbused && !isListed(operation, isOdd, method, received, path))
    findings.push(`answered ${status}, which the contract does not list.`)
  if (headers['x-request-id'] === undefined) findings.push('has no X-Request-Id.')
  else if (!isAbused) findings.push(...headerChecker(document).findings({ method, url: path }, status, headers))
  if (status >= 400 && method !== 'HEAD') findings.push(...problemFindings(received, type, json))
  else if (operation !== null && method !== 'HEAD' && ![204, 304].includes(status))
    findings.push(...bodyFindings(operation, wanted, received, type, json))
  if ([204, 304].includes(status) && bytes.length > 0) findings.push(`answered ${status} with a body.`)
  findings.push(...echoFindings(received, type))
  return { operation: operation ?? wanted.operation, findings }
}

/** Returns whether the request is for an event stream, whose reply does not end. */
export const isStream = ({ headers }: Pick<Wanted, 'headers'>): boolean =>
  headers.some(([, value]) => /event-stream/i.test(value))

/** Returns the findings for a request without a reply. */
export const unanswered = (wanted: Pick<Wanted, 'headers' | 'transport'>): string[] =>
  wanted.transport === 'abused' || isStream(wanted) ? [] : ['had no answer at all.']

function isListed(
  operation: string | null,
  isOdd: boolean,
  method: string,
  { status }: Received,
  path: string,
): boolean {
  if (isOdd && atTheDoor.includes(status)) return true
  // A body can be too large even if no operation reads it.
  if (method === 'OPTIONS') return status === 204 || status === 413
  if (operation === null) return status === 413 || (startPages.includes(path) && [200, 302, 304].includes(status))
  return fact(operation).statuses.includes(status)
}

export const isJson = (type: string): boolean => /^application\/(problem\+)?json\b/.test(type)

/** Returns the path that the server receives, because `inject` resolves `.` and `..`. */
function pathOf({ url, transport }: Wanted): string {
  const [path = ''] = url.split(/[?#]/)
  const isRead = transport === 'inject' && URL.canParse(path, 'http://localhost')
  return isRead ? new URL(path.startsWith('//') ? `http://localhost${path}` : path, 'http://localhost').pathname : path
}

/** Returns the decompressed bytes. */
function decompressed({ headers, bytes }: Received): Buffer {
  const encoding = headers['content-encoding']
  if (encoding === undefined || bytes.length === 0) return bytes
  return encoding === 'br' ? brotliDecompressSync(bytes) : gunzipSync(bytes)
}

function readJson(type: string, bytes: Buffer, findings: string[]): unknown {
  if (!isJson(type) || bytes.length === 0) return undefined
  try {
    return JSON.parse(bytes.toString())
  } catch {
    findings.push('says that it is JSON, and is not.')
    return undefined
  }
}

function problemFindings({ status, headers, bytes }: Received, type: string, json: unknown): string[] {
  if (status === 401 && type === 'text/html') return []
  if (type !== 'application/problem+json')
    return [`answered ${status} as ${type || 'nothing'}, not as a problem: ${bytes.subarray(0, 200)}`]
  const problem = (json ?? {}) as Record<string, unknown>
  const findings = schemaFindings('Problem', problem)
  if (!(String(problem.code) in problemCodes)) findings.push(`has the code ${problem.code}, which is none.`)
  else if (problemCodes[problem.code as keyof typeof problemCodes][0] !== status)
    findings.push(`has the code ${problem.code} with the status ${status}.`)
  if (problem.status !== status) findings.push(`says ${problem.status} in its body and ${status} in its head.`)
  if (problem.request_id !== headers['x-request-id'])
    findings.push('has another request id in its body than in its head.')
  const errors = Object.entries((problem.errors ?? {}) as Record<string, unknown>)
  if (errors.some(([field, sentences]) => field === '' || !Array.isArray(sentences) || sentences.length === 0))
    findings.push('has errors without a field or without a sentence.')
  if (errors.some(([field]) => field.length > 1_000) || bytes.length > 128 * 1024)
    findings.push(`is a problem of ${bytes.length} bytes.`)
  if (status === 405 && headers.allow === undefined) findings.push('does not say which methods are allowed.')
  if ((status === 429 || status === 503) && !/^\d+$/.test(headers['retry-after'] ?? ''))
    findings.push('does not say when to come again.')
  return findings
}

function bodyFindings(
  operation: string,
  { url }: Wanted,
  { status, bytes }: Received,
  type: string,
  json: unknown,
): string[] {
  const place = fact(operation)
  if (json === undefined || !place.produces.includes(type))
    return bytes.length === 0 && type === '' ? [] : checker.byteFindings(place, status, type)
  const found = checker.findings(place, status, type, json)
  // With `fields`, a reply has only the selected properties.
  return /[?&]fields(=|%3D)/i.test(url) ? found.filter((each) => !each.includes('required property')) : found
}

function echoFindings({ headers, bytes }: Received, type: string): string[] {
  const findings: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    if ([...String(value)].some((char) => (char < ' ' && char !== '\t') || char === '\x7f'))
      findings.push(`has a control character in ${name}.`)
    if (!['link', 'location', 'content-disposition'].includes(name) && String(value).includes(mark))
      findings.push(`repeats what was sent in ${name}.`)
  }
  if (headers.location !== undefined && !URL.canParse(headers.location)) findings.push('has a Location that is no URL.')
  if (type === 'text/html' && bytes.includes(markup)) findings.push('is a page with a script of the sender.')
  return findings
}

/** The operations of lists without path parameters. */
export const lists: readonly string[] = facts
  .filter(
    ([, { method, path, status, produces, servedBy, query }]) =>
      method === 'get' &&
      status === 200 &&
      produces[0] === 'application/json' &&
      servedBy === 'handler' &&
      !path.includes('{') &&
      'page' in query,
  )
  .map(([id]) => id)
