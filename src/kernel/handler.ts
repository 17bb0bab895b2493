// The types of the handlers. A handler is a plain function from the parsed input to the reply.
// Handlers are registered by operationId.
import type { LineCall } from '../contract/call.ts'
import type { SentLines } from '../contract/input/sent.ts'
import type { Body, OperationId, Params, Query, Reply } from '../contract/types.ts'
import type { Context, Warning } from './context.ts'

export interface HandlerInput<O extends OperationId> {
  params: Params<O>
  query: Query<O>
  body: Body<O>
}

export type Handler<O extends OperationId> = (ctx: Context, input: HandlerInput<O>) => Promise<Reply<O>>

/** The result of the operation of a line. */
export interface CarriedOut {
  status: number
  reply: unknown
  warnings: readonly Warning[]
}

/** The lines of a body that consists of lines, and what carries them out. */
export interface Sent {
  readonly lines: SentLines
  /** Reads, checks and carries out the operation of a line, like a request of its own. */
  carryOut(ctx: Context, line: LineCall): Promise<CarriedOut>
}

/** Maps every operationId of the contract to its handler. A missing handler is a compile error. */
export type Handlers = { [O in OperationId]: Handler<O> }

/**
 * Merges the handlers of several sources. If two sources define the same operation, the call does
 * not compile.
 */
export const mergeHandlers = <Sources extends readonly object[]>(
  ...sources: Sources & ([Repeated<Sources>] extends [never] ? unknown : Repeated<Sources>)
): IntersectionOf<Sources[number]> => Object.assign({}, ...sources)

/** The operations that more than one of the sources defines. */
type Repeated<Sources> = Sources extends readonly [infer First, ...infer Rest]
  ? (keyof First & KeyOfAny<Rest[number]>) | Repeated<Rest>
  : never

type KeyOfAny<Source> = Source extends unknown ? keyof Source : never

export type IntersectionOf<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer All) => void
  ? All
  : never

/**
 * Checks of public operations, by operationId. Each check may refuse a call before the server reads
 * its body.
 */
export type PublicGuards = Partial<Record<OperationId, (ctx: Context) => Promise<void>>>

export type HandlersFor<O extends OperationId> = { [Each in O]: Handler<Each> }
