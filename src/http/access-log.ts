// The access log: one line for each request, with its request id and the ids of its caller. A line
// has no text that a user has written. At the end of a request, this file also counts it
// (kernel/runtime/metrics.ts).
import { randomUUID } from 'node:crypto'
import { writeSync } from 'node:fs'
import type { Socket } from 'node:net'
import Fastify, {
  type FastifyBaseLogger,
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
import { textLog } from './text-log.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The ids of the caller; null until http/pipeline.ts has identified the caller. */
    caller: LoggedCaller | null
    /** The problem code of an error response; null for any other response. */
    refusal: string | null
    /** The callbacks that run at the end of the request; null after the end. */
    cleanups: Set<() => void> | null
  }
}

/** The destination of the log lines. The default is the standard output. */
export interface LogSink {
  write(line: string): void
}

type Logging = Pick<FastifyServerOptions, 'logger' | 'logController'>

export const logging = ({ logLevel, logFormat }: Config, lines?: LogSink): Logging => ({
  logger:
    logLevel === 'silent'
      ? false
      : {
          level: logLevel,
          redact: ['req.headers.authorization', 'req.headers.cookie'],
          serializers: { err: errorOf },
          hooks: { streamWrite: redactLine },
          stream: lines ?? bufferedSink(standardOutput, formatOf(logFormat)),
        },
  logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
})

/** Returns the format of the lines on the standard output: text at a terminal, JSON elsewhere. */
function formatOf(logFormat: Config['logFormat']): (line: string) => string {
  const isTerminal = process.stdout.isTTY === true
  return logFormat === 'text' || (logFormat === 'auto' && isTerminal) ? textLog(isTerminal) : (line) => line
}

/** Returns a log for a process without a server. */
export const createLog = (config: Config): FastifyBaseLogger => Fastify(logging(config)).log

const flushMs = 10
const warning = 40
/** The maximum number of bytes that may wait for a slow reader of the log. */
const maxWaiting = 1024 * 1024
const standardOutput = 1

/**
 * A pipe takes at most this many bytes in one piece (PIPE_BUF of Linux). With more, the lines of
 * several processes would mix.
 */
const maxPieceBytes = 4_096

/**
 * Returns how many bytes of the text to write next: the whole lines that fit into `maxPieceBytes`.
 * If the first line is longer, returns the length of that line.
 */
export function wholeLines(text: Buffer): number {
  if (text.length <= maxPieceBytes) return text.length
  const last = text.lastIndexOf('\n', maxPieceBytes - 1)
  return last >= 0 ? last + 1 : text.indexOf('\n') + 1 || text.length
}

/**
 * Returns a buffered log destination, because a write for each line would cost as much as a simple
 * request. A warning or an error is written at once. When the reader is slow or the disk is full,
 * lines are dropped instead of blocking the server. `format` turns a JSON line into the written
 * text. pino.destination does not fit: its flushSync overtakes a write in progress, and blocks the
 * event loop while a pipe is full.
 */
export function bufferedSink(
  output: number = standardOutput,
  format: (line: string) => string = (line) => line,
): LogSink {
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
      while (rest.length > 0) rest = rest.subarray(writeSync(output, rest.subarray(0, wholeLines(rest))))
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
      const text = Buffer.from(format(line))
      if (bytes + text.length > maxWaiting) return
      waiting.push(text)
      bytes += text.length
      const level = Number(/^\{"level":(\d+)/.exec(line)?.[1] ?? warning)
      if (level >= warning) flush()
      else due ??= setTimeout(flush, flushMs).unref()
    },
  }
}

export type TrackRequest = (request: FastifyRequest, reply: FastifyReply) => void

/**
 * Logs and counts every request at its end. Call this function before other hooks are added, so
 * that it also sees the requests that those hooks refuse.
 */
export function trackRequests(http: FastifyInstance, metrics: Metrics): TrackRequest {
  http.decorateRequest('caller', null)
  http.decorateRequest('refusal', null)
  http.decorateRequest('cleanups', null)
  const trackRequest = createTracker(metrics)
  http.addHook('onRequest', (request, reply, done) => {
    trackRequest(request, reply)
    done()
  })
  http.addHook('onListen', async () => metrics.start(() => connectionsOf(http)))
  http.addHook('onClose', async () => metrics.stop())
  return trackRequest
}

function createTracker(metrics: Metrics): TrackRequest {
  /**
   * The ends of the open requests, by connection. When a connection closes, Node emits no event for
   * a request that is pipelined behind another request.
   */
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
    const cleanups = new Set<() => void>()
    request.cleanups = cleanups
    const end = (isAborted: boolean): void => {
      if (!waiting.delete(goesAway)) return
      request.cleanups = null
      for (const each of cleanups) each()
      const status = isAborted && !raw.headersSent ? goneAway : raw.statusCode
      const operation = operationOf(request)
      over({ operation, method: request.method, status, ms: reply.elapsedTime })
      request.log.info(
        {
          operation,
          method: request.method,
          path: loggedPath(request.url),
          status,
          ms: Math.round(reply.elapsedTime),
          // An injected request has no connection, so the announced length is logged.
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

/** The logged status of a request whose caller closed the connection before the response. */
const goneAway = 499

/**
 * Calls `ending` at the end of the request. Fastify's onResponse hook does not fit, because it is
 * not called when the caller closes the connection before the response.
 */
export function onRequestEnd({ cleanups }: FastifyRequest, cleanup: () => void): void {
  if (cleanups) cleanups.add(cleanup)
  else cleanup()
}

const routes = new Map(
  Object.entries(operations as Record<string, OperationFact>).map(([id, fact]) => [
    `${fact.method} ${routeOf(fact)}`,
    id,
  ]),
)

/**
 * Returns the operationId, or `none` for an unknown route. This keeps the number of different
 * values limited.
 */
function operationOf({ method, routeOptions }: FastifyRequest): string {
  const asked = method === 'HEAD' ? 'get' : method.toLowerCase()
  return routes.get(`${asked} ${routeOptions.url}`) ?? 'none'
}

const words = new Set(Object.values(operations).flatMap(({ path }) => path.split('/')))

/**
 * Returns the path for the log. Only words of the contract and ids are kept, because any other part
 * may be a secret or a name.
 */
export function loggedPath(url: string): string {
  const [path = ''] = url.split('?')
  const parts = path.split('/').slice(0, maxParts)
  return parts.map((part) => (words.has(part) || /^\d{1,10}$/.test(part) ? part : '*')).join('/')
}

const maxParts = 12

const connectionsOf = ({ server }: FastifyInstance): Promise<number> =>
  new Promise((resolve) => server.getConnections((error, count) => resolve(error ? 0 : count)))

/**
 * Returns the request id that the caller sent when it is safe in a log, else a new id (DOMAIN 3.1).
 */
export const requestId = (sent: string | string[] | undefined): string =>
  typeof sent === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : randomUUID()
