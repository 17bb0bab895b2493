// Limits the calls of public operations per client network. The counters are database
// rows, so all processes share them. brute-force-delay.ts separately slows down password guessing.

import { LRUCache } from 'lru-cache'
import type { Context } from '../context.ts'
import { Problem } from '../errors.ts'
import { stamp } from '../runtime/clock.ts'
import { perOwner } from '../runtime/per-owner.ts'
import { bestEffort } from '../runtime/unavailable.ts'
import { clientNetwork } from './ip-ranges.ts'

/** The maximum number of cached refusals per store. A cached refusal needs no database write. */
const maxRefusals = 10_000
const refusals = perOwner((_db: object) => new LRUCache<string, number>({ max: maxRefusals }))

/**
 * Counts this call. Throws 429 with Retry-After after more than `most` calls from the client
 * network in the current window. Windows begin at multiples of `windowMs`. The count is written
 * outside of any transaction, so a failed call counts, too. `address` replaces the client network
 * as the key.
 */
export async function countCall(
  ctx: Context,
  scope: string,
  most: number,
  windowMs: number,
  address: string = clientNetwork(ctx.ip ?? ''),
): Promise<void> {
  const start = Math.floor(ctx.time.getTime() / windowMs) * windowMs
  const refused = refusals(ctx.services.store.db)
  const key = `${scope} ${address}`
  const refuse = (): Problem => {
    const seconds = Math.max(1, Math.ceil((start + windowMs - ctx.time.getTime()) / 1000))
    return new Problem('rate_limited', `At most ${most} of these are taken from one address in a while.`, {
      headers: { 'retry-after': String(seconds) },
    })
  }
  if (refused.get(key) === start) throw refuse()
  const counting = ctx.services.store.db
    .insertInto('call_counts')
    .values({ scope, address, window_start: stamp(new Date(start)), count: 1 })
    .onConflict((conflict) =>
      conflict
        .columns(['scope', 'address', 'window_start'])
        .doUpdateSet((eb) => ({ count: eb('call_counts.count', '+', 1) })),
    )
    .returning('count')
  let count = 0
  await bestEffort(async () => {
    ;({ count } = await counting.executeTakeFirstOrThrow())
  })
  if (count <= most) return
  refused.set(key, start)
  throw refuse()
}
