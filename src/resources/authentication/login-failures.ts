// Failed logins as events (DOMAIN 17.2). An attack causes thousands, so there is one event a minute
// per account and network, with the number of failures, and a limit a minute in all.

import { LRUCache } from 'lru-cache'
import { networkOf } from '../../kernel/auth/ip-ranges.ts'
import { userAgentOf } from '../../kernel/auth/sessions.ts'
import { apart, type Context } from '../../kernel/context.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'
import { emitOnly } from '../../kernel/write/write.ts'

const minuteMs = 60_000
const maxPerMinute = 30
/** Pairs of account and network with a counter; the least recently used is evicted. */
const maxTrackedPairs = 10_000

interface FailureCount {
  atMs: number
  /** Failures since the last event. */
  since: number
}

/** By database, so that tests with several do not share counters. */
const countsOf = perOwner((_store: object) => new LRUCache<string, FailureCount>({ max: maxTrackedPairs }))

interface Failure {
  /** The case-folded typed address. Failures are grouped by it even if no account has it. */
  emailKey: string
  user: { id: number; email: string } | undefined
  reason: 'invalid_credentials' | 'account_inactive'
}

/**
 * Emits the event. It shows the address only when an account has it, because people type passwords
 * into this field.
 */
export async function emitLoginFailure(ctx: Context, { emailKey, user, reason }: Failure): Promise<void> {
  const { store } = ctx.services
  const told = countsOf(store)
  const nowMs = ctx.time.getTime()
  const key = `${emailKey} ${networkOf(ctx.ip ?? '')}`
  const before = told.get(key)
  const failures = 1 + (before?.since ?? 0)
  if ((before && nowMs - before.atMs < minuteMs) || countSince(told, nowMs - minuteMs) >= maxPerMinute) {
    told.set(key, { atMs: before?.atMs ?? Number.NEGATIVE_INFINITY, since: failures })
    return
  }
  told.set(key, { atMs: nowMs, since: 0 })
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

function countSince(told: LRUCache<string, FailureCount>, sinceMs: number): number {
  let count = 0
  for (const { atMs } of told.values()) if (atMs > sinceMs) count++
  return count
}
