// Failed attempts to sign in, as events (DOMAIN 17.2). An attack makes thousands of them: one event a minute tells of an account at a
// network, with how many there were, and no more than so many a minute are told in all.

import { LRUCache } from 'lru-cache'
import { networkOf } from '../../kernel/auth/ip-ranges.ts'
import { userAgentOf } from '../../kernel/auth/sessions.ts'
import { apart, type Context } from '../../kernel/context.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'
import { emitOnly } from '../../kernel/write/write.ts'

const minuteMs = 60_000
const maxPerMinute = 30
/** Accounts at networks that are remembered; the oldest is forgotten first. */
const maxRemembered = 10_000

interface Told {
  atMs: number
  /** Failures since that were not told. */
  since: number
}

/** By the database that the events are in. */
const known = perOwner((_store: object) => new LRUCache<string, Told>({ max: maxRemembered }))

interface Failure {
  /** The typed address, case-folded: failures are grouped by it, whether or not the account exists. */
  emailKey: string
  user: { id: number; email: string } | undefined
  reason: 'invalid_credentials' | 'account_inactive'
}

/** The typed text is shown only when it is the address of an account: people type passwords into this field. */
export async function tellFailure(ctx: Context, { emailKey, user, reason }: Failure): Promise<void> {
  const { store } = ctx.services
  const told = known(store)
  const nowMs = ctx.time.getTime()
  const key = `${emailKey} ${networkOf(ctx.ip ?? '')}`
  const before = told.get(key)
  const failures = 1 + (before?.since ?? 0)
  if ((before && nowMs - before.atMs < minuteMs) || toldSince(told, nowMs - minuteMs) >= maxPerMinute) {
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

function toldSince(told: LRUCache<string, Told>, sinceMs: number): number {
  let count = 0
  for (const { atMs } of told.values()) if (atMs > sinceMs) count++
  return count
}
