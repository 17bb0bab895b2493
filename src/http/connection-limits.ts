// Limits for connections: the time and size of headers and bodies. Also sends a problem document
// for bytes that are not an HTTP request, because Node's own reply would have another form.
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
  /**
   * The time in milliseconds until an idle connection is closed. Longer than the minute after which
   * proxies close such a connection, so that the proxy closes first.
   */
  keepAliveMs: 65_000,
  /**
   * The time in milliseconds until a connection without traffic is closed during a response. An
   * event stream sends data more often.
   */
  silenceMs: 30_000,
  /**
   * The interval in milliseconds at which Node checks for late requests. Node's default is 30 s.
   */
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
    // request-guards.ts refuses a request without a Host header, with a problem document.
    requireHostHeader: false,
  },
  requestTimeout: limits.requestMs,
  keepAliveTimeout: limits.keepAliveMs,
  connectionTimeout: limits.silenceMs,
  // request-guards.ts refuses requests while the server is closing.
  return503OnClosing: false,
  // A proxy may send an absolute URL (RFC 9112, 3.2.2). Only its path and query are kept.
  rewriteUrl: ({ url = '/' }) => url.replace(/^https?:\/\/[^/?#]*\/?/i, '/'),
  clientErrorHandler: (error, socket) => {
    if (error.code !== 'ECONNRESET') refuse(config, socket as Socket, sentences[error.code] ?? 'It is not valid HTTP.')
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
  // CONNECT is refused. An Expect header other than `100-continue` is ignored.
  server.on('connect', (_request, socket: Socket) => refuse(config, socket, 'This server is not a proxy.'))
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/**
 * Ends the connections that have not sent a request yet. Fastify's close ends only the connections
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

/** Sends a 400 response. The response does not quote the bytes that the client sent. */
function refuse({ appUrl, host, port }: Config, socket: Socket, why: string): void {
  const { _httpMessage: answer } = socket as Socket & { _httpMessage?: { headersSent: boolean } }
  // When another response has started on this connection, no second response can be sent.
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
