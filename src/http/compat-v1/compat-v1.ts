// Serves version 1 of the API for clients of another system. Converts each request to a
// canonical request, runs it through the normal pipeline and converts the reply.
import type { FastifyInstance } from 'fastify'
import type { RouteFacts } from '../../contract/allowed-methods.ts'
import { bodyLimitOf, sendAnswer } from '../../contract/routes.ts'
import { createErrorHandler, problemText, refuseUnknownPath } from '../error-handler.ts'
import { answerVersion1, type CompatParts, factOf, type RowsByMethod } from './exchange.ts'
import { version1Error, version1Status } from './replies.ts'
import { type RewriteRow, rows } from './rows.ts'
import { contractSchemas } from './schemas.ts'
import type { Vocabulary } from './values.ts'

export const compatBase = '/api/v1'
const form = 'multipart/form-data'

export async function registerCompatV1(http: FastifyInstance, parts: CompatParts): Promise<void> {
  const { services } = parts
  const schemas = contractSchemas(services.contract)
  await http.register(
    async (v1) => {
      v1.setNotFoundHandler(refuseUnknownPath)
      v1.setErrorHandler(
        createErrorHandler(services.config, services.clock, (problem, request) => ({
          status: version1Status(problem),
          type: 'application/json; charset=utf-8',
          body: JSON.stringify(version1Error(JSON.parse(problemText(services.config, problem, request)))),
        })),
      )
      for (const [url, byMethod] of routesOf(rows)) registerUrl(v1, url, byMethod, { ...parts, schemas })
    },
    { prefix: compatBase },
  )
}

/** Returns the rows by URL, in Fastify's syntax. A path that ends with `{name?}` has two URLs. */
export function routesOf(table: readonly RewriteRow[]): ReadonlyMap<string, RowsByMethod> {
  const routes = new Map<string, Map<string, RewriteRow>>()
  for (const row of table)
    for (const path of new Set([row.path.replace(/\/\{\w+\?\}$/, ''), row.path.replace('?}', '}')])) {
      const url = path.replaceAll(/\{(\w+)\}/g, ':$1([^]+)')
      const byMethod = routes.get(url) ?? new Map<string, RewriteRow>()
      if (byMethod.has(row.method)) throw new Error(`The table has ${row.method} ${path} twice.`)
      routes.set(url, byMethod.set(row.method, row))
    }
  return routes
}

const everyMethod = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

function registerUrl(
  v1: FastifyInstance,
  url: string,
  byMethod: RowsByMethod,
  parts: CompatParts & Pick<Vocabulary, 'schemas'>,
): void {
  // A POST can replace a PUT or DELETE with the field `_method`.
  const methods = new Set(byMethod.keys())
  if (methods.has('PUT') || methods.has('DELETE')) methods.add('POST')
  const read = byMethod.get('GET')
  // A HEAD must not change data, so a GET whose operation changes data has no HEAD route.
  const hasHead = read !== undefined && factOf(read.operation).method === 'get'
  for (const method of methods) {
    const row = byMethod.get(method) ?? [...byMethod.values()][0]
    if (row === undefined) continue
    const fact = factOf(row.operation)
    v1.route({
      method,
      url,
      exposeHeadRoute: method === 'GET' && hasHead,
      bodyLimit: bodyLimitOf(fact),
      config: {
        operation: row.operation,
        isPublic: fact.public,
        forms: method === 'GET' ? [] : [form],
      } satisfies RouteFacts,
      handler: (request, reply) =>
        void answerVersion1(parts, byMethod, request, reply.elapsedTime)
          .then((answer) => sendAnswer(reply, answer))
          .catch((error) => reply.send(error instanceof Error ? error : new Error(String(error)))),
    })
  }
  if (hasHead) methods.add('HEAD')
  const allow = [...methods, 'OPTIONS'].join(', ')
  const others = everyMethod.filter((method) => !methods.has(method))
  const config: RouteFacts = { methods: allow }
  v1.route({ method: others, url, config, handler: (_request, reply) => reply.callNotFound() })
}
