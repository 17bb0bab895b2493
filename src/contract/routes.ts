// One Fastify route per operation, registered from the contract: its body limit, 405 with Allow, HEAD and OPTIONS. Reads the
// request, hands it to openapi-backend, and turns what comes back into the reply the contract describes.
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Backend, Call } from './backend.ts'
import { type OperationFact, type OperationId, operations } from './operations.gen.ts'
import { Problem } from './problems.ts'

/** What a call answers: everything but the status of success, which the contract has. */
export interface Answered {
  status: number
  headers: Record<string, string>
  cookies?: readonly string[]
  /** Undefined for replies without a body. A stream is read as fast as the caller takes it. */
  body: string | Buffer | Readable | undefined
  mediaType: string
}

const longestQuery = 8 * 1024

/** Which methods a path knows, as an Allow header; undefined for a path that is none of the contract's. */
export type Allowed = (path: string) => string | undefined

/** What is known of a request before it is read; nothing of one that is no operation's. */
export interface RouteFacts {
  operation?: OperationId
  isPublic?: boolean
  isForAnyOrigin?: boolean
  /** Media types of forms that are left in the connection. */
  forms?: readonly string[]
  /** The methods of the path, where they are asked for. */
  methods?: string
}

/** Registers every operation that has a handler. `docs` operations are served by docs.ts, under the same contract. */
export function registerRoutes(app: FastifyInstance, backend: Backend): Allowed {
  // The server would refuse a media type it cannot read before it is known who asks; body.ts reads it afterwards. A form with
  // files is left in the connection until then.
  app.addContentTypeParser(form, (_request, _payload, done) => done(null))
  app.addHook('onRequest', async (request) => {
    if (request.is404 || request.headers['content-type'] !== undefined)
      request.headers = { 'content-type': isForm(request) ? form : 'application/octet-stream' }
  })
  const methods = new Map<string, string[]>()
  const open = new Set<string>()
  for (const [id, fact] of Object.entries(operations) as [OperationId, OperationFact][]) {
    const url = fact.path.replaceAll(/\{(\w+)\}/g, ':$1')
    methods.set(url, [...(methods.get(url) ?? []), fact.method.toUpperCase()])
    if (isForAnyOrigin(fact)) open.add(url)
    if (fact.servedBy === 'docs') continue
    app.route({
      method: fact.method.toUpperCase(),
      url,
      // A form that is not left in the connection is no longer either.
      ...(fact.longestForm !== null && fact.longestForm < longestBody && { bodyLimit: fact.longestForm }),
      config: {
        operation: id,
        isPublic: fact.public,
        isForAnyOrigin: isForAnyOrigin(fact),
        forms: fact.longestForm === null ? [] : [form, ...(fact.takesBytes ? [plainForm] : [])],
      } satisfies RouteFacts,
      handler: (request, reply) => serve(backend, id, fact, request, reply),
    })
  }
  const allows = [...methods].map(([url, known]) => [url, refuseOtherMethods(app, url, known, open.has(url))] as const)
  // Fixed words win over ids.
  const patterns = allows
    .sort(([one], [other]) => Number(one.includes(':')) - Number(other.includes(':')))
    .map(
      ([url, allow]) => [new RegExp(`^${url.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/]+')}/?$`), allow] as const,
    )
  return (path) => patterns.find(([pattern]) => pattern.test(path))?.[1]
}

/** What web forms say to the public is for scripts of any page, without credentials (DOMAIN 3.1). */
const isForAnyOrigin = ({ public: isPublic, tag }: OperationFact): boolean => isPublic && tag === 'Web Forms'

/** Of what is no form, unless the server is told otherwise (app.ts). */
const longestBody = 1024 * 1024

const form = 'multipart/form-data'
const plainForm = 'application/x-www-form-urlencoded'

/** Whether this is a form that is read after it is known who asks. */
export function isForm({ raw, routeOptions }: FastifyRequest): boolean {
  const { forms = [] } = routeOptions.config as RouteFacts
  const [type = ''] = (raw.headers['content-type'] ?? '').split(';')
  return forms.includes(type.trim().toLowerCase())
}

/** What these methods miss goes the way of unknown paths, where app.ts asks `Allowed`. */
function refuseOtherMethods(app: FastifyInstance, url: string, known: string[], isOpen: boolean): string {
  const allow = [...known, ...(known.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')
  const config: RouteFacts = { isForAnyOrigin: isOpen, methods: allow }
  app.route({ method: 'OPTIONS', url, config, handler: (_request, reply) => reply.code(204).headers({ allow }).send() })
  const others = app.supportedMethods.filter((method) => !allow.split(', ').includes(method))
  app.route({
    method: others,
    url,
    exposeHeadRoute: false,
    // before a body is read: it is of no interest
    onRequest: async () => {
      throw new Problem('method_not_allowed', undefined, { headers: { allow } })
    },
    handler: (_request, reply) => reply.callNotFound(),
  })
  return allow
}

async function serve(
  backend: Backend,
  id: OperationId,
  fact: OperationFact,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const [path = '', query = ''] = split(request.url)
  if (query.length > longestQuery) throw new Problem('malformed_request', 'The query string is longer than 8 KiB.')
  const call: Call = {
    operation: id,
    fact,
    method: request.method,
    path: path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path,
    headers: request.raw.headers,
    query,
    body: request.body as Buffer | undefined,
    stream: isForm(request) ? request.raw : undefined,
    request,
  }
  if (call.stream && Number(request.raw.headers['content-length'] ?? 0) > (fact.longestForm ?? 0))
    throw new Problem('payload_too_large')
  let answer: Answered | undefined
  try {
    answer = (await backend.handle(call)) as Answered
  } finally {
    await backend.leave(call, answer === undefined)
  }
  reply.code(answer.status).headers(answer.headers)
  if (answer.cookies) reply.header('set-cookie', answer.cookies)
  if (answer.body === undefined) return reply.send()
  return reply.type(answer.mediaType).send(answer.body)
}

function split(url: string): [string, string] {
  const at = url.indexOf('?')
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)]
}
