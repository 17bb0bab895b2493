// Resolves host names of outgoing calls with the system's resolver, so that the hosts file and
// search domains apply. A lookup cannot be canceled and occupies one of the few libuv threads,
// which password hashing and files also need. Therefore few lookups run at once, and concurrent
// calls to one host share a lookup.
import { lookup as resolve } from 'node:dns/promises'
import pLimit from 'p-limit'
import { OutboundError } from './errors.ts'

/** Returns all addresses of a host name. */
export type Lookup = (hostname: string) => Promise<string[]>

interface SharedLookup {
  answer: Promise<string[]>
  callers: number
}

const maxConcurrent = 2

const addressesOf: Lookup = async (hostname) => (await resolve(hostname, { all: true })).map(({ address }) => address)

/**
 * Returns a lookup function that limits the number of concurrent lookups. The function rejects with
 * OutboundError when the lookup fails or `signal` aborts first.
 */
export function boundedLookup(lookup: Lookup = addressesOf): (host: string, signal: AbortSignal) => Promise<string[]> {
  const limit = pLimit(maxConcurrent)
  const open = new Map<string, SharedLookup>()

  function begin(host: string): SharedLookup {
    const shared: SharedLookup = { answer: Promise.resolve([]), callers: 0 }
    const run = (): Promise<string[]> => {
      if (shared.callers > 0) return lookup(host)
      // All callers gave up while this lookup was waiting, so the lookup is skipped. The next
      // caller starts a new lookup.
      open.delete(host)
      return Promise.resolve([])
    }
    shared.answer = limit(run).finally(() => {
      if (open.get(host) === shared) open.delete(host)
    })
    // Prevents an unhandled rejection: when the lookup fails, all callers may already have given
    // up.
    shared.answer.catch(() => undefined)
    open.set(host, shared)
    return shared
  }

  return async (host, signal) => {
    const shared = open.get(host) ?? begin(host)
    shared.callers++
    try {
      return await orTimeout(signal, shared.answer, host)
    } finally {
      shared.callers--
    }
  }
}

/** Waits for a lookup, but rejects as soon as the signal aborts. */
async function orTimeout(signal: AbortSignal, answer: Promise<string[]>, host: string): Promise<string[]> {
  let stop = (): void => undefined
  const over = new Promise<never>((_, reject) => {
    stop = () => reject(new OutboundError('timeout', `${host} was not resolved in time.`))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([answer, over])
  } catch (cause) {
    if (cause instanceof OutboundError) throw cause
    throw new OutboundError('dns', `${host} was not found.`, { cause })
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
