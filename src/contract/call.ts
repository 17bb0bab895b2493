// A request on its way through the steps of the pipeline, with the facts that the steps add.
import type { Readable } from 'node:stream'
import type { IgnoredKey } from './input/normalize.ts'
import type { ParsedBody, SentLines } from './input/sent.ts'
import type { Use } from './lifetime.ts'
import type { AnyOperationId, OperationFact } from './operations.gen.ts'

/** The ids that identify the caller in the log. */
export interface LoggedCaller {
  user_id: number | null
  token_id: number | null
  session_id: number | null
}

/** Counts a request toward the rate limits. */
export interface RateCounter {
  /** Called after successful authentication. Throws 429 when `caller` has made too many calls. */
  authenticated(caller: string, isWrite: boolean): void
  /** Called after failed authentication. */
  authenticationFailed(): void
  /**
   * Counts received bytes of the body toward the limit of the address, unless the credential was
   * accepted before. Throws 429 like a request.
   */
  received(bytes: number): void
}

/** A request in the pipeline. */
export interface Call {
  readonly operation: AnyOperationId
  readonly fact: OperationFact
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[] | undefined>
  readonly params: Readonly<Record<string, string>>
  readonly query: string
  /** Milliseconds since the request arrived. */
  readonly ageMs: number
  readonly body: Buffer | undefined
  /** The unread body of a multipart form. Undefined for any other request. */
  readonly stream: Readable | undefined
  /** The parsed body of a line, which was read with the line. */
  readonly parsed?: ParsedBody
  /** The lines of a body that consists of lines. */
  lines?: SentLines
  /** Carries out the operation of a line in the context of this call. */
  carryOut?: (line: LineCall, context: unknown) => Promise<unknown>
  /** Facts from Fastify, such as the IP address of the caller. */
  readonly request: {
    address: string
    id: string
    protocol: string
    host: string
    caller: LoggedCaller | null
    rateAccount: RateCounter | null
  }
  /** The body in which `findNamed` has not replaced names by ids yet. */
  namingBody?: unknown
  /** The read-only keys that the body of a PUT had. */
  ignored?: readonly IgnoredKey[]
  /** The deprecated parts of the contract that the call used. */
  readonly uses: Use[]
  /** The old names that the request has, by the new names of the fields. */
  readonly oldNames: Map<string, string>
  /** The version that the body of a PUT repeats from a reply. */
  bodyVersion?: number
  /**
   * The context of the handler, which `authenticate` or `authorizePublic` sets. Only the pipeline
   * reads it.
   */
  context?: unknown
}

/** The single operation that a line stands for. */
export interface LineCall {
  readonly operation: AnyOperationId
  readonly params: Readonly<Record<string, string>>
  readonly body: ParsedBody | undefined
}

export interface Input {
  params: Record<string, unknown>
  query: Record<string, unknown>
  body: unknown
}

export interface Refused {
  /** The names of the invalid fields. These fields were removed from the body. */
  fields: readonly string[]
  /** Whether the remaining body has all required fields. */
  isComplete: boolean
}
