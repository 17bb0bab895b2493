// The type of every handler: plain functions from parsed input to the reply, named by operationId
// (house rule 3).
import type { Body, OperationId, Params, Query, Reply } from '../contract/types.ts'
import type { Context } from './context.ts'

export interface HandlerInput<O extends OperationId> {
  params: Params<O>
  query: Query<O>
  body: Body<O>
}

export type Handler<O extends OperationId> = (ctx: Context, input: HandlerInput<O>) => Promise<Reply<O>>

/** One handler for every operation of the contract: a missing handler does not compile. */
export type Handlers = { [O in OperationId]: Handler<O> }

/** The checks of public operations that may refuse a call before its body is read. */
export type Gates = Partial<Record<OperationId, (ctx: Context) => Promise<void>>>

export type HandlersFor<O extends OperationId> = { [Each in O]: Handler<Each> }
