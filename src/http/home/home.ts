// Serves `/`: an HTML page for people, and the same links as JSON for programs. `/api` and
// `/api/admin` redirect to it.
import type { FastifyInstance } from 'fastify'
import type { Config } from '../../config/config.ts'
import { preferred } from '../../kernel/files/content-negotiation.ts'
import { baseUrlOf } from '../error-handler.ts'
import { homePage } from './home-page.ts'
import { links } from './links.ts'

export function registerHome(http: FastifyInstance, config: Config): void {
  http.get('/', async (request, reply) => {
    reply.header('cache-control', 'no-cache').header('vary', 'Accept')
    const base = baseUrlOf(config, request)
    if (preferred(request, ['application/json', 'text/html']) === 'application/json') {
      const urls = Object.entries(links).map(([key, path]) => [key, `${base}${path}`])
      return reply.type('application/json; charset=utf-8').send({ name: config.appName, ...Object.fromEntries(urls) })
    }
    const { html, headers } = homePage(config, base)
    return reply.headers(headers).type('text/html; charset=utf-8').send(html)
  })
  for (const path of ['/api', '/api/admin'])
    http.get(path, async (request, reply) =>
      reply.header('cache-control', 'no-cache').redirect(`${baseUrlOf(config, request)}/`),
    )
}
