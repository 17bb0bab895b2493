// Limits the long calls, such as event streams and bulk writes, that a caller has open at once in
// this process.
import type { Context } from '../context.ts'
import { Problem } from '../errors.ts'

/** The number of open calls of each token or session, and of each user. */
export type OpenCalls = Map<string, number>

interface OpenLimits {
  perToken: number
  perUser: number
  /** The verb and the plural noun of the error sentence, such as `follow` and `streams`. */
  verb: string
  nouns: string
}

export type Opener = Pick<Context, 'token' | 'session' | 'user'>

/** Returns the token or session of a caller, for example `token 7`. */
export const credentialIdOf = ({ token, session }: Opener): string =>
  token ? `token ${token.id}` : `session ${session?.id}`

export const retryLater = { 'retry-after': '15' }

/**
 * Counts a call of a token or session and of its user. Returns a function that ends the call.
 * Throws 429 when the token or session, or the user, has the maximum number open already.
 */
export function countOpenCall(
  open: OpenCalls,
  opener: Opener,
  { perToken, perUser, verb, nouns }: OpenLimits,
): () => void {
  const keys = [credentialIdOf(opener), `user ${opener.user?.id}`] as const
  const refuse = (who: string, most: number): Problem =>
    new Problem('rate_limited', `A ${who} can ${verb} ${most} ${nouns} at a time.`, { headers: retryLater })
  if ((open.get(keys[0]) ?? 0) >= perToken) throw refuse('token', perToken)
  if ((open.get(keys[1]) ?? 0) >= perUser) throw refuse('user', perUser)
  const count = (change: number): void => {
    for (const key of keys) {
      const next = (open.get(key) ?? 0) + change
      if (next > 0) open.set(key, next)
      else open.delete(key)
    }
  }
  count(1)
  let isOpen = true
  return () => {
    if (!isOpen) return
    isOpen = false
    count(-1)
  }
}
