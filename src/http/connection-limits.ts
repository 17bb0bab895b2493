// What a connection may do before it is a request: how long headers and bodies may take, how much they may hold, and what those
// are told of whom no request can be made. Node would answer them by itself, in a form of its own.
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { FastifyHttpOptions, FastifyInstance, RawServerDefault } from 'fastify'
import type { Config } from '../config/config.ts'
import { Problem, problemDocument } from '../contract/output/problems.ts'
import { connectionsWithin, maxDescriptors } from './descriptor-limit.ts'
import { minimalHeaders } from './security-headers.ts'

const usual = {
  headersMs: 10_000,
  requestMs: 15_000,
  /** Longer than the minute after which proxies give a connection up. */
  keepAliveMs: 65_000,
  /** Nothing sent and nothing taken while an answer waits; streams send something more often. */
  silenceMs: 30_000,
  /** How often it is looked for who is late; every 30 s unless told. */
  checkMs: 1_000,
}
const maxHeadersBytesLength = 16 * 1024

type Sockets = Pick<
  FastifyHttpOptions<RawServerDefault>,
  | 'http'
  | 'requestTimeout'
  | 'keepAliveTimeout'
  | 'connectionTimeout'
  | 'return503OnClosing'
  | 'rewriteUrl'
  | 'clientErrorHandler'
>

export const sockets = (config: Config, limits: typeof usual = usual): Sockets => ({
  http: {
    maxHeaderSize: maxHeadersBytesLength,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkMs,
    // Refused in request-guards.ts, with a body.
    requireHostHeader: false,
  },
  requestTimeout: limits.requestMs,
  keepAliveTimeout: limits.keepAliveMs,
  connectionTimeout: limits.silenceMs,
  // Refused in request-guards.ts, as everything is.
  return503OnClosing: false,
  // A proxy may send the whole address (RFC 9112, 3.2.2).
  rewriteUrl: ({ url = '/' }) => url.replace(/^https?:\/\/[^/?#]*\/?/i, '/'),
  clientErrorHandler: (error, socket) => {
    if (error.code !== 'ECONNRESET') refuse(config, socket as Socket, sentences[error.code] ?? 'It is no valid HTTP.')
  },
})

const sentences: Record<string, string> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'It did not arrive in time.',
  HPE_HEADER_OVERFLOW: 'Its headers are longer than 16 KiB.',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'Its chunks say more than they may.',
}

export function limitConnections(http: FastifyInstance, config: Config): void {
  const { server } = http
  server.maxConnections = connectionsWithin(maxDescriptors())
  closeIdleOnShutdown(http)
  // No proxy, and nothing to expect but the usual: whatever else is expected is passed over.
  server.on('connect', (_request, socket: Socket) => refuse(config, socket, 'This server is no proxy.'))
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/** Closing ends connections between requests by itself, but would wait for those that have not sent any yet. */
function closeIdleOnShutdown(http: FastifyInstance): void {
  const silent = new Set<Socket>()
  http.server.on('connection', (socket: Socket) => {
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
  })
  http.server.on('request', ({ socket }) => silent.delete(socket))
  http.addHook('preClose', async () => {
    for (const socket of silent) socket.destroy()
  })
}

/** Says nothing of what was sent: it may be anything. */
function refuse({ appUrl, host, port }: Config, socket: Socket, why: string): void {
  const { _httpMessage: answer } = socket as Socket & { _httpMessage?: { headersSent: boolean } }
  // In the midst of an answer nothing else can be said.
  if (!socket.writable || answer?.headersSent) return void socket.destroy()
  const problem = new Problem('malformed_request', `The request could not be read. ${why}`)
  const requestId = randomUUID()
  const body = JSON.stringify(
    problemDocument(problem, { base: appUrl ?? `http://${host}:${port}`, path: '/', requestId }),
  )
  const head = [
    'HTTP/1.1 400 Bad Request',
    'content-type: application/problem+json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    'cache-control: no-store',
    ...Object.entries(minimalHeaders).map(([name, value]) => `${name}: ${value}`),
    `x-request-id: ${requestId}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}
