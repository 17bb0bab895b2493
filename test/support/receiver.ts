// An HTTP server on loopback that receives webhooks and misbehaves on demand.
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'

export type Behavior =
  | { mode: 'ok' | 'hang' | 'drop' | 'half' | 'gone' | 'slowBody' | 'huge' }
  | { mode: 'late'; ms: number }
  | { mode: 'say'; text: string }
  | { mode: 'status'; status: number }
  | { mode: 'redirect'; to: string }

export interface Received {
  method: string
  path: string
  query: Record<string, string>
  headers: IncomingHttpHeaders
  body: string
  /** The time of the receiver's clock. */
  at: number
}

export interface Receiver {
  /** The base URL without a trailing slash. */
  url: string
  port: number
  /** All completely received requests, in order. */
  received: Received[]
  behave(behavior: Behavior | Behavior['mode'], for_?: (request: Received) => boolean): void
  /** Stops listening, so that connections are refused. */
  stop(): Promise<void>
  /** Listens again at the same address. */
  start(): Promise<void>
  close(): Promise<void>
}

/** Starts a receiver that returns success until `behave` is called. The test must close it. */
export async function startReceiver(host = '127.0.0.1'): Promise<Receiver> {
  const received: Received[] = []
  let behavior: Behavior = { mode: 'ok' }
  let only: (request: Received) => boolean = () => true
  let server: Server | undefined
  let port = 0

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const url = new URL(request.url ?? '/', 'http://receiver')
    const taken: Received = {
      method: request.method ?? '',
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
      at: Date.now(),
    }
    received.push(taken)
    answer(only(taken) ? behavior : { mode: 'ok' }, request, response)
  }

  async function listen(): Promise<void> {
    const next = createServer((request, response) => void take(request, response).catch(() => request.destroy()))
    await new Promise<void>((done, failed) => next.once('error', failed).listen(port, host, done))
    port = (next.address() as AddressInfo).port
    server = next
  }

  async function stop(): Promise<void> {
    const was = server
    server = undefined
    was?.closeAllConnections()
    await new Promise<void>((done) => (was ? was.close(() => done()) : done()))
  }

  await listen()
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    received,
    behave(next, for_ = () => true) {
      behavior = typeof next === 'string' ? ({ mode: next } as Behavior) : next
      only = for_
    },
    stop,
    start: listen,
    close: stop,
  }
}

function answer(behavior: Behavior, { socket }: IncomingMessage, response: ServerResponse): void {
  switch (behavior.mode) {
    case 'hang':
      return
    case 'drop':
      socket.destroy()
      return
    case 'half':
      response.writeHead(200, { 'content-length': '1000' })
      response.write('half of the promised length', () => socket.destroy())
      return
    case 'slowBody':
      response.writeHead(200, { 'content-length': '1000' })
      response.write('more is to come')
      return
    case 'huge':
      // The body does not end while the client reads.
      response.writeHead(200, { 'content-type': 'text/plain' })
      pour(response)
      return
    case 'redirect':
      response.writeHead(302, { location: behavior.to }).end('elsewhere')
      return
    case 'gone':
      response.writeHead(410).end('gone')
      return
    case 'late':
      setTimeout(() => response.writeHead(200).end('sorry for the delay'), behavior.ms)
      return
    case 'say':
      response.writeHead(200).end(behavior.text)
      return
    case 'status':
      response.writeHead(behavior.status).end(`status ${behavior.status}`)
      return
    default:
      response.writeHead(200, { 'content-type': 'text/plain' }).end('thank you')
  }
}

function pour(response: ServerResponse): void {
  const chunk = 'x'.repeat(16 * 1024)
  while (!response.destroyed && response.write(chunk));
  if (!response.destroyed) response.once('drain', () => pour(response))
}

/** Returns the first received request. Throws when there is none. */
export function firstReceived({ received: [first] }: Pick<Receiver, 'received'>): Received {
  if (first === undefined) throw new Error('Nothing was received.')
  return first
}
