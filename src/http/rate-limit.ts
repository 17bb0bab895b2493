// Rate limits: a token bucket for each API token, session and network address. Each
// process has its own buckets. attempts.ts has the limits that all processes share.
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { RateCounter } from '../contract/call.ts'
import { clientNetwork } from '../kernel/auth/ip-ranges.ts'
import { Problem } from '../kernel/errors.ts'

interface Rate {
  name: string
  perSecond: number
  burst: number
}

/** The state of a bucket, for the `RateLimit` header (draft-ietf-httpapi-ratelimit-headers-10). */
interface BucketState {
  rate: Rate
  left: number
  /**
   * `waitSeconds` is the time until the next request is allowed, and `fullSeconds` the time until
   * the bucket is full.
   */
  waitSeconds: number
  fullSeconds: number
}

/**
 * The maximum number of buckets of each kind. Beyond it, the least recently used bucket is evicted,
 * and its caller starts with a full bucket again.
 */
const maxKnown = 20_000

const usual = {
  token: { name: 'token', perSecond: 100, burst: 1000 },
  write: { name: 'write', perSecond: 50, burst: 500 },
  address: { name: 'address', perSecond: 20, burst: 100 },
} satisfies Record<string, Rate>

/** So many bytes of a body from an unknown caller count as one more request of the address. */
const bytesPerRequest = 16 * 1024

export interface RatedCall {
  ip: string
  /**
   * The value of Authorization or Cookie. Undefined for public operations and without credentials.
   */
  credential: string | undefined
  /** The time of the request. */
  at: Date
}

export interface RateAccount extends RateCounter {
  /** Returns `RateLimit` and `RateLimit-Policy` for the response. */
  headers(): Record<string, string>
}

export interface Rates {
  /**
   * Counts a request, and throws 429 with Retry-After above a limit. A request without a credential
   * counts for its address. A request with a credential counts for its caller after authentication,
   * and for its address if authentication fails. When an address has no requests left, only
   * credentials that were accepted before are allowed, so that it cannot guess credentials.
   */
  check(call: RatedCall): RateAccount
}

export function createRates(factor: number, accepted: AcceptedCredentials): Rates {
  const of = (rate: Rate): Rate => ({
    ...rate,
    perSecond: rate.perSecond * factor,
    burst: Math.max(1, Math.round(rate.burst * factor)),
  })
  const tokens = createBuckets(of(usual.token))
  const writes = createBuckets(of(usual.write))
  const addresses = createBuckets(of(usual.address))

  return {
    check({ ip, credential, at }) {
      const address = clientNetwork(ip)
      let standings: BucketState[] = []
      let received = 0
      const take = (buckets: Buckets, key: string): void => {
        const { isOver, ...standing } = buckets.take(key, at)
        standings = [...standings.filter(({ rate }) => rate !== standing.rate), standing]
        if (isOver) throw refusal(standing, standings)
      }
      if (credential === undefined) take(addresses, address)
      else {
        const standing = addresses.peek(address, at)
        standings = [standing]
        if (standing.left < 1 && !accepted.has(credential)) throw refusal(standing, standings)
      }
      return {
        authenticated(caller, isWrite) {
          if (credential !== undefined) accepted.add(credential)
          standings = []
          take(tokens, caller)
          if (isWrite) take(writes, caller)
        },
        authenticationFailed() {
          if (credential === undefined) return
          accepted.drop(credential)
          const { isOver, ...standing } = addresses.take(address, at)
          standings = [standing]
        },
        received(bytes) {
          if (credential !== undefined && accepted.has(credential)) return
          received += bytes
          for (; received > bytesPerRequest; received -= bytesPerRequest) take(addresses, address)
        },
        headers: () => headersOf(standings),
      }
    },
  }
}

const refusal = (over: BucketState, all: readonly BucketState[]): Problem =>
  new Problem('rate_limited', undefined, {
    headers: { ...headersOf(all), 'retry-after': String(Math.max(1, over.waitSeconds)) },
  })

function headersOf(standings: readonly BucketState[]): Record<string, string> {
  const listed = (item: (standing: BucketState) => string): string =>
    standings.map((each) => `"${each.rate.name}";${item(each)}`).join(', ')
  return {
    'ratelimit-policy': listed(
      ({ rate }) => `q=${rate.burst};w=${Math.max(1, Math.ceil(rate.burst / rate.perSecond))}`,
    ),
    ratelimit: listed(({ left, fullSeconds }) => `r=${Math.floor(left)};t=${fullSeconds}`),
  }
}

interface Buckets {
  peek(key: string, at: Date): BucketState
  take(key: string, at: Date): BucketState & { isOver: boolean }
}

function createBuckets(rate: Rate): Buckets {
  const known = new LRUCache<string, { left: number; atMs: number }>({ max: maxKnown })
  const standing = (left: number): BucketState => ({
    rate,
    left,
    waitSeconds: Math.ceil(Math.max(0, 1 - left) / rate.perSecond),
    fullSeconds: Math.ceil((rate.burst - left) / rate.perSecond),
  })
  const leftOf = (key: string, atMs: number): number => {
    const bucket = known.get(key)
    // After the clock was set back, the bucket keeps its content and refills from the new time.
    if (bucket && atMs < bucket.atMs) bucket.atMs = atMs
    return bucket
      ? Math.min(rate.burst, bucket.left + (Math.max(0, atMs - bucket.atMs) / 1000) * rate.perSecond)
      : rate.burst
  }
  return {
    peek: (key, at) => standing(leftOf(key, at.getTime())),
    take(key, at) {
      const before = leftOf(key, at.getTime())
      const isOver = before < 1
      const left = isOver ? before : before - 1
      known.set(key, { left, atMs: at.getTime() })
      return { ...standing(left), isOver }
    },
  }
}

/** The credentials that were accepted before. */
export interface AcceptedCredentials {
  has(credential: string): boolean
  add(credential: string): void
  drop(credential: string): void
}

/**
 * Returns a set of digests of accepted credentials. It only decides whether a credential is checked
 * at all. It does not authenticate the caller.
 */
export function createAccepted(): AcceptedCredentials {
  const known = new LRUCache<string, true>({ max: maxKnown })
  const digest = (credential: string): string => createHash('sha256').update(credential).digest('base64')
  return {
    has: (credential) => known.has(digest(credential)),
    add: (credential) => void known.set(digest(credential), true),
    drop: (credential) => void known.delete(digest(credential)),
  }
}
