// Serves the files of Swagger UI with @fastify/swagger-ui, in an inner Fastify server that does not
// listen. The outer server gets each file with `inject`. The package is loaded at the first
// request, so that the start of the server stays fast.
import Fastify, { type FastifyInstance } from 'fastify'
import plugin from 'fastify-plugin'
import { documentationPath } from './page.ts'

export async function swaggerFiles(): Promise<FastifyInstance> {
  const { default: swaggerUi } = await import('@fastify/swagger-ui')
  const ui = Fastify({ logger: false, routerOptions: { ignoreTrailingSlash: true } })
  // @fastify/swagger-ui requires a plugin with this name. The original plugin generates a document
  // from the routes, which is not needed here.
  await ui.register(
    plugin(async (ui: FastifyInstance) => void ui.decorate('swagger', () => ({})), { name: '@fastify/swagger' }),
  )
  await ui.register(swaggerUi, { routePrefix: documentationPath })
  await ui.ready()
  return ui
}
