// Problem documents. Every error in a reply is a `Problem`.
import type { Schema } from '../types.ts'
import { type ProblemCode, problemCodes, titles } from './problem-codes.ts'

export interface Conflict {
  entity_type: string
  id: number | null
  field: string | null
}

export interface Failure {
  id: number
  status: number
  code: ProblemCode
  detail: string
}

export type FieldErrors = Record<string, string[]>

export interface ProblemMore {
  errors?: FieldErrors
  conflicts?: Conflict[]
  failed?: Failure[]
  required?: string
  oldest_id?: number
  database_role?: Schema<'DatabaseRole'>
  headers?: Record<string, string>
  cause?: unknown
}

/** An error that is sent to the caller, without `more.cause`, which is only logged. */
export class Problem extends Error {
  readonly status: number
  readonly code: ProblemCode
  readonly more: ProblemMore

  constructor(code: ProblemCode, detail?: string, more: ProblemMore = {}) {
    super(detail ?? problemCodes[code][1], more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'Problem'
    this.status = problemCodes[code][0]
    this.code = code
    this.more = more
  }
}

/** Returns the problem document, the JSON body of the reply. */
export function problemDocument(problem: Problem, about: { base: string; path: string; requestId: string }) {
  const { errors, conflicts, failed, required, oldest_id, database_role } = problem.more
  const sentences = Object.values(errors ?? {}).flat()
  const [first] = sentences
  const rest = sentences.length - 1
  const message =
    first === undefined
      ? problem.message
      : rest === 0
        ? first
        : `${first} (and ${rest} more ${rest === 1 ? 'error' : 'errors'})`
  return {
    type: `${about.base}/api/admin/documentation/errors#${problem.code}`,
    title: titles[problem.status] ?? 'Error',
    status: problem.status,
    detail: problem.message,
    instance: about.path,
    code: problem.code,
    request_id: about.requestId,
    message,
    ...(errors && { errors }),
    ...(conflicts && { conflicts }),
    ...(failed && { failed }),
    ...(required && { required }),
    ...(oldest_id !== undefined && { oldest_id }),
    ...(database_role && { database_role }),
  }
}
