// The only client for HTTP requests to URLs that users choose. It resolves the host name
// once and checks every address. It connects only to a checked address, even if the name resolves
// to another address later.
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
  /** The first `excerptBytes` bytes of the body, as text. */
  excerpt: string
  /** The milliseconds from the call to the end of the body. */
  ms: number
}

export interface Outbound {
  /**
   * Sends a request and returns the response with any status. Does not follow redirects. Throws
   * OutboundError when there is no response.
   */
  request(request: OutboundRequest, signal?: AbortSignal): Promise<OutboundReply>
}

export interface OutboundOptions {
  /** Networks in CIDR notation that calls may reach although they are not public. */
  allowCidrs: readonly string[]
  /** Whether `http:` URLs may be called. */
  allowHttp: boolean
  /** The maximum milliseconds for resolving the name and connecting. */
  connectMs: number
  /** The maximum milliseconds for the whole call, until the end of the body. */
  totalMs: number
  lookup?: Lookup
}

/**
 * The number of bytes of a response body that are stored (`excerptBytes`). After `readBytes` bytes
 * the connection is closed.
 */
const excerptBytes = 1024
const readBytes = 64 * 1024

export function createOutbound(options: OutboundOptions): Outbound {
  const check = addressCheck(options.allowCidrs)
  const lookup = boundedLookup(options.lookup)
  return {
    async request(request, signal) {
      // Loads undici with the first call, so that the server starts fast.
      const { default: undici } = await import('undici')
      const elapsed = stopwatch()
      const url = readUrl(request.url, options.allowHttp)
      const host = url.hostname.replace(/^\[|\]$/g, '')
      const total = limit(options.totalMs, signal)
      let client: Client | undefined
      let isConnected = false
      try {
        const connecting = limit(options.connectMs, total.signal)
        const addresses = await checked(host, lookup, check, connecting.signal).finally(connecting.clear)
        client = new undici.Client(url.origin, {
          // Each connection serves one request, because its address was checked only for this
          // request.
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
    throw new OutboundError(
      'invalid',
      'Addresses without encryption (http) are not called. ACCORD_WEBHOOK_ALLOW_HTTP=on allows them.',
    )
  if (url.username !== '' || url.password !== '')
    throw new OutboundError('invalid', 'The address must not carry a name or password.')
  return url
}

/**
 * Returns the addresses of a host after checking each of them. A host that is an IP address is
 * checked without a lookup.
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
      throw new OutboundError(
        'refused-address',
        `${host} is at ${fault} address. ACCORD_WEBHOOK_ALLOW_CIDRS names networks that may be called.`,
      )
  }
  return addresses
}

/**
 * Returns a lookup function that always returns the checked addresses. A second DNS lookup could
 * return an address that was not checked.
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

/** Returns a signal that aborts after `ms` milliseconds, or when the signal `outer` aborts. */
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

/**
 * Reads a body to its end, or until `readBytes` bytes. Returns the first `excerptBytes` bytes as
 * text.
 */
async function beginning(body: AsyncIterable<Buffer>): Promise<string> {
  const kept: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    if (length < excerptBytes) kept.push(chunk.subarray(0, excerptBytes - length))
    length += chunk.length
    if (length >= readBytes) break
  }
  const text = new TextDecoder().decode(Buffer.concat(kept), { stream: true })
  // biome-ignore lint/suspicious/noControlCharactersInRegex: removes control characters
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '')
}
