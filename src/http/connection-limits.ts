// Sets the limits of connections: timeouts, the size of headers and the number of connections.
// Replies to bytes that are not HTTP with a problem document, which Node's own reply is not.
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { FastifyHttpOptions, FastifyInstance, RawServerDefault } from 'fastify'
import type { Config } from '../config/config.ts'
import { routeFactsOf } from '../contract/allowed-methods.ts'
import { Problem, problemDocument } from '../contract/output/problems.ts'
import { onRequestEnd } from './access-log.ts'
import { connectionsWithin, maxDescriptors } from './descriptor-limit.ts'
import { minimalHeaders } from './security-headers.ts'

const usual = {
  headersMs: 10_000,
  requestMs: 15_000,
  /**
   * The time in milliseconds until an idle connection is closed. Proxies usually close after a
   * minute, and the proxy must close first.
   */
  keepAliveMs: 65_000,
  /**
   * The time in milliseconds until a connection without traffic is closed during a response. Event
   * streams send data more often.
   */
  silenceMs: 30_000,
  /** The interval in milliseconds at which Node checks for timeouts. Its default is 30 s. */
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
    // request-guards.ts refuses a request without a Host header, because its reply is a problem
    // document.
    requireHostHeader: false,
  },
  requestTimeout: limits.requestMs,
  keepAliveTimeout: limits.keepAliveMs,
  connectionTimeout: limits.silenceMs,
  // request-guards.ts refuses requests while the server is closing.
  return503OnClosing: false,
  // Clients may send an absolute URL (RFC 9112, 3.2.2). Removes its scheme and host.
  rewriteUrl: ({ url = '/' }) => url.replace(/^https?:\/\/[^/?#]*\/?/i, '/'),
  clientErrorHandler: (error, socket) => {
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && sendsLines.has(socket as Socket)) return
    if (error.code !== 'ECONNRESET') refuse(config, socket as Socket, sentences[error.code] ?? 'It is not valid HTTP.')
  },
})

/**
 * The connections whose request sends lines. Such a request may take any time, because the server
 * reads no faster than it works; a connection without traffic is closed all the same.
 */
const sendsLines = new WeakSet<Socket>()

const sentences: Record<string, string> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'It did not arrive in time.',
  HPE_HEADER_OVERFLOW: 'Its headers are longer than 16 KiB.',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'Its chunks say more than they may.',
}

export function limitConnections(http: FastifyInstance, config: Config): void {
  const { server } = http
  http.addHook('onRequest', (request, _reply, done) => {
    if (routeFactsOf(request).hasLines) {
      const { socket } = request.raw
      sendsLines.add(socket)
      onRequestEnd(request, () => sendsLines.delete(socket))
    }
    done()
  })
  server.maxConnections = connectionsWithin(maxDescriptors())
  closeIdleOnShutdown(http)
  // Refuses CONNECT, and ignores Expect headers other than `100-continue`.
  server.on('connect', (_request, socket: Socket) => refuse(config, socket, 'This server is not a proxy.'))
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/**
 * At shutdown, closes connections that have not sent a request yet. Fastify closes only connections
 * that are idle after a request.
 */
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

/** Sends a 400 response, which does not contain bytes from the client. */
function refuse({ appUrl, host, port }: Config, socket: Socket, why: string): void {
  const { _httpMessage: answer } = socket as Socket & { _httpMessage?: { headersSent: boolean } }
  // After a response has begun on this connection, another response cannot be sent.
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
