// Turns a problem document (RFC 9457) into an exception with its code.
import type { components } from '../../src/contract/schema.gen.ts'

type Problem = components['schemas']['Problem']
/** The problem code of an error. `/api/admin/documentation/errors` lists all codes. */
export type AccordProblemCode = Problem['code']

const maxFields = 3

/** A reply with an error status. The message names the wrong fields. */
export class AccordProblem extends Error {
  override readonly name = 'AccordProblem'
  readonly status: number
  /** The problem code; undefined when something other than the server answered, such as a proxy. */
  readonly code: AccordProblemCode | undefined
  /** Error sentences by field; empty when no field is wrong. */
  readonly errors: Readonly<Record<string, readonly string[]>>
  /**
   * The whole problem document, with the message of the server; empty when something other than the
   * server answered.
   */
  readonly problem: Partial<Problem>
  /** Not enumerable, because a logger would print all of its internals. */
  declare readonly response: Response

  constructor(response: Response, body: unknown) {
    const problem: Partial<Problem> = typeof body === 'object' && body !== null ? body : {}
    super(describe(problem) ?? `The server answered ${response.status}.`)
    Object.defineProperty(this, 'response', { value: response })
    this.status = response.status
    this.problem = problem
    this.code = problem.code
    this.errors = problem.errors ?? {}
  }
}

/**
 * Returns the errors of the first fields with their names, such as `title: The field is required.`
 * Returns the message of the server when no field is wrong.
 */
function describe({ errors, message }: Partial<Problem>): string | undefined {
  // A proxy may send errors of another form.
  const isOurs = typeof errors === 'object' && !Array.isArray(errors)
  const fields = Object.entries(isOurs ? errors : {}).filter(([, sentences]) => Array.isArray(sentences))
  if (fields.length === 0) return message
  const named = fields.slice(0, maxFields).map(([field, sentences]) => `${field}: ${sentences.join(' ')}`)
  const more = fields.length - named.length
  return [...named, ...(more > 0 ? [`(and ${more} more)`] : [])].join(' ')
}

/**
 * Returns the reply of a call, and throws AccordProblem for an error. Returns undefined for a reply
 * without a body.
 */
export async function unwrap<Data>(call: Promise<{ data?: Data; error?: unknown; response: Response }>): Promise<Data> {
  const { data, error, response } = await call
  if (!response.ok) throw new AccordProblem(response, error)
  return data as Data
}
