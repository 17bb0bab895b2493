// The types of the handlers. A handler is a plain function from the parsed input to the reply.
// Handlers are registered by operationId.
import type { Body, OperationId, Params, Query, Reply } from '../contract/types.ts'
import type { Context } from './context.ts'

export interface HandlerInput<O extends OperationId> {
  params: Params<O>
  query: Query<O>
  body: Body<O>
}

export type Handler<O extends OperationId> = (ctx: Context, input: HandlerInput<O>) => Promise<Reply<O>>

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
