// The steps of a request, which the caller of `createBackend` supplies (http/pipeline.ts).
import type { Readable } from 'node:stream'
import type { Call, Input, Refused } from './call.ts'
import type { NamedReference, Reading, Shape } from './input/normalize.ts'
import type { ParsedBody } from './input/sent.ts'
import type { Finding } from './input/validation-errors.ts'
import type { MatchedRequest } from './openapi.ts'
import type { FieldErrors } from './output/problems.ts'
import type { RequestShapes } from './request-definition.ts'

export interface Pipeline {
  /**
   * Identifies the caller. Throws 401 without a valid credential. Throws 403 for a session without
   * a valid CSRF token.
   */
  authenticate(call: Call): Promise<void>
  /**
   * Prepares a call of an operation that needs no credential. Throws when the operation refuses the
   * call before its body is read.
   */
  authorizePublic(call: Call): Promise<void>
  /**
   * Throws 403 when the user lacks the permission or the token lacks the ability that the operation
   * requires.
   */
  authorize(call: Call): void
  /**
   * Replaces references by name in the body by the ids of the records. Returns an error for each
   * name that is unknown or that several records have.
   */
  findNamed(call: Call, input: Omit<Input, 'query'>, named: readonly NamedReference[]): Promise<Finding[]>
  /** Reads a multipart form from the stream, stores its files, and returns the body. */
  receive(call: Call, stream: Readable, schema: Shape): Promise<ParsedBody>
  /**
   * Throws 404 or 412 for the record in the path. Called before the errors of an invalid body are
   * sent, so that 404 and 412 take precedence.
   */
  assertRecordVisible(call: Call, params: Record<string, unknown>): Promise<void>
  /**
   * Checks the operation's rules for the valid fields of an invalid body and returns the errors.
   * Changes no data.
   */
  examine(call: Call, input: Input, refused: Refused): Promise<FieldErrors>
  handle(call: Call, input: Input): Promise<unknown>
  /**
   * Returns the steps for the operation of a line: the caller is that of `context`, and the result
   * is the reply with its status.
   */
  within(context: unknown): Pipeline
  /** Called once after every call. `hasFailed` tells whether the call threw. */
  finish(call: Call, hasFailed: boolean): Promise<void>
}

export interface Backend {
  handle(call: Call): Promise<unknown>
  finish(call: Call, hasFailed: boolean): Promise<void>
  /**
   * Authenticates the caller and checks the rights for the operation, before the body is read and
   * without counting the call. Throws like `handle`.
   */
  admit(call: Call): Promise<void>
  /** Returns the path of the operation that replaces a deprecated one. */
  successorOf(operation: string): string | undefined
  /** Compiles every validator, so that the first request of an operation does not wait for it. */
  warmUp(): Promise<void>
}

/** The state of a request in openapi-backend, which passes this object to every handler. */
export interface Exchange {
  readonly call: Call
  readonly pipeline: Pipeline
  readonly reading: Reading
  readonly shapes: RequestShapes
  readonly request: MatchedRequest
  /**
   * Errors that JSON Schema cannot express. The reply lists them together with the schema errors.
   */
  readonly found: { readonly query: Finding[]; readonly body: Finding[] }
}
