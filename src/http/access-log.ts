// Writes the access log, one line for each request, and counts requests for the metrics
// (kernel/runtime/metrics.ts). A line has the request id and the ids of the caller, but no text
// from a user.
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
import type { LoggedCaller } from '../contract/call.ts'
import { type OperationFact, operations } from '../contract/operations.gen.ts'
import type { Metrics } from '../kernel/runtime/metrics.ts'
import { errorOf, redactLine } from './log-redaction.ts'
import { textLog } from './text-log.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The ids of the caller. Null until http/pipeline.ts has identified the caller. */
    caller: LoggedCaller | null
    /** The problem code of an error response. Null for any other response. */
    refusal: string | null
    /** The callbacks to run at the end of the request. Null after the end. */
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
          stream: lines ?? standardSink(logFormat),
        },
  logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'request_id' }),
})

/**
 * Returns the log of the standard output: text at a terminal, JSON elsewhere. At a terminal each
 * line is written at once, so that the lines before the addresses of `accord start` stay there.
 */
function standardSink(logFormat: Config['logFormat']): LogSink {
  const isTerminal = process.stdout.isTTY === true
  const isText = logFormat === 'text' || (logFormat === 'auto' && isTerminal)
  return bufferedSink(standardOutput, isText ? textLog(isTerminal) : undefined, isTerminal ? trace : warning)
}

/** Creates a log for a process without a server. */
export const createLog = (config: Config): FastifyBaseLogger => Fastify(logging(config)).log

const flushMs = 10
const trace = 10
const warning = 40
/** The maximum number of bytes that may wait for a slow reader of the log. */
const maxWaiting = 1024 * 1024
const standardOutput = 1

/**
 * The maximum number of bytes that Linux writes to a pipe atomically (PIPE_BUF). Larger writes of
 * several processes could mix their lines.
 */
const maxPieceBytes = 4_096

/**
 * Returns the number of bytes to write next: the whole lines that fit into `maxPieceBytes`, or the
 * first line if it is longer.
 */
export function wholeLines(text: Buffer): number {
  if (text.length <= maxPieceBytes) return text.length
  const last = text.lastIndexOf('\n', maxPieceBytes - 1)
  return last >= 0 ? last + 1 : text.indexOf('\n') + 1 || text.length
}

/**
 * Returns a buffered log destination, because a write for each line would cost as much as a simple
 * request. Lines of at least the level `immediate` are written immediately. When the reader is
 * slow or the disk is full, lines are dropped instead of blocking the server. `format` converts a
 * JSON line to the written text. pino.destination is not used, because its flushSync overtakes a
 * write in progress and blocks the event loop while a pipe is full.
 */
export function bufferedSink(
  output: number = standardOutput,
  format: (line: string) => string = (line) => line,
  immediate: number = warning,
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
      if (level >= immediate) flush()
      else due ??= setTimeout(flush, flushMs).unref()
    },
  }
}

export type TrackRequest = (request: FastifyRequest, reply: FastifyReply) => void

/**
 * Adds a hook that logs and counts every request at its end. Must be called before other hooks are
 * added, so that it also sees requests that they refuse.
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
   * The callbacks that end the open requests of each connection. When a connection closes, Node
   * does not emit `close` for requests that are pipelined behind another request.
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
          // A request injected by a test has no connection, so the content length is logged
          // instead.
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

/** The logged status of a request whose client closed the connection before the response. */
const goneAway = 499

/**
 * Calls `cleanup` at the end of the request, or now if it has ended. Fastify's onResponse hook is
 * not used, because it does not run when the client closes the connection before the response.
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
 * Returns the operationId, or `none` for an unknown route, so that the number of values is limited.
 */
function operationOf({ method, routeOptions }: FastifyRequest): string {
  const asked = method === 'HEAD' ? 'get' : method.toLowerCase()
  return routes.get(`${asked} ${routeOptions.url}`) ?? 'none'
}

const words = new Set(Object.values(operations).flatMap(({ path }) => path.split('/')))

/**
 * Returns the path for the log. Keeps only words of the contract and ids, and replaces every other
 * part by `*`, because it may be a secret or a name. Parts after `external` are the ids of other
 * systems, which may be phone numbers, so none of them is kept.
 */
export function loggedPath(url: string): string {
  const [path = ''] = url.split('?')
  const parts = path.split('/').slice(0, maxParts)
  const own = parts.indexOf('external') + 1 || parts.length
  const isKept = (part: string, at: number): boolean => at < own && (words.has(part) || /^\d{1,10}$/.test(part))
  return parts.map((part, at) => (isKept(part, at) ? part : '*')).join('/')
}

const maxParts = 12

const connectionsOf = ({ server }: FastifyInstance): Promise<number> =>
  new Promise((resolve) => server.getConnections((error, count) => resolve(error ? 0 : count)))

/**
 * Returns the request id that the caller sent if it is safe to log, or else a new id.
 */
export const requestId = (sent: string | string[] | undefined): string =>
  typeof sent === 'string' && /^[A-Za-z0-9._-]{1,128}$/.test(sent) ? sent : randomUUID()
