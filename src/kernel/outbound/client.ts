// The only client for outgoing HTTP (DESIGN 9). Users choose the URL, so the client resolves the
// name once, checks every address, and connects to a checked address only, whatever the name
// resolves to later.
import { isIP, type LookupFunction } from 'node:net'
import type { Client, Dispatcher } from 'undici'
import { version } from '../../installation/package-info.ts'
import { stopwatch } from '../runtime/clock.ts'
import { type AddressCheck, addressCheck } from './address-guard.ts'
import { boundedLookup, type Lookup } from './dns.ts'
import { OutboundError, toOutboundError } from './errors.ts'

export { OutboundError, type OutboundErrorKind } from './errors.ts'

export interface OutboundRequest {
  method: string
  url: string
  headers?: Readonly<Record<string, string | string[]>>
  body?: string | Uint8Array | null
}

export interface OutboundReply {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** The beginning of the body as text. */
  excerpt: string
  /** Milliseconds from the call to the end of the body. */
  ms: number
}

export interface Outbound {
  /** Returns any response; redirects are not followed. Throws OutboundError when there is none. */
  request(request: OutboundRequest, signal?: AbortSignal): Promise<OutboundReply>
}

export interface OutboundOptions {
  /** Private networks that may be reached. */
  allowCidrs: readonly string[]
  /** Whether URLs without encryption may be called. */
  allowHttp: boolean
  /** For resolving the name and connecting. */
  connectMs: number
  /** For the whole call, to the end of the body. */
  totalMs: number
  lookup?: Lookup
}

/** The bytes of a body that are stored, and those that are read before the connection is cut. */
const excerptBytes = 1024
const readBytes = 64 * 1024

export function createOutbound(options: OutboundOptions): Outbound {
  const check = addressCheck(options.allowCidrs)
  const lookup = boundedLookup(options.lookup)
  return {
    async request(request, signal) {
      // Loaded by the first call, to keep the start fast.
      const { Client } = await import('undici')
      const elapsed = stopwatch()
      const url = readUrl(request.url, options.allowHttp)
      const host = url.hostname.replace(/^\[|\]$/g, '')
      const total = limit(options.totalMs, signal)
      let client: Client | undefined
      let isConnected = false
      try {
        const connecting = limit(options.connectMs, total.signal)
        const addresses = await checked(host, lookup, check, connecting.signal).finally(connecting.clear)
        client = new Client(url.origin, {
          // One request per connection, because the address is checked for this request.
          pipelining: 0,
          connect: {
            timeout: Math.max(1, options.connectMs - elapsed()),
            rejectUnauthorized: true,
            lookup: pinned(host, addresses),
            autoSelectFamily: true,
            autoSelectFamilyAttemptTimeout: Math.max(250, Math.floor(options.connectMs / (addresses.length + 1))),
          },
        })
        client.on('connect', () => {
          isConnected = true
        })
        const reply = await client.request({
          method: request.method.toUpperCase() as Dispatcher.HttpMethod,
          path: `${url.pathname}${url.search}`,
          headers: withAgent(request.headers ?? {}),
          body: request.body ?? null,
          signal: total.signal,
        })
        const excerpt = await beginning(reply.body)
        return { status: reply.statusCode, headers: reply.headers, excerpt, ms: elapsed() }
      } catch (cause) {
        if (signal?.aborted) throw cause
        throw toOutboundError(cause, { host, isConnected, isOver: total.signal.aborted, ms: elapsed() })
      } finally {
        total.clear()
        await client?.destroy()
      }
    },
  }
}

function readUrl(text: string, allowHttp: boolean): URL {
  if (!URL.canParse(text)) throw new OutboundError('invalid', 'The address is not an absolute URL.')
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new OutboundError('invalid', 'Only https addresses are called.')
  if (url.protocol === 'http:' && !allowHttp)
    throw new OutboundError('invalid', 'Addresses without encryption (http) are not called.')
  if (url.username !== '' || url.password !== '')
    throw new OutboundError('invalid', 'The address must not carry a name or password.')
  return url
}

/**
 * The addresses of a host, all of them checked. A literal address, in any notation, is its own
 * result.
 */
async function checked(
  host: string,
  lookup: ReturnType<typeof boundedLookup>,
  check: AddressCheck,
  signal: AbortSignal,
): Promise<string[]> {
  const addresses = isIP(host) > 0 ? [host] : await lookup(host, signal)
  if (addresses.length === 0) throw new OutboundError('dns', `${host} has no address.`)
  for (const address of addresses) {
    const fault = check(address)
    if (fault !== null)
      throw new OutboundError('refused-address', `${host} is at ${fault} address, which is not called.`)
  }
  return addresses
}

/**
 * A lookup that returns the checked addresses for one name, so that a second lookup cannot lead
 * elsewhere.
 */
function pinned(host: string, addresses: readonly string[]): LookupFunction {
  const entries = addresses.map((address) => ({ address, family: isIP(address) }))
  return (hostname, { all }, done) => {
    const [first] = entries
    if (hostname !== host || !first) done(new OutboundError('refused-address', 'This host was not checked.'), '')
    else if (all) done(null, entries)
    else done(null, first.address, first.family)
  }
}

/** A signal that fires after a time, or with another one. */
function limit(ms: number, outer: AbortSignal | undefined): { signal: AbortSignal; clear: () => void } {
  const controller = new AbortController()
  const stop = (): void => controller.abort()
  const timer = setTimeout(stop, ms)
  if (outer?.aborted) stop()
  outer?.addEventListener('abort', stop)
  return {
    signal: controller.signal,
    clear: () => {
      clearTimeout(timer)
      outer?.removeEventListener('abort', stop)
    },
  }
}

function withAgent(headers: Readonly<Record<string, string | string[]>>): Record<string, string | string[]> {
  const hasAgent = Object.keys(headers).some((name) => name.toLowerCase() === 'user-agent')
  return { ...(!hasAgent && { 'user-agent': `Accord-CRM/${version}` }), ...headers }
}

/** Reads a body to its end or to its limit, and returns its beginning. */
async function beginning(body: AsyncIterable<Buffer>): Promise<string> {
  const kept: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    if (length < excerptBytes) kept.push(chunk.subarray(0, excerptBytes - length))
    length += chunk.length
    if (length >= readBytes) break
  }
  const text = new TextDecoder().decode(Buffer.concat(kept), { stream: true })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '')
}
