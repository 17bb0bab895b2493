// What each step of a request means (contract/backend.ts gives the order): who calls, may they, where the record is, and how
// a handler's result becomes a reply. Built once by app.ts.
import type { Call, Input, Pipeline } from '../contract/backend.ts'
import type { ReplyChecker } from '../contract/output/reply-check.ts'
import type { Answered } from '../contract/routes.ts'
import type { OperationFact, OperationId } from '../contract/types.ts'
import { checkCsrf, identify } from '../kernel/auth/sessions.ts'
import { covers } from '../kernel/auth/tokens.ts'
import type { Context, Services } from '../kernel/context.ts'
import { Problem } from '../kernel/errors.ts'
import { answerDownload, Download } from '../kernel/files/download.ts'
import { cleanUpUploads, receive } from '../kernel/files/multipart.ts'
import type { Gates, Handlers } from '../kernel/handler.ts'
import { createResponseCache, isKeepable, timed, type Untimed } from '../kernel/query/response-cache.ts'
import type { Examine } from '../kernel/resource/definition.ts'
import { isInSteps, once } from '../kernel/write/idempotency.ts'
import { header, json, notModifiedOr, type Rendered, renderJson, withVary } from './response.ts'

/** By path, what finds its record or throws; it gets the ids of the path in their order. */
export type Locators = Record<string, (ctx: Context, id: number, below: number) => Promise<void>>

export interface ReplyCheck {
  checker: ReplyChecker
  /** Called with sentences when a reply breaks the contract. */
  report: (findings: string[], call: Call) => void
  /** Share of the replies that is checked. */
  share: number
}

/** By operation, what its rules have against what is left of a refused body. */
export type Examiners = Partial<Record<OperationId, Examine>>

type AnyHandler = (ctx: Context, input: Input) => Promise<unknown>

/** `locators`: show path of a resource (`/api/admin/leads/{id}`), or path of a link below it, to what finds it. */
export function createPipeline(
  services: Services,
  handlers: Handlers,
  { locators, gates, examiners }: { locators: Locators; gates: Gates; examiners: Examiners },
  check: ReplyCheck,
): Pipeline {
  const replies = createResponseCache(services.config.responseCacheMb * 1024 * 1024)
  return {
    async authenticate(call) {
      const { headers, request } = call
      // What was revoked before this call came is revoked, by whatever process.
      services.store.renewReadTransaction(call.ageMs)
      const knownAt = isKeepable(handlers[call.operation as OperationId])
        ? services.store.commitGeneration()
        : undefined
      const at = calledAt(call)
      const { user, token, session } = await identify(services, {
        headers,
        ip: request.address,
        requestOrigin: at,
      }).catch((cause) => {
        if (cause instanceof Problem && cause.status === 401) request.passage?.refused()
        throw cause
      })
      request.passage?.accepted(session ? `session ${session.id}` : `token ${token?.id}`, call.fact.method !== 'get')
      if (session && call.fact.method !== 'get') checkCsrf(session, headers)
      call.context = contextOf(services, call, { user, token, session, knownAt, requestOrigin: at })
    },

    async authorizePublic(call) {
      services.store.renewReadTransaction(call.ageMs)
      const nobody = { user: null, token: null, session: null, knownAt: undefined }
      const ctx = contextOf(services, call, { ...nobody, requestOrigin: calledAt(call) })
      call.context = ctx
      await gates[call.operation as OperationId]?.(ctx)
    },

    authorize(call) {
      const { permission, ability } = call.fact
      const { user, token } = contextIn(call)
      if (ability !== null && token && !covers(token.abilities, ability)) {
        throw new Problem('forbidden', `This token lacks the ability ${ability}.`, { required: ability })
      }
      if (permission !== null && user && user.permissions !== 'all' && !user.permissions.has(permission)) {
        throw new Problem('forbidden', `You need the permission ${permission} for this.`, { required: permission })
      }
    },

    async receive(call, stream, schema) {
      const ctx = contextIn(call)
      const form = { type: header(call, 'content-type') ?? '', longest: call.fact.longestForm ?? 0, schema }
      const { body, uploads } = await receive(ctx, stream, form)
      call.context = { ...ctx, uploads } satisfies Context
      if (ctx.user === null) return body
      // Sending it may have taken long: what the caller may now counts, not what was allowed when it began.
      services.store.renewReadTransaction()
      const calling = { headers: call.headers, ip: ctx.ip ?? '', requestOrigin: ctx.requestOrigin }
      const { user, token, session } = await identify(services, calling, false)
      call.context = { ...ctx, uploads, user, token, session } satisfies Context
      this.authorize(call)
      return body
    },

    async finish(call, hasFailed) {
      if (call.context) await cleanUpUploads(contextIn(call), hasFailed)
    },

    async assertRecordVisible(call, params) {
      const { path } = call.fact
      const [id, below] = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => params[name])
      const show = /^.*?\{id\}/.exec(path)?.[0]
      if (show === undefined || typeof id !== 'number') return
      await locators[show]?.(contextIn(call), id, 0)
      if (path !== show && typeof below === 'number') await locators[path]?.(contextIn(call), id, below)
    },

    async examine(call, input, { fields, isComplete }) {
      const ctx = contextIn(call)
      const examiner = examiners[call.operation as OperationId]
      if (examiner) return examiner(ctx, input, fields)
      if (!isComplete || !isTried(call.fact)) return {}
      const handler = handlers[call.operation as OperationId] as unknown as AnyHandler
      try {
        await handler({ ...ctx, dryRun: true, refused: fields }, input)
        return {}
      } catch (error) {
        if (!(error instanceof Problem) || error.status >= 500) throw error
        return error.more.errors ?? {}
      }
    },

    async handle(call, input) {
      const ctx = contextIn(call)
      const handler = handlers[call.operation as OperationId] as unknown as AnyHandler
      const rendered = (ctx: Context, reply: unknown): Rendered => {
        if (reply instanceof Download) return withVary(call, sendBytes(check, ctx, call, reply))
        if (reply !== undefined || call.fact.produces.length > 0) checkReply(check, ctx, call, reply)
        return withVary(call, renderJson(ctx, call, input, reply, check.checker))
      }
      const answer = async (ctx: Context): Promise<Rendered> => rendered(ctx, await handler(ctx, input))
      if (call.fact.method === 'get') {
        const answered = isKeepable(handler) ? await replies.kept(ctx, keyOf(ctx), answer) : await answer(ctx)
        return inSession(ctx, notModifiedOr(call, answered))
      }
      const key = header(call, 'idempotency-key')
      // A rehearsal must not use up the key of the performance.
      // Keys are kept by token or session: where there is none, nothing is, and any form of reply will do.
      if (key === undefined || ctx.user === null || call.fact.method !== 'post' || ctx.dryRun)
        return inSession(ctx, await answer(ctx))
      const { replayed, ...kept } = await once(ctx, key, input, {
        isInSteps: isInSteps(handler),
        handle: (inner) => handler(inner, input),
        render(inner, reply) {
          const { status, headers, body } = rendered(inner, reply)
          if (typeof body === 'object') throw new Error('Only replies of JSON can be stored for an Idempotency-Key.')
          return { status, headers, body: body ?? '' }
        },
      })
      // Cookies are this answer's own, and never kept.
      return inSession(ctx, {
        ...kept,
        mediaType: json,
        headers: replayed ? { ...kept.headers, 'idempotency-replayed': 'true' } : kept.headers,
      })
    },
  }
}

/** An answer with its cookies. What a session was told no cache may tell the next one, as it would not be for a token. */
function inSession({ session, cookies }: Context, answer: Answered): Answered {
  if (session === null && cookies.length === 0) return answer
  return {
    ...answer,
    headers: { 'cache-control': 'no-store', ...answer.headers },
    ...(cookies.length > 0 && { cookies }),
  }
}

/** What the reply to a caller depends on beside the database and the time. */
const keyOf = ({ operation, token, session, path, query, baseUrl: base, requestOrigin: calledAt }: Context): string =>
  `${token?.id ?? ''} ${session?.id ?? ''} ${operation} ${path}?${query} ${base} ${calledAt}`

const isSampled = ({ share }: ReplyCheck): boolean => share >= 1 || (share > 0 && Math.random() < share)

/** Bytes are not looked into: they are declared, or they are a breach. */
function sendBytes(check: ReplyCheck, ctx: Context, call: Call, reply: Download): Answered {
  const answer = answerDownload(ctx, call.fact, call.method, reply)
  if (answer.body !== undefined && isSampled(check)) {
    const findings = check.checker.byteFindings(call.fact, answer.status, answer.mediaType)
    if (findings.length > 0) check.report(findings, call)
  }
  return answer
}

function checkReply(check: ReplyCheck, { dryRun }: Context, call: Call, reply: unknown): void {
  if (!isSampled(check)) return
  const { checker, report } = check
  // As the caller gets it: undefined keys are gone, dates are text.
  const sent: unknown = JSON.parse(JSON.stringify(reply))
  const findings = checker.findings(call.fact, dryRun ? 200 : call.fact.status, json, sent)
  if (findings.length > 0) report(findings, call)
}

export const contextIn = (call: Call): Context => call.context as Context

/**
 * Whether a refused body is tried, for what else is wrong with it. Those in mass answer for each record; and nobody can try what
 * everybody may call: that would be a way to ask whether something is here which leaves no trace.
 */
const isTried = ({ dryRun, public: isPublic, permission, method, path }: OperationFact): boolean =>
  dryRun && !isPublic && (permission !== null || method === 'put') && !path.includes('/mass-')

interface Caller extends Pick<Context, 'user' | 'token' | 'session' | 'requestOrigin'> {
  knownAt: number | undefined
}

function contextOf(services: Services, call: Call, caller: Caller): Context {
  const { request } = call
  const { user, token, session, knownAt, requestOrigin: calledAt } = caller
  request.caller = { user_id: user?.id ?? null, token_id: token?.id ?? null, session_id: session?.id ?? null }
  // Written out, since every request makes one: engines are slow to copy objects into each other.
  const ctx: Untimed = {
    services,
    db: services.store.db,
    operation: call.operation as OperationId,
    user,
    token,
    session,
    requestOrigin: calledAt,
    origin: session ? 'session' : 'api',
    requestId: request.id,
    ip: request.address,
    dryRun: call.fact.dryRun && header(call, 'accord-dry-run') === 'true',
    // To an operation that does not answer 412 it says nothing.
    ifMatch: call.fact.statuses.includes(412) ? (header(call, 'if-match') ?? null) : null,
    headers: call.headers,
    baseUrl: services.config.appUrl ?? calledAt,
    path: call.path,
    query: call.query,
    unit: null,
    cookies: [],
    warnings: [],
    keyed: null,
  }
  return timed(ctx, services.clock.now(), knownAt)
}

const calledAt = ({ request }: Call): string => `${request.protocol.toLowerCase()}://${request.host}`
