// Refuses an invalid request with a reply that lists all errors.
import type { ErrorObject } from 'ajv'
import type { OpenAPIBackend } from 'openapi-backend'
import { validPartOf } from './input/prune.ts'
import { fieldErrors } from './input/validation-errors.ts'
import { type OperationFact, operations } from './operations.gen.ts'
import { type FieldErrors, Problem } from './output/problems.ts'
import type { Exchange } from './pipeline.ts'

const headerNames = ['If-Match', 'If-None-Match', 'Idempotency-Key', 'Accord-Dry-Run']

/**
 * Throws 422 with all errors. When only the body is invalid, checks the record in the path first,
 * and throws 404 if it is missing.
 */
export async function refuse(
  api: OpenAPIBackend,
  exchange: Exchange,
  findings: readonly ErrorObject[] = [],
): Promise<never> {
  const { call, pipeline, request, found } = exchange
  // An id is a positive integer. No record has any other id, so the reply is 404. An upsert would
  // create the record in its path.
  const { method, status } = call.fact
  const isUpsert = method === 'put' && status === 201
  if (!isUpsert && findings.some(({ instancePath }) => instancePath.startsWith('/path'))) throw new Problem('not_found')
  const isBodyAlone =
    found.query.length === 0 &&
    findings.every(
      ({ instancePath, params }) => instancePath.startsWith('/requestBody') || params.missingProperty === 'requestBody',
    )
  if (isBodyAlone) await pipeline.assertRecordVisible(call, request.params)
  const errors = fieldErrors(findings, headerNames, [...found.query, ...found.body], relatedHint(call.fact.path))
  if (isBodyAlone) Object.assign(errors, await findRuleErrors(api, exchange, errors))
  throw new Problem('validation_failed', undefined, { errors })
}

/** Returns a sentence that names the query operation beside a list, if there is one. */
function relatedHint(list: string): string {
  const path = `${list}/query`
  const exists = (Object.values(operations) as OperationFact[]).some((each) => each.path === path)
  return exists ? ` POST ${path} takes conditions on related records.` : ''
}

/**
 * Checks the operation's rules for the valid fields of the invalid body. Returns their errors, such
 * as a reference to a missing record or a value that is already taken.
 */
async function findRuleErrors(api: OpenAPIBackend, exchange: Exchange, errors: FieldErrors): Promise<FieldErrors> {
  const { call, pipeline, request, shapes } = exchange
  const { params, query, requestBody: sent } = request
  // An error of `body` means that the whole body is invalid or has more errors than the reply
  // lists. The valid fields are then unknown.
  if (typeof sent !== 'object' || sent === null || !shapes.body || errors.body) return {}
  const fields = Object.keys(errors)
  const part = validPartOf(
    sent,
    shapes.body,
    fields,
    (requestBody) =>
      api.validator.validateRequest({ ...request, requestBody } as never, call.operation as never).errors ?? [],
  )
  if (!part) return {}
  const { body, isComplete, news } = part
  return news(await pipeline.examine(call, { params, query, body }, { fields, isComplete }))
}
