// Runs Swagger UI in a separate Fastify server that does not listen. Swagger UI is large, so it is
// loaded at the first visit, which keeps the start fast. The outer server gets each file by
// `inject`.
import Fastify, { type FastifyInstance } from 'fastify'
import plugin from 'fastify-plugin'
import type { Config } from '../../config/config.ts'
import { escapeHtml } from '../../kernel/values/format.ts'
import { mark, pageStyle, sessionScript } from './assets.ts'

// `style-src` needs no 'unsafe-inline', because Swagger UI sets its styles through the DOM, which
// the CSP allows.
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

export const documentationPath = '/api/admin/documentation'

export async function swaggerPages(config: Config): Promise<FastifyInstance> {
  const { default: swaggerUi } = await import('@fastify/swagger-ui')
  const ui = Fastify({ logger: false, routerOptions: { ignoreTrailingSlash: true } })
  // @fastify/swagger-ui requires a plugin with this name. The original plugin derives a document
  // from the routes, but this contract is written by hand, so an empty plugin is enough.
  await ui.register(
    plugin(async (ui: FastifyInstance) => void ui.decorate('swagger', () => ({})), { name: '@fastify/swagger' }),
  )
  await ui.register(swaggerUi, {
    routePrefix: documentationPath,
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
    uiHooks: { onRequest: async (_request, reply) => void reply.header('cache-control', 'no-cache') },
  })
  await ui.ready()
  return ui
}
