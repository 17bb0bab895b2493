// Converts the path, the query and the body of a request to the form that their schemas describe.
// openapi-backend validates the result.
import type { Call } from './call.ts'
import { bodyFindings, readBody } from './input/body.ts'
import { filesAsText } from './input/form.ts'
import { linesOf, takesLines } from './input/lines.ts'
import { intakeOf, type NamedReference, normalizeBody } from './input/normalize.ts'
import { readQuery } from './input/query.ts'
import type { ParsedBody } from './input/sent.ts'
import { noteUse } from './lifetime.ts'
import type { Exchange } from './pipeline.ts'

/**
 * Parses the request and stores the values in `exchange.request`. Throws a `Problem` for an
 * unreadable request. Adds errors that JSON Schema cannot express to `exchange.found`.
 */
export async function readRequest(exchange: Exchange): Promise<void> {
  const { call, pipeline, reading, request, shapes } = exchange
  const { query, body } = exchange.found
  noteUse(call.uses, '', shapes.lifetime)
  if (ignoresDryRun(call))
    query.push(['header.Accord-Dry-Run', 'This operation cannot be tried: send the request without it.'])
  request.params = readParams(call.params, shapes.ids)
  request.query = readQuery(call.query, shapes.query, reading, query, call)
  if (takesLines(call.fact)) {
    call.lines = linesOf(call)
    return
  }
  const sent = call.stream ? await pipeline.receive(call, call.stream, shapes.body ?? {}) : readBody(call)
  if (sent === undefined) return
  body.push(...(sent.found ?? []))
  const named: NamedReference[] = []
  request.requestBody = call.fact.takesBytes ? sent.value : normalize(exchange, sent, named)
  // A name with an error, such as a control character, is not searched for.
  const readable = named.filter(({ path }) => !body.some(([field]) => field.startsWith(`${path.join('.')}.`)))
  if (readable.length > 0)
    body.push(...(await pipeline.findNamed(call, { params: request.params, body: request.requestBody }, readable)))
}

function normalize(
  { call, reading, shapes: { body: shape }, found: { body: found } }: Exchange,
  sent: ParsedBody,
  named: NamedReference[],
): unknown {
  const intake = { ...intakeOf(call.fact), asked: call }
  const version = (sent.value as { version?: unknown } | null)?.version
  if (!intake.creates && intake.ignorable?.keys.includes('version') && typeof version === 'number')
    call.bodyVersion = version
  call.ignored = intake.ignored
  const value = shape ? normalizeBody(sent.value, shape, intake, reading, found, named) : sent.value
  if (!call.stream) found.push(...filesAsText(value, shape))
  found.push(...bodyFindings(value, sent.inexact))
  return value
}

/**
 * Returns the path parameters. An id consists of plain digits, but Ajv would coerce
 * `0x1` and `1e3` to numbers. So such a text becomes a list, which Ajv refuses.
 */
function readParams(sent: Readonly<Record<string, string>>, ids: readonly string[]): Record<string, unknown> {
  const params: Record<string, unknown> = { ...sent }
  for (const name of ids) {
    const text = sent[name]
    if (text !== undefined && String(Number(text)) !== text) params[name] = [text]
  }
  return params
}

/**
 * Returns whether the caller requests a dry run that the operation does not support. The request is
 * refused, because otherwise it would change data.
 */
const ignoresDryRun = ({ fact, headers }: Call): boolean =>
  !fact.dryRun && fact.method !== 'get' && (headers['accord-dry-run'] ?? 'false') !== 'false'
