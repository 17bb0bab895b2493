// What is logged: one line for each request, with its id and the ids of who asked, and without what people have written. The same
// look at the end of each request counts it (kernel/runtime/metrics.ts).
import { randomUUID } from 'node:crypto'
import { writeSync } from 'node:fs'
import type { Socket } from 'node:net'
import {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify'
import type { Config } from '../config/config.ts'
import { routeOf } from '../contract/allowed-methods.ts'
import type { LoggedCaller } from '../contract/backend.ts'
import { type OperationFact, operations } from '../contract/operations.gen.ts'
import type { Metrics } from '../kernel/runtime/metrics.ts'
import { errorOf, redactLine } from './log-redaction.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who asks, once that is known (pipeline.ts). */
    caller: LoggedCaller | null
    /** The code of the problem it was answered with (error-handler.ts). */
    refusal: string | null
    /** What is given back when it is over, however that comes about; null when it is over already. */
    endings: Set<() => void> | null
  }
}

/** Where the lines go when not to the standard output. */
export interface LogSink {
  write(line: string): void
}

type Logging = Pick<FastifyServerOptions, 'logger' | 'logController'>

export const logging = ({ logLevel }: Config, lines?: LogSink): Logging => ({
  logger:
    logLevel === 'silent'
      ? false
      : {
          level: logLevel,
          redact: ['req.headers.authorization', 'req.headers.cookie'],
          serializers: { err: errorOf },
          hooks: { streamWrite: redactLine },
          stream: lines ?? bufferedSink(),
        },
  logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
})

const flushMs = 10
const warning = 40
/** What waits at most for a reader that is slow. */
const maxWaiting = 1024 * 1024
const standardOutput = 1

/**
 * Several lines at a time: a call of the system for each would cost as much as a simple request. What warns is written at once. A log
 * that nobody takes, or that has no room, stops no server: what cannot be written is lost.
 */
export function bufferedSink(output: number = standardOutput): LogSink {
  let waiting: Buffer[] = []
  let bytes = 0
  let due: NodeJS.Timeout | undefined
  const flush = (): void => {
    clearTimeout(due)
    due = undefined
    let rest = Buffer.concat(waiting)
    waiting = []
    bytes = 0
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(output, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
      waiting = [rest]
      bytes = rest.length
      due = setTimeout(flush, flushMs).unref()
    }
  }
  process.once('exit', flush)
  return {
    write(line) {
      const text = Buffer.from(line)
      if (bytes + text.length > maxWaiting) return
      waiting.push(text)
      bytes += text.length
      const level = Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? warning)
      if (level >= warning) flush()
      else due ??= setTimeout(flush, flushMs).unref()
    },
  }
}

export type Watch = (request: FastifyRequest, reply: FastifyReply) => void

/** Tells of every request when it is over, however that came about. Comes before all that may turn a request away. */
export function trackRequests(http: FastifyInstance, metrics: Metrics): Watch {
  http.decorateRequest('caller', null)
  http.decorateRequest('refusal', null)
  http.decorateRequest('endings', null)
  const watch = watcher(metrics)
  http.addHook('onRequest', (request, reply, done) => {
    watch(request, reply)
    done()
  })
  http.addHook('onListen', async () => metrics.start(() => connectionsOf(http)))
  http.addHook('onClose', async () => metrics.stop())
  return watch
}

function watcher(metrics: Metrics): Watch {
  /** A request that waits behind another one on its connection is not told that the connection has closed. */
  const open = new WeakMap<Socket, Set<() => void>>()
  const waitingOn = (socket: Socket): Set<() => void> => {
    const known = open.get(socket)
    if (known) return known
    const waiting = new Set<() => void>()
    open.set(socket, waiting)
    socket.once('close', () => {
      for (const end of [...waiting]) end()
    })
    return waiting
  }
  return (request, reply) => {
    const { socket } = request.raw
    const before = socket.bytesWritten
    const over = metrics.begun()
    const waiting = waitingOn(socket)
    const { raw } = reply
    const endings = new Set<() => void>()
    request.endings = endings
    const end = (isAborted: boolean): void => {
      if (!waiting.delete(goesAway)) return
      request.endings = null
      for (const each of endings) each()
      const status = isAborted && !raw.headersSent ? goneAway : raw.statusCode
      const operation = operationOf(request)
      over({ operation, method: request.method, status, ms: reply.elapsedTime })
      request.log.info(
        {
          operation,
          method: request.method,
          path: pathOf(request.url),
          status,
          ms: Math.round(reply.elapsedTime),
          // Without a real connection there is only what was announced.
          bytes: Number.isInteger(before)
            ? socket.bytesWritten - before
            : Number(reply.getHeader('content-length') ?? 0),
          ...request.caller,
          ...(typeof request.refusal === 'string' && { code: request.refusal }),
          ...(isAborted && { aborted: true }),
        },
        'answered',
      )
    }
    const goesAway = (): void => end(true)
    waiting.add(goesAway)
    raw.once('finish', () => end(false)).once('close', goesAway)
  }
}

/** Nobody is there any more to be told of it. */
const goneAway = 499

/** Does it when the request is over, which fastify's own hook does not say of a caller who goes away before the answer. */
export function onRequestEnd({ endings }: FastifyRequest, ending: () => void): void {
  if (endings) endings.add(ending)
  else ending()
}

const routes = new Map(
  Object.entries(operations as Record<string, OperationFact>).map(([id, fact]) => [
    `${fact.method} ${routeOf(fact)}`,
    id,
  ]),
)

/** One of those of the contract, or `none`: whatever is asked for, there are only so many. */
function operationOf({ method, routeOptions }: FastifyRequest): string {
  const asked = method === 'HEAD' ? 'get' : method.toLowerCase()
  return routes.get(`${asked} ${routeOptions.url}`) ?? 'none'
}

const words = new Set(Object.values(operations).flatMap(({ path }) => path.split('/')))

/** The path with words of the contract and ids; anything else in it may be a secret, or somebody's name. */
export function pathOf(url: string): string {
  const [path = ''] = url.split('?')
  const parts = path.split('/').slice(0, maxParts)
  return parts.map((part) => (words.has(part) || /^\d{1,10}$/.test(part) ? part : '*')).join('/')
}

const maxParts = 12

const connectionsOf = ({ server }: FastifyInstance): Promise<number> =>
  new Promise((resolve) => server.getConnections((error, count) => resolve(error ? 0 : count)))

/** The caller's own when it may stand in a log, else a new one (DOMAIN 3.1). */
export const requestId = (sent: string | string[] | undefined): string =>
  typeof sent === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : randomUUID()
