// What each step of a request means (contract/backend.ts gives the order): who calls, may they, where the record is, and how
// a handler's result becomes a reply. Built once by app.ts.
import type { Call, Input, Pipeline } from './contract/backend.ts'
import { operations } from './contract/operations.gen.ts'
import type { ReplyChecker } from './contract/replies.ts'
import type { Answered } from './contract/routes.ts'
import type { OperationFact, OperationId } from './contract/types.ts'
import { covers } from './kernel/auth.ts'
import type { Context, Services } from './kernel/context.ts'
import { answerDownload, Download } from './kernel/download.ts'
import { Problem } from './kernel/errors.ts'
import { etagOf, isUnchanged } from './kernel/etag.ts'
import type { Gates, Handlers } from './kernel/handler.ts'
import { once } from './kernel/idempotency.ts'
import { leave, receive } from './kernel/multipart.ts'
import { pick } from './kernel/references.ts'
import { checkCsrf, identify } from './kernel/sessions.ts'

/** By path, what finds its record or throws; it gets the ids of the path in their order. */
export type Locators = Record<string, (ctx: Context, id: number, below: number) => Promise<void>>

export interface ReplyCheck {
  checker: ReplyChecker
  /** Called with sentences when a reply breaks the contract. */
  report: (findings: string[], call: Call) => void
  /** Share of the replies that is checked. */
  share: number
}

type AnyHandler = (ctx: Context, input: Input) => Promise<unknown>

/** `locators`: show path of a resource (`/api/admin/leads/{id}`), or path of a link below it, to what finds it. */
export function createPipeline(
  services: Services,
  handlers: Handlers,
  { locators, gates }: { locators: Locators; gates: Gates },
  check: ReplyCheck,
): Pipeline {
  const untried = neverTried(services.contract)
  return {
    async authenticate(call) {
      const { headers, request } = call
      // What was revoked before this call came is revoked, by whatever process.
      services.store.refresh()
      const caller = await identify(services, { headers, ip: request.ip, calledAt: calledAt(call) }).catch((cause) => {
        if (cause instanceof Problem && cause.status === 401) request.passage?.refused()
        throw cause
      })
      const known = caller.session ? `session ${caller.session.id}` : `token ${caller.token?.id}`
      request.passage?.accepted(known, call.fact.method !== 'get')
      if (caller.session && call.fact.method !== 'get') checkCsrf(caller.session, headers)
      call.context = contextOf(services, call, { ...caller, isInEarnest: false })
    },

    async welcome(call) {
      services.store.refresh()
      const isInEarnest = untried.has(call.operation)
      const ctx = contextOf(services, call, { user: null, token: null, session: null, isInEarnest })
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
      return body
    },

    async leave(call, hasFailed) {
      if (call.context) await leave(contextIn(call), hasFailed)
    },

    async locate(call, params) {
      const { path } = call.fact
      const [id, below] = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => params[name])
      const show = /^.*?\{id\}/.exec(path)?.[0]
      if (show === undefined || typeof id !== 'number') return
      await locators[show]?.(contextIn(call), id, 0)
      if (path !== show && typeof below === 'number') await locators[path]?.(contextIn(call), id, below)
    },

    async handle(call, input) {
      const ctx = contextIn(call)
      const handler = handlers[call.operation as OperationId] as unknown as AnyHandler
      const answer = async (ctx: Context): Promise<Answered> => {
        const reply = await handler(ctx, input)
        if (reply instanceof Download) return varying(call, sendBytes(check, ctx, call, reply))
        if (reply !== undefined || call.fact.produces.length > 0) checkReply(check, call, reply)
        return varying(call, render(ctx, call, input, reply, check.checker))
      }
      const key = header(call, 'idempotency-key')
      // A rehearsal must not use up the key of the performance.
      // Keys are kept by token or session: where there is none, nothing is, and any form of reply will do.
      if (key === undefined || ctx.user === null || call.fact.method !== 'post' || ctx.dryRun)
        return inSession(ctx, await answer(ctx))
      const { replayed, ...kept } = await once(ctx, key, input, async (inner) => {
        const { status, headers, body } = await answer(inner)
        if (typeof body === 'object') throw new Error('Only replies of JSON can be kept for an Idempotency-Key.')
        return { status, headers, body: body ?? '' }
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

/** Where there is another form than JSON, a cache must not give one caller the form that another one asked for. */
function varying({ fact }: Call, answer: Answered): Answered {
  if (fact.produces.length > 1 && fact.produces.includes(json)) answer.headers.vary = 'Accept'
  return answer
}

function render(ctx: Context, call: Call, input: Input, reply: unknown, checker: ReplyChecker): Answered {
  const { fact } = call
  const names = input.query.fields as string[] | undefined
  const shown = names ? pick(reply, names, checker.keys(fact)) : reply
  if (shown === undefined) return { status: fact.status, headers: {}, body: undefined, mediaType: json }
  const body = JSON.stringify(shown)
  const headers: Record<string, string> = {}
  if (ctx.dryRun) headers['accord-dry-run'] = 'true'
  const etag = etagOf(reply, body, fact.method === 'get')
  if (etag !== undefined) {
    headers.etag = etag
    const known = header(call, 'if-none-match')
    if (
      fact.method === 'get' &&
      known !== undefined &&
      isUnchanged(known, etag, { path: fact.path, query: input.query, reply })
    )
      return { status: 304, headers, body: undefined, mediaType: json }
  }
  const link = linkHeader(reply)
  if (link) headers.link = link
  if (fact.location && !ctx.dryRun)
    headers.location = `${ctx.base}${call.path}/${(reply as { data: { id: number } }).data.id}`
  return { status: ctx.dryRun && fact.method !== 'get' ? 200 : fact.status, headers, body, mediaType: json }
}

/** The Link header of a list (RFC 8288), from its links. */
function linkHeader(reply: unknown): string | undefined {
  const links = (reply as { links?: Record<string, string | null> } | null)?.links
  if (!links) return undefined
  return Object.entries(links)
    .filter(([, url]) => url !== null)
    .map(([rel, url]) => `<${url}>; rel="${rel}"`)
    .join(', ')
}

const json = 'application/json'

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

function checkReply(check: ReplyCheck, call: Call, reply: unknown): void {
  if (!isSampled(check)) return
  const { checker, report } = check
  // As the caller gets it: undefined keys are gone, dates are text.
  const sent: unknown = JSON.parse(JSON.stringify(reply))
  const findings = checker.findings(call.fact, call.fact.status, json, sent)
  if (findings.length > 0) report(findings, call)
}

export const contextIn = (call: Call): Context => call.context as Context

export function header(call: Call, name: string): string | undefined {
  const value = call.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/**
 * Operations that know no dry run because everybody may call them: one would be a way to ask whether something is here which
 * leaves no trace.
 */
function neverTried(contract: object): ReadonlySet<string> {
  const { paths } = contract as { paths: Record<string, Record<string, { parameters?: readonly { $ref?: string }[] }>> }
  const knows = ({ path, method }: OperationFact): boolean =>
    (paths[path]?.[method]?.parameters ?? []).some(({ $ref }) => $ref === '#/components/parameters/DryRun')
  const open = Object.entries(operations).filter(([, fact]) => fact.public && !knows(fact))
  return new Set(open.map(([id]) => id))
}

interface Caller extends Pick<Context, 'user' | 'token' | 'session'> {
  /** Whether a dry run is none here. */
  isInEarnest: boolean
}

function contextOf(services: Services, call: Call, { isInEarnest, ...who }: Caller): Context {
  const { request } = call
  const [user_id = null, token_id = null, session_id = null] = [who.user?.id, who.token?.id, who.session?.id]
  request.caller = { user_id, token_id, session_id }
  const isTrial = header(call, 'accord-dry-run') === 'true' && call.fact.method !== 'get'
  return {
    services,
    db: services.store.db,
    operation: call.operation as OperationId,
    ...who,
    origin: who.session ? 'session' : 'api',
    requestId: request.id,
    ip: request.ip,
    dryRun: isTrial && !isInEarnest,
    // To an operation that does not answer 412 it says nothing.
    ifMatch: call.fact.statuses.includes(412) ? (header(call, 'if-match') ?? null) : null,
    headers: call.headers,
    base: services.config.appUrl ?? `${request.protocol}://${request.host}`,
    calledAt: calledAt(call),
    path: call.path,
    query: call.query,
    time: services.clock.now(),
    unit: null,
    cookies: [],
    beforeCommit: null,
  }
}

const calledAt = ({ request }: Call): string => `${request.protocol}://${request.host}`
