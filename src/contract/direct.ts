// The short way through a request's checks: by the validators that openapi-backend has compiled, but without parsing three times
// what the route has parsed already. test/contract/direct.test.ts holds it to what openapi-backend answers.
import type { ErrorObject, ValidateFunction } from 'ajv'
import type { Call, InternalRequest } from './backend.ts'
import { Problem } from './output/problems.ts'
import type { Matched } from './request-definition.ts'

/** Of visible letters, none of which stands for another. */
const plainPath = /^[\x21-\x24\x26-\x7e]*$/

/** What reads the parameters of a path; undefined for what is to go the long way. */
export function shortcutOf({ path, parameters = [] }: Matched): (call: Call) => Record<string, string> | undefined {
  const words = path.split('/')
  const isPlain = words.every((word) => !word.includes('{') || /^\{\w+\}$/.test(word))
  if (!isPlain || parameters.some((each) => each.in === 'cookie')) return () => undefined
  const places = words.flatMap((word, at): [string, number][] => (word.includes('{') ? [[word.slice(1, -1), at]] : []))
  const fixed = words.flatMap((word, at): [string, number][] => (word.includes('{') ? [] : [[word, at]]))
  return (call) => {
    const sent = call.path.split('/')
    // A word may have an end that the router does not look at: `tags#x`.
    if (sent.length !== words.length || !plainPath.test(call.path)) return undefined
    if (!fixed.every(([word, at]) => sent[at] === word)) return undefined
    return Object.fromEntries(places.map(([name, at]) => [name, sent[at] ?? '']))
  }
}

export interface Checked {
  validation?: { errors?: readonly ErrorObject[] | null; coerced?: unknown } | undefined
  request: { params: Record<string, string | string[]> }
}

/** Coerces what it is given. */
export function validate(
  validators: readonly ValidateFunction[],
  { params, request }: { params: Record<string, string>; request: InternalRequest },
): { errors: ErrorObject[]; coerced: { params?: Record<string, unknown> } } {
  const { query, headers, body } = request
  const path: Record<string, unknown> = { ...params }
  const sent = { path, query, header: { ...headers }, ...(body !== undefined && { requestBody: body }) }
  const errors: ErrorObject[] = []
  const coerced: { params?: Record<string, unknown> } = {}
  for (const isValid of validators) {
    if (isValid(sent)) coerced.params = path
    else errors.push(...(isValid.errors ?? []))
  }
  return { errors, coerced }
}

/**
 * openapi-backend reads the path a second time after it has coerced its parameters, which makes ids texts again. An id is
 * written in plain digits: what only coercion makes a number (`0x1`, `1e3`) names nothing (DOMAIN 3.1).
 */
export function coercedParams({ validation, request }: Checked): Record<string, unknown> {
  const { params = request.params } = (validation?.coerced ?? {}) as { params?: Record<string, unknown> }
  for (const [name, value] of Object.entries(params))
    if (typeof value === 'number' && String(value) !== request.params[name]) throw new Problem('not_found')
  return params
}
