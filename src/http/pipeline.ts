// Implements the `Pipeline` of contract/pipeline.ts: the steps that identify the caller, check
// permissions, check the record in the path, and convert the result of a handler to a reply.

import type { Readable } from 'node:stream'
import { onlyReads } from '../contract/allowed-methods.ts'
import type { Call, Input, Refused } from '../contract/call.ts'
import { takesLines } from '../contract/input/lines.ts'
import type { NamedReference, Shape } from '../contract/input/normalize.ts'
import type { ParsedBody } from '../contract/input/sent.ts'
import type { Finding } from '../contract/input/validation-errors.ts'
import type { FieldErrors } from '../contract/output/problems.ts'
import type { Pipeline } from '../contract/pipeline.ts'
import type { Answered } from '../contract/routes.ts'
import type { OperationFact, OperationId } from '../contract/types.ts'
import { covers } from '../kernel/auth/abilities.ts'
import { noteDeprecatedUses } from '../kernel/auth/deprecated-uses.ts'
import { checkCsrf, identify } from '../kernel/auth/sessions.ts'
import type { Context, Services } from '../kernel/context.ts'
import { Problem } from '../kernel/errors.ts'
import { answerDownload, Download } from '../kernel/files/download.ts'
import { cleanUpUploads, prepareUploads, receive } from '../kernel/files/multipart.ts'
import type { Handlers, PublicGuards } from '../kernel/handler.ts'
import type { Examine } from '../kernel/resource/definition.ts'
import { findNamed, type NamedFinders } from '../kernel/resource/named-references.ts'
import { matches } from '../kernel/write/etag.ts'
import { hasStoredReply, isInSteps, once } from '../kernel/write/idempotency.ts'
import { callContext, createContext, requestOriginOf } from './call-context.ts'
import { type Carrying, carryOutLine, checkedReply, enterLine, handlerContext, handlerOf } from './carry-out.ts'
import { checkDownload, type ReplyCheck } from './reply-sampling.ts'
import { header, jsonType, renderJson } from './response.ts'

/**
 * Functions by path that throw 404 or 412 for the record in the path. `id` and `below` are the ids
 * in the path, in order.
 */
export type RecordGuards = Record<string, (ctx: Context, id: number, below: number) => Promise<unknown>>

/** Functions by operation that check the rules for the valid fields of an invalid body. */
export type Examiners = Partial<Record<OperationId, Examine>>

export interface Rules {
  /**
   * The keys are paths of single records (`/api/admin/leads/{id}`) and paths of links below them.
   */
  recordGuards: RecordGuards
  publicGuards: PublicGuards
  examiners: Examiners
  /** Functions by entity that find records by name, for entities without a resource. */
  namedFinders: NamedFinders
}

interface Parts extends Rules, Carrying {}

export function createPipeline(services: Services, handlers: Handlers, rules: Rules, check: ReplyCheck): Pipeline {
  const parts: Parts = { services, handlers, ...rules, check }
  return {
    authenticate: (call) => authenticate(parts, call),
    authorizePublic: (call) => authorizePublic(parts, call),
    authorize,
    findNamed: (call, { params, body }, named) => replaceNamed(parts, call, { params, body }, named),
    receive: (call, stream, schema) => receiveForm(parts, call, stream, schema),
    assertRecordVisible: (call, params) => redirectMerged(call, params, () => assertRecordVisible(parts, call, params)),
    examine: (call, input, refused) => examine(parts, call, input, refused),
    handle: (call, input) => redirectMerged(call, input.params, () => handle(parts, call, input)),
    within(context) {
      return {
        ...this,
        authenticate: async (call) => enterLine(call, context as Context),
        handle: (call, input) => redirectMerged(call, input.params, () => carryOutLine(parts, call, input)),
      }
    },
    async finish(call, hasFailed) {
      if (call.uses.length > 0 && call.context) noteDeprecatedUses(services, call, callContext(call).token)
      if (call.context) await cleanUpUploads(callContext(call), hasFailed)
    },
  }
}

async function authenticate(parts: Parts, call: Call): Promise<void> {
  const { services } = parts
  const { headers, request, fact } = call
  // Another process may have revoked the token. A new read transaction sees every revocation that
  // was committed before this request arrived.
  services.store.renewReadTransaction(call.ageMs)
  const requestOrigin = requestOriginOf(call)
  const { user, token, session } = await identify(services, { headers, ip: request.address, requestOrigin }).catch(
    (cause) => {
      if (cause instanceof Problem && cause.status === 401) request.rateAccount?.authenticationFailed()
      throw cause
    },
  )
  request.rateAccount?.authenticated(session ? `session ${session.id}` : `token ${token?.id}`, !onlyReads(fact))
  if (session && fact.method !== 'get') checkCsrf(session, headers)
  call.context = createContext(services, call, { user, token, session, requestOrigin })
}

async function authorizePublic({ services, publicGuards }: Parts, call: Call): Promise<void> {
  services.store.renewReadTransaction(call.ageMs)
  const anonymous = { user: null, token: null, session: null }
  const ctx = createContext(services, call, { ...anonymous, requestOrigin: requestOriginOf(call) })
  call.context = ctx
  await publicGuards[call.operation as OperationId]?.(ctx)
}

function authorize(call: Call): void {
  const { permission, ability } = call.fact
  const { user, token } = callContext(call)
  if (ability !== null && token && !covers(token.abilities, ability))
    throw new Problem('forbidden', `This token lacks the ability ${ability}.`, { required: ability })
  if (permission !== null && user && user.permissions !== 'all' && !user.permissions.has(permission))
    throw new Problem('forbidden', `You need the permission ${permission} for this.`, { required: permission })
}

async function receiveForm({ services }: Parts, call: Call, stream: Readable, schema: Shape): Promise<ParsedBody> {
  const ctx = callContext(call)
  const form = { type: header(call, 'content-type') ?? '', longest: call.fact.maxFormBytes ?? 0, schema }
  const { body, uploads } = await receive(ctx, stream, form)
  call.context = { ...ctx, uploads } satisfies Context
  if (ctx.user === null) return body
  // An upload may take long, so the caller is identified and authorized again after it.
  services.store.renewReadTransaction()
  const calling = { headers: call.headers, ip: ctx.ip ?? '', requestOrigin: ctx.requestOrigin }
  const { user, token, session } = await identify(services, calling, false)
  call.context = { ...ctx, uploads, user, token, session } satisfies Context
  authorize(call)
  return body
}

/** Returns a request that names records as it was sent. Validation has changed nothing of it. */
const sentRequest = ({ params, query, namingBody: body }: Call) => ({ params, query, body })

async function replaceNamed(
  { namedFinders }: Parts,
  call: Call,
  { params, body }: Omit<Input, 'query'>,
  named: readonly NamedReference[],
): Promise<Finding[]> {
  const ctx = callContext(call)
  call.namingBody = structuredClone(body)
  // A repeated request gets its stored reply, even if a name means another record by now.
  const key = header(call, 'idempotency-key')
  const isKeyed = key !== undefined && takesKey(call.fact)
  if (isKeyed && (await hasStoredReply(ctx, key, sentRequest(call)))) return []
  return findNamed(ctx, { path: call.fact.path, params, body }, named, namedFinders)
}

/**
 * Answers 308 with the new address when a record is not found because it was merged into one that
 * the caller sees.
 */
async function redirectMerged<T>(call: Call, params: Record<string, unknown>, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'not_found' || typeof params.id !== 'number') throw error
    const ctx = callContext(call)
    const show = /^.*?\{id\}/.exec(call.fact.path)?.[0]
    const resource = [...ctx.services.resources.values()].find((each) => each.getOperation.path === show)
    const id = (await resource?.merges?.into(ctx, params.id)) ?? null
    if (id === null || !(await resource?.visibleIds(ctx, [id]))?.has(id)) throw error
    const location = ctx.baseUrl + ctx.path.replace(`/${params.id}`, `/${id}`) + (ctx.query && `?${ctx.query}`)
    throw new Problem('merged', `This ${resource?.noun} was merged into ${resource?.noun} ${id}.`, {
      headers: { location },
    })
  }
}

async function assertRecordVisible(
  { recordGuards }: Parts,
  call: Call,
  params: Record<string, unknown>,
): Promise<void> {
  const { path } = call.fact
  const [id, below] = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => params[name])
  const show = /^.*?\{id\}/.exec(path)?.[0]
  if (show === undefined || typeof id !== 'number') return
  await recordGuards[show]?.(callContext(call), id, 0)
  if (path !== show && typeof below === 'number') await recordGuards[path]?.(callContext(call), id, below)
}

async function examine(parts: Parts, call: Call, input: Input, { fields, isComplete }: Refused): Promise<FieldErrors> {
  const ctx = callContext(call)
  const examiner = parts.examiners[call.operation as OperationId]
  if (examiner) return examiner(ctx, input, fields)
  if (!isComplete || !isTried(call.fact)) return {}
  try {
    await handlerOf(parts, call)({ ...ctx, dryRun: true, refused: fields }, input)
    return {}
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error
    return error.more.errors ?? {}
  }
}

/**
 * Returns whether a dry run of the handler finds further errors of an invalid body. Excludes mass
 * operations, which report errors by record. Excludes public operations, with which anyone could
 * test whether a record exists without leaving a trace.
 */
const isTried = ({ dryRun, public: isPublic, permission, method, path }: OperationFact): boolean =>
  dryRun && !isPublic && (permission !== null || method === 'put') && !path.includes('/mass-')

/** A POST that only reads needs no key, and its reply may not be JSON. */
const takesKey = (fact: OperationFact): boolean => fact.method === 'post' && !onlyReads(fact)

/** Carries out the call. The handler's reply goes down this function until it is a response. */
async function handle(parts: Parts, call: Call, input: Input): Promise<Answered> {
  const isRead = call.fact.method === 'get'
  const ctx = handlerContext(call)
  const handler = handlerOf(parts, call)
  if (!isRead) await prepareUploads(ctx)
  const key = header(call, 'idempotency-key')
  // A dry run must not use up the key. A public call has no key, because a key belongs to a token
  // or session. The handler of lines stores their answers itself.
  const isKeyed = key !== undefined && ctx.user !== null && takesKey(call.fact) && !ctx.dryRun && !takesLines(call.fact)
  let answer: Answered = isKeyed
    ? await answerOnce(parts, ctx, call, input, key)
    : render(parts, ctx, call, input, await begun(call, await handler(ctx, input)))
  const known = isRead ? header(call, 'if-none-match') : undefined
  const { etag, vary } = answer.headers
  if (known !== undefined && etag !== undefined && matches(known, etag))
    answer = { ...answer, status: 304, headers: { etag, ...(vary !== undefined && { vary }) }, body: undefined }
  // The next session in the same browser could get a cached response of this session.
  if (ctx.session !== null || ctx.cookies.length > 0)
    answer = { ...answer, headers: { 'cache-control': 'no-store', ...answer.headers } }
  // Cookies are not stored with a reply, because they belong to this response alone.
  return ctx.cookies.length > 0 ? { ...answer, cookies: ctx.cookies } : answer
}

/** Runs the handler and stores its response under the key, or returns the stored response. */
async function answerOnce(parts: Parts, ctx: Context, call: Call, input: Input, key: string): Promise<Answered> {
  const handler = handlerOf(parts, call)
  const request = call.namingBody === undefined ? input : sentRequest(call)
  const { replayed, ...stored } = await once(ctx, key, request, {
    isInSteps: isInSteps(handler),
    handle: (inner) => handler(inner, input),
    render(inner, reply) {
      const { status, headers, body } = render(parts, inner, call, input, reply)
      if (typeof body === 'object') throw new Error('Only JSON replies can be stored for an Idempotency-Key.')
      return { status, headers, body: body ?? '' }
    },
  })
  const headers = replayed ? { ...stored.headers, 'idempotency-replayed': 'true' } : stored.headers
  return { ...stored, mediaType: jsonType, headers }
}

/** Runs what precedes the body of a download. A HEAD has no body. */
async function begun(call: Call, reply: unknown): Promise<unknown> {
  if (reply instanceof Download && call.method !== 'HEAD') await reply.parts.beforeBody?.()
  return reply
}

/** Checks the reply of a handler against the contract and turns it into a response. */
function render(parts: Parts, ctx: Context, call: Call, input: Input, reply: unknown): Answered {
  const { fact } = call
  const { check } = parts
  let answer: Answered
  if (reply instanceof Download) {
    answer = answerDownload(ctx, fact, call.method, reply)
    checkDownload(check, call, answer)
  } else {
    const { status, reply: whole } = checkedReply(parts, ctx, call, reply)
    answer = renderJson(ctx, call, input, whole, { status, checker: check.checker })
  }
  // Caches must distinguish the media types of an operation.
  if (fact.produces.length > 1) answer.headers.vary = 'Accept'
  return answer
}
