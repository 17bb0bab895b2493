// Refuses an invalid request. The reply lists all errors (DOMAIN 4.1, 4.3).
import type { ErrorObject } from 'ajv'
import type { OpenAPIBackend } from 'openapi-backend'
import type { Exchange } from './backend.ts'
import { isMissingField } from './input/body-reader.ts'
import { pruned } from './input/prune.ts'
import { fieldErrors } from './input/validation-errors.ts'
import { type FieldErrors, Problem } from './output/problems.ts'

const headerNames = ['If-Match', 'If-None-Match', 'Idempotency-Key', 'Accord-Dry-Run']

/**
 * Throws 422 with all errors. When only the body is invalid, checks the record in the path first,
 * so that a missing record is a 404.
 */
export async function refuse(
  api: OpenAPIBackend,
  exchange: Exchange,
  findings: readonly ErrorObject[] = [],
): Promise<never> {
  const { call, pipeline, request, found } = exchange
  // Only a positive integer is an id (DOMAIN 3.1). No record has any other id, so the reply is 404.
  if (findings.some(({ instancePath }) => instancePath.startsWith('/path'))) throw new Problem('not_found')
  const isBodyAlone =
    found.query.length === 0 &&
    findings.every(
      ({ instancePath, params }) => instancePath.startsWith('/requestBody') || params.missingProperty === 'requestBody',
    )
  if (isBodyAlone) await pipeline.assertRecordVisible(call, request.params)
  const errors = fieldErrors(findings, headerNames, [...found.query, ...found.body])
  if (isBodyAlone) Object.assign(errors, await findRuleErrors(api, exchange, errors))
  throw new Problem('validation_failed', undefined, { errors })
}

/**
 * Returns the errors that only the operation's rules find, such as a missing reference or a value
 * that is already taken. The rules check the valid fields of the invalid body.
 */
async function findRuleErrors(api: OpenAPIBackend, exchange: Exchange, errors: FieldErrors): Promise<FieldErrors> {
  const { call, pipeline, request, shapes } = exchange
  const { params, query, requestBody: sent } = request
  // The rules cannot check the other fields when the whole body is invalid, or when it has more
  // errors than the reply lists.
  if (typeof sent !== 'object' || sent === null || !shapes.body || errors.body) return {}
  const fields = Object.keys(errors)
  const { body, isNews } = pruned(sent, shapes.body, fields)
  const left =
    api.validator.validateRequest({ ...request, requestBody: body } as never, call.operation as never).errors ?? []
  if (!left.every(isMissingField)) return {}
  const found = await pipeline.examine(call, { params, query, body }, { fields, isComplete: left.length === 0 })
  return Object.fromEntries(Object.entries(found).filter(([field]) => isNews(field)))
}
