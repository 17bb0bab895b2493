// Runs the handler of an operation: the part of a call that a request and a line of a bulk write
// share.
import type { Call, Input } from '../contract/call.ts'
import { replySchemaOf, withOldNames } from '../contract/old-names.ts'
import { statusOfReply } from '../contract/output/status.ts'
import type { EventBase, OperationFact, OperationId } from '../contract/types.ts'
import { noteDeprecatedUses } from '../kernel/auth/deprecated-uses.ts'
import type { Context, Services } from '../kernel/context.ts'
import type { CarriedOut, Handlers } from '../kernel/handler.ts'
import { callContext } from './call-context.ts'
import { checkReply, type ReplyCheck } from './reply-sampling.ts'
import { header } from './response.ts'

export interface Carrying {
  services: Services
  handlers: Handlers
  check: ReplyCheck
}

type AnyHandler = (ctx: Context, input: Input) => Promise<unknown>

export const handlerOf = ({ handlers }: Pick<Carrying, 'handlers'>, { operation }: Call): AnyHandler =>
  handlers[operation as OperationId] as unknown as AnyHandler

/**
 * Returns the event of the change in which read-only keys are ignored. An upsert fires it for a
 * known record.
 */
const updateEventOf = ({ method, events }: OperationFact): EventBase | undefined =>
  method === 'put' ? (events[0]?.replace(/\.create$/, '.update') as EventBase | undefined) : events[0]

/** Returns the context for the handler of a call whose body has been read. */
export function handlerContext(call: Call): Context {
  // With If-Match, the version of the body adds nothing.
  const { bodyVersion } = header(call, 'if-match') === undefined ? call : {}
  const { ignored = [], lines, carryOut } = call
  return {
    ...callContext(call),
    ...(bodyVersion !== undefined && { bodyVersion }),
    ...(ignored.length > 0 && { ignored: { event: updateEventOf(call.fact), keys: ignored } }),
    ...(lines && {
      sent: { lines, carryOut: (ctx, line) => carryOut?.(line, ctx) as Promise<CarriedOut> },
    }),
  }
}

/** Returns the whole reply of a handler, which is checked against the contract, and its status. */
export function checkedReply({ services: { contract }, check }: Carrying, ctx: Context, call: Call, reply: unknown) {
  const { fact } = call
  const said = fact.warns ? withWarnings(ctx, reply) : reply
  const status = statusOfReply(said, { dryRun: ctx.dryRun, usual: fact.status })
  const whole = withOldNames(contract, () => replySchemaOf(contract, { ...fact, status }), said)
  if (said !== undefined || fact.produces.length > 0) checkReply(check, call, status, whole)
  return { status, reply: whole }
}

/** Adds the warnings of the call to the reply of a record. */
const withWarnings = ({ warnings }: Context, reply: unknown): unknown =>
  warnings.length > 0 && typeof reply === 'object' && reply !== null && 'data' in reply
    ? { ...reply, meta: { ...(reply as { meta?: object }).meta, warnings } }
    : reply

/** Sets the context of the call of a line: that of the bulk write, as if it were a request. */
export function enterLine(call: Call, outer: Context): void {
  call.context = {
    ...outer,
    operation: call.operation as OperationId,
    path: call.path,
    query: '',
    headers: call.headers,
    ifMatch: null,
    cookies: [],
    warnings: [],
    keyed: null,
  } satisfies Context
}

/** Carries out the call of a line. */
export async function carryOutLine(parts: Carrying, call: Call, input: Input): Promise<CarriedOut> {
  const ctx = handlerContext(call)
  const { status, reply } = checkedReply(parts, ctx, call, await handlerOf(parts, call)(ctx, input))
  if (call.uses.length > 0) noteDeprecatedUses(parts.services, call, ctx.token)
  return { status, reply, warnings: ctx.warnings }
}
