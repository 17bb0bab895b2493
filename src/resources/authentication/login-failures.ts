// Emits events for failed logins. An attack can cause thousands of failures, so the
// number of events is limited. Each pair of account and network gets at most one event a minute,
// which has the number of failures. All pairs together get at most `maxPerMinute` events.

import { LRUCache } from 'lru-cache'
import { clientNetwork } from '../../kernel/auth/ip-ranges.ts'
import { userAgentOf } from '../../kernel/auth/sessions.ts'
import { apart, type Context } from '../../kernel/context.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'
import { emitOnly } from '../../kernel/write/write.ts'

const minuteMs = 60_000
const maxPerMinute = 30
/**
 * The maximum number of account and network pairs with a counter. The least recently used pair is
 * evicted.
 */
const maxTrackedPairs = 10_000

interface FailureCount {
  atMs: number
  /** The number of failures since the last event. */
  since: number
}

/**
 * The counters of each database. Tests open several databases in one process, and each database
 * needs separate counters.
 */
const countsOf = perOwner((_store: object) => new LRUCache<string, FailureCount>({ max: maxTrackedPairs }))

interface Failure {
  /**
   * The case-folded address from the request. Failures are grouped by this address even if no
   * account has it.
   */
  emailKey: string
  user: { id: number; email: string } | undefined
  reason: 'invalid_credentials' | 'account_inactive'
}

/**
 * Emits the event of a failed login, or only counts the failure when a limit is reached. The event
 * contains the address only if an account has it, because people sometimes type a password into
 * this field.
 */
export async function emitLoginFailure(ctx: Context, { emailKey, user, reason }: Failure): Promise<void> {
  const { store } = ctx.services
  const counts = countsOf(store)
  const nowMs = ctx.time.getTime()
  const key = `${emailKey} ${clientNetwork(ctx.ip ?? '')}`
  const before = counts.get(key)
  const failures = 1 + (before?.since ?? 0)
  if ((before && nowMs - before.atMs < minuteMs) || countSince(counts, nowMs - minuteMs) >= maxPerMinute) {
    counts.set(key, { atMs: before?.atMs ?? Number.NEGATIVE_INFINITY, since: failures })
    return
  }
  counts.set(key, { atMs: nowMs, since: 0 })
  const shown = {
    user_id: user?.id ?? null,
    email: user?.email ?? null,
    reason,
    failures,
    ip: ctx.ip,
    user_agent: userAgentOf(ctx),
  }
  await emitOnly(apart(ctx), 'user.session.failed', { entity: 'sessions', id: null, shown })
}

function countSince(counts: LRUCache<string, FailureCount>, sinceMs: number): number {
  let count = 0
  for (const { atMs } of counts.values()) if (atMs > sinceMs) count++
  return count
}
