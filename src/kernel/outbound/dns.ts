// Resolves host names for outgoing calls with the system's resolver, so the hosts file and search
// domains apply. A lookup cannot be cancelled and occupies one of the four libuv threads, which
// password hashing and files also need. Therefore few lookups run at once, and concurrent calls to
// one host share a lookup.
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
 * Returns a lookup with bounded concurrency. It rejects with OutboundError when the lookup fails or
 * `signal` aborts first.
 */
export function boundedLookup(lookup: Lookup = addressesOf): (host: string, signal: AbortSignal) => Promise<string[]> {
  const limit = pLimit(maxConcurrent)
  const open = new Map<string, SharedLookup>()

  function begin(host: string): SharedLookup {
    const shared: SharedLookup = { answer: Promise.resolve([]), callers: 0 }
    const run = (): Promise<string[]> => {
      if (shared.callers > 0) return lookup(host)
      // All callers have given up while this lookup waited, so it is skipped; the next caller
      // starts another one.
      open.delete(host)
      return Promise.resolve([])
    }
    shared.answer = limit(run).finally(() => {
      if (open.get(host) === shared) open.delete(host)
    })
    // When the lookup fails, all callers may have given up, which would leave the rejection
    // unhandled.
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

/** Rejects as soon as the signal aborts. */
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
