// The manual of the API: Swagger UI, the catalogue of problem codes, and the contract itself as JSON and YAML, all from
// what `accord install` and `accord regenerate` published. Nothing on these pages comes from another host (DOMAIN 26).
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import plugin from 'fastify-plugin'
import type { Config } from './config.ts'
import { didYouMean, type Finding } from './contract/findings.ts'
import { booleans } from './contract/normalise.ts'
import { type FieldErrors, Problem } from './contract/problems.ts'
import { readQuery } from './contract/query.ts'
import { mark, pageStyle, sessionScript } from './docs/assets.ts'
import { errorCatalogue } from './docs/catalogue.ts'
import { matches } from './kernel/etag.ts'
import { escapeHtml } from './kernel/format.ts'
import type { Published } from './published.ts'

const base = '/api/admin'
const page = `${base}/documentation`

// `style-src` without 'unsafe-inline' holds because Swagger UI sets its styles through the DOM, which CSP allows.
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

interface Options {
  config: Config
  published: () => Published | null
  /** The published contract with this installation's attributes. */
  served: () => Promise<Published | null>
}

export async function registerDocs(http: FastifyInstance, { config, published, served }: Options): Promise<void> {
  /** The published contract as it is now: `accord regenerate` shows on the next reload. */
  const installed = (request: FastifyRequest): Published => {
    const found = published()
    if (found) return found
    request.log.warn({ data: config.dataDir }, 'There is no published contract in the data folder. Run: accord install')
    throw new Problem('not_found', 'This server is not installed yet. Run `accord install`, then reload this page.')
  }

  const asked = async (request: FastifyRequest): Promise<Published> =>
    isCustom(request, config) ? ((await served()) ?? installed(request)) : installed(request)

  http.get(`${base}/openapi.json`, async (request, reply) => {
    const { json, etag } = await asked(request)
    return sendDocument(request, reply, { bytes: json, etag, type: 'application/json' })
  })
  http.get(`${base}/openapi.yaml`, async (request, reply) => {
    const { yaml, etag } = await asked(request)
    return sendDocument(request, reply, { bytes: yaml, etag: etag.replace(/"$/, '-yaml"'), type: 'application/yaml' })
  })
  http.get(`${page}/errors`, (request, reply) => {
    installed(request)
    const { html, headers } = errorCatalogue(config)
    return reply.headers(headers).type('text/html; charset=utf-8').send(html)
  })

  // Swagger UI asks for a plugin of this name, which derives a document from routes. Ours is written by hand.
  await http.register(
    plugin(async (http: FastifyInstance) => void http.decorate('swagger', () => published()?.document ?? {}), {
      name: '@fastify/swagger',
    }),
  )
  await http.register(swaggerUi, {
    routePrefix: page,
    staticCSP: contentSecurityPolicy,
    uiConfig: {
      layout: 'BaseLayout',
      deepLinking: true,
      displayOperationId: true,
      displayRequestDuration: true,
      docExpansion: 'list',
      filter: true,
      persistAuthorization: true,
      tryItOutEnabled: false,
      defaultModelsExpandDepth: 0,
    },
    theme: {
      title: `${escapeHtml(config.appName)} API`,
      css: [{ filename: 'accord.css', content: pageStyle(config.appName) }],
      js: [{ filename: 'session.js', content: sessionScript }],
      favicon: [{ filename: 'favicon.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content: mark }],
    },
    uiHooks: {
      onRequest: async (request, reply) => {
        reply.header('cache-control', 'no-cache')
        installed(request)
        // The document has one address with an ETag; the page's own copies lead there.
        const copy = /\/(json|yaml)\/?$/.exec(request.url.split('?')[0] ?? '')
        if (copy) return reply.redirect(`../openapi.${copy[1]}`)
      },
    },
  })
}

interface Document {
  bytes: Buffer
  etag: string
  type: string
}

function sendDocument(request: FastifyRequest, reply: FastifyReply, { bytes, etag, type }: Document): FastifyReply {
  reply.headers({ etag, 'cache-control': 'no-cache' })
  const known = request.headers['if-none-match']
  if (known !== undefined && matches(known, etag)) return reply.code(304).send()
  return reply.type(`${type}; charset=utf-8`).send(bytes)
}

/** Whether the contract is wanted with this installation's attributes. Throws 422 for neither yes nor no, and for other words. */
function isCustom({ url }: FastifyRequest, { strict, timezone: zone }: Config): boolean {
  const [, raw = ''] = url.split(/\?(.*)/s)
  const found: Finding[] = []
  const { custom = 'true', ...others } = readQuery(raw, { custom: { type: 'boolean' } }, { zone, strict }, found)
  const errors: FieldErrors = Object.fromEntries(found.map(([name, sentence]) => [name, [sentence]]))
  for (const name of Object.keys(others))
    errors[`query.${name.slice(0, 100)}`] = [`Unknown parameter.${didYouMean(name, ['custom'])}`]
  const wanted = booleans.get(custom)
  if (wanted === undefined) errors['query.custom'] = ['Must be true or false.']
  if (wanted === undefined || Object.keys(errors).length > 0)
    throw new Problem('validation_failed', undefined, { errors })
  return wanted
}
