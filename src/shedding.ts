// Who is turned away because there is too much to do (DOMAIN 25.2): by how many wait already, and when the event loop is late. Under a
// flood most of what comes is a refusal, so it passes nothing but this: no headers are set one by one, no hook and no error handler
// runs. Its answer and its line in the log are those of any other 503. Here it is decided as well when a request is looked at, while
// connections come, and when it is answered.
import underPressure from '@fastify/under-pressure'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { problemText, problemType } from './answers.ts'
import { factsOf } from './contract/methods.ts'
import { Problem } from './contract/problems.ts'
import { isForm } from './contract/routes.ts'
import { createArrivals } from './kernel/arrivals.ts'
import type { Services } from './kernel/context.ts'
import { together } from './kernel/together.ts'
import { createTurns } from './kernel/turns.ts'
import { whenOver } from './logs.ts'
import { headersFor, originHeadersFor } from './protection.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Makes room for the next one. */
    leave: (() => void) | null
  }
}

export const comeAgain = { headers: { 'retry-after': '1' } }

/** Of what everybody must always be able to ask. */
const watching: ReadonlySet<string | undefined> = new Set(['getHealth', 'getReadiness', 'getMetrics'])
const isWatching = (request: FastifyRequest): boolean => watching.has(factsOf(request).operation)

/** What starting costs is no load. */
const settlesMs = 5_000

/** Comes before all hooks but the one that counts and logs. */
export async function shed(http: FastifyInstance, { config, metrics, store }: Services): Promise<void> {
  const send = together()
  const arrivals = createArrivals()
  http.server.on('connection', () => arrivals.connection())
  const turns = createTurns({ areComing: arrivals.areComing })
  store.expect(() => turns.hasWrites())
  // One for all of them: the stack of a new one costs as much as the rest of a refusal.
  const problem = new Problem('unavailable', 'The server has too much to do.', comeAgain)
  let isClosing = false
  http.addHook('preClose', async () => {
    isClosing = true
  })
  const refuse = (request: FastifyRequest, reply: FastifyReply): void => {
    metrics.shed()
    request.refusal = problem.code
    const body = problemText(config, problem, request)
    reply.hijack()
    send(() =>
      reply.raw
        .writeHead(problem.status, {
          ...headersFor(request, config),
          ...originHeadersFor(request, config),
          ...comeAgain.headers,
          // It may have been counted before it came here, or find the server closing.
          ...request.passage?.headers(),
          ...(isClosing && { connection: 'close' }),
          'cache-control': 'no-store',
          'content-type': problemType,
          'content-length': Buffer.byteLength(body),
        })
        .end(body),
    )
  }
  const isLate = await watchLoop(http, config.env)
  http.decorateRequest('leave', null)
  http.addHook('onRequest', (request, reply, done) => {
    if (isWatching(request)) return done()
    arrivals.request(() => {
      // Who has gone needs no answer.
      if (request.raw.socket.destroyed) return
      // Of a server that closes, door.ts has something else to say.
      if ((turns.isFull() || isLate()) && !isClosing) refuse(request, reply)
      else done()
    })
  })
  http.addHook('preHandler', (request, reply, done) => {
    // A form is still arriving.
    if (isWatching(request) || isForm(request)) return done()
    const begin = (): void => {
      if (request.raw.socket.destroyed) request.leave?.()
      else done()
    }
    const leave = turns.enter(begin, request.method !== 'GET' && request.method !== 'HEAD')
    if (leave === false) return refuse(request, reply)
    request.leave = leave
    whenOver(request, leave)
  })
  // Other hooks say what they have to say when it is sent. A stream sends its head by itself, and must be listened to at once.
  http.addHook('onSend', (request, _reply, payload, done) => {
    if (isStream(payload)) done()
    else send(done)
    // What is left is a matter of how fast the caller reads.
    request.leave?.()
  })
}

const isStream = (payload: unknown): boolean => typeof payload === 'object' && payload !== null && 'pipe' in payload

/** Answers whether the event loop is late. In tests it is that of the tests as well. */
async function watchLoop(http: FastifyInstance, env: string): Promise<() => boolean> {
  if (env === 'test') return () => false
  let isSettled = false
  http.addHook('onListen', async () => {
    setTimeout(() => {
      isSettled = true
    }, settlesMs).unref()
  })
  await http.register(underPressure, {
    maxEventLoopDelay: 500,
    sampleInterval: 1_000,
    // It is asked, and says nothing by itself.
    pressureHandler: () => undefined,
  })
  return () => isSettled && http.isUnderPressure()
}
