// What is logged: one line for each request, with its id and without what people have written.
import { randomUUID } from 'node:crypto'
import { type FastifyInstance, type FastifyServerOptions, LogController } from 'fastify'
import type { Config } from './config.ts'

export const logging = ({ logLevel }: Config): Pick<FastifyServerOptions, 'logger' | 'logController'> => ({
  logger:
    logLevel === 'silent' ? false : { level: logLevel, redact: ['req.headers.authorization', 'req.headers.cookie'] },
  logController: new LogController({ disableRequestLogging: true }),
})

export function logAnswers(http: FastifyInstance): void {
  http.addHook('onResponse', async (request, reply) => {
    request.log.info(
      {
        method: request.method,
        path: request.url.split('?')[0],
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime),
      },
      'answered',
    )
  })
}

/** The caller's own when it may stand in a log, else a new one (DOMAIN 3.1). */
export const requestId = (sent: string | string[] | undefined): string =>
  typeof sent === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : randomUUID()
