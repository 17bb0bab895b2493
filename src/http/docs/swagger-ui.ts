// Serves the files of Swagger UI with @fastify/swagger-ui in a separate Fastify server that does
// not listen. It is loaded at the first visit, which keeps the start fast. The outer server gets
// each file by `inject`. Our own page loads these files; it replaces the page of the plugin.
import Fastify, { type FastifyInstance } from 'fastify'
import plugin from 'fastify-plugin'
import { documentationPath } from './page.ts'

export async function swaggerFiles(): Promise<FastifyInstance> {
  const { default: swaggerUi } = await import('@fastify/swagger-ui')
  const ui = Fastify({ logger: false, routerOptions: { ignoreTrailingSlash: true } })
  // @fastify/swagger-ui requires a plugin with this name. The original plugin derives a document
  // from the routes, but this contract is written by hand, so an empty plugin is enough.
  await ui.register(
    plugin(async (ui: FastifyInstance) => void ui.decorate('swagger', () => ({})), { name: '@fastify/swagger' }),
  )
  await ui.register(swaggerUi, { routePrefix: documentationPath })
  await ui.ready()
  return ui
}
