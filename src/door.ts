// What every request passes before its operation is known and what every answer carries: headers that protect whoever reads it.
import type { FastifyInstance } from 'fastify'
import type { Config } from './config.ts'

export async function registerDoor(http: FastifyInstance, _config: Config): Promise<void> {
  http.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'x-request-id': request.id, 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
  })
}
