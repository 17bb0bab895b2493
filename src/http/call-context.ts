// Creates the context of a call (kernel/context.ts), which gives its handler all facts about the
// caller and the request.
import type { Call } from '../contract/call.ts'
import type { OperationId } from '../contract/types.ts'
import type { Context, Services } from '../kernel/context.ts'
import { header } from './response.ts'

type ContextCaller = Pick<Context, 'user' | 'token' | 'session' | 'requestOrigin'>

/** Returns the scheme and host of the request. */
export const requestOriginOf = ({ request }: Call): string => `${request.protocol.toLowerCase()}://${request.host}`

export const callContext = (call: Call): Context => call.context as Context

export function createContext(services: Services, call: Call, caller: ContextCaller): Context {
  const { request, fact } = call
  const { user, token, session, requestOrigin } = caller
  request.caller = { user_id: user?.id ?? null, token_id: token?.id ?? null, session_id: session?.id ?? null }
  // The properties are written out, because every request needs a context and a spread is slower.
  return {
    services,
    db: services.store.db,
    operation: call.operation as OperationId,
    user,
    token,
    session,
    requestOrigin,
    origin: session ? 'session' : 'api',
    requestId: request.id,
    ip: request.address,
    dryRun: fact.dryRun && header(call, 'accord-dry-run') === 'true',
    // Operations that cannot reply 412 ignore If-Match.
    ifMatch: fact.statuses.includes(412) ? (header(call, 'if-match') ?? null) : null,
    headers: call.headers,
    baseUrl: services.config.appUrl ?? requestOrigin,
    path: call.path,
    query: call.query,
    unit: null,
    cookies: [],
    warnings: [],
    keyed: null,
    time: services.clock.now(),
  }
}
