// One Fastify route per operation, registered from the contract: its body limit, 405 with Allow, HEAD and OPTIONS. Reads the
// request, hands it to openapi-backend, and turns what comes back into the reply the contract describes.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Backend, Call } from './backend.ts'
import { type OperationFact, type OperationId, operations } from './operations.gen.ts'
import { Problem } from './problems.ts'

/** What a call answers: everything but the status of success, which the contract has. */
export interface Answered {
  status: number
  headers: Record<string, string>
  /** Undefined for replies without a body. */
  body: string | undefined
  mediaType: string
}

const longestQuery = 8 * 1024

/** Registers every operation that has a handler. `docs` operations are served by docs.ts, under the same contract. */
export function registerRoutes(app: FastifyInstance, backend: Backend): void {
  const methods = new Map<string, string[]>()
  for (const [id, fact] of Object.entries(operations) as [OperationId, OperationFact][]) {
    const url = fact.path.replaceAll(/\{(\w+)\}/g, ':$1')
    methods.set(url, [...(methods.get(url) ?? []), fact.method.toUpperCase()])
    if (fact.servedBy === 'docs') continue
    app.route({
      method: fact.method.toUpperCase(),
      url,
      handler: (request, reply) => serve(backend, id, fact, request, reply),
    })
  }
  for (const [url, known] of methods) refuseOtherMethods(app, url, known)
}

function refuseOtherMethods(app: FastifyInstance, url: string, known: string[]): void {
  const allow = [...known, ...(known.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ')
  app.route({ method: 'OPTIONS', url, handler: (_request, reply) => reply.code(204).header('allow', allow).send() })
  const others = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'].filter((method) => !known.includes(method))
  app.route({
    method: others,
    url,
    exposeHeadRoute: false,
    handler: () => {
      throw new Problem('method_not_allowed', undefined, { headers: { allow } })
    },
  })
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
  if (!isDecodable(query))
    throw new Problem('malformed_request', 'The query string is not valid percent-encoded UTF-8.')
  const call: Call = {
    operation: id,
    fact,
    method: request.method,
    path: path.length > 1 ? path.replace(/\/+$/, '') : path,
    headers: request.headers,
    query,
    body: request.body as Buffer | undefined,
    request,
  }
  const answer = (await backend.handle(call)) as Answered
  reply.code(answer.status).headers(answer.headers)
  if (answer.body === undefined) return reply.send()
  return reply.type(answer.mediaType).send(answer.body)
}

function split(url: string): [string, string] {
  const at = url.indexOf('?')
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)]
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
