// How often an address may ask: the brake on guessing passwords (DOMAIN 6.3), and a limit for what is open to everybody
// (25.2). Both count in rows, so that every process counts the same.
import { isIPv6 } from 'node:net'
import { stamp } from './clock.ts'
import type { Context } from './context.ts'
import { Problem } from './errors.ts'
import { ifItCan } from './unavailable.ts'

const windowMs = 60_000
const perAccount = 5
const perAddress = 20

const since = (ctx: Context): string => stamp(new Date(ctx.time.getTime() - windowMs))

/**
 * Runs `verify`, a comparison with a password, under the brake: a wrong one is counted, a right one clears the account's count.
 * Asks twice, because others may have failed while this one was being compared: many tries at once get no more than as many
 * one after another.
 */
export async function braked<T extends { right: boolean }>(
  ctx: Context,
  emailKey: string,
  verify: () => Promise<T>,
): Promise<T> {
  await checkLoginFailures(ctx, emailKey)
  const outcome = await verify()
  await checkLoginFailures(ctx, emailKey)
  await (outcome.right ? clearLoginFailures(ctx, emailKey) : recordLoginFailure(ctx, emailKey))
  return outcome
}

/** Throws 429 with Retry-After when this address has failed too often, with this account or in all. */
async function checkLoginFailures(ctx: Context, emailKey: string): Promise<void> {
  const failures = await ctx.db
    .selectFrom('login_attempts')
    .select(['email_key', 'created_at'])
    .where('ip', '=', networkOf(ctx.ip ?? ''))
    .where('created_at', '>', since(ctx))
    .orderBy('created_at', 'desc')
    .limit(perAddress)
    .execute()
  const account = failures.filter((each) => each.email_key === emailKey)
  const decisive =
    account.length >= perAccount
      ? account[perAccount - 1]
      : failures.length >= perAddress
        ? failures[perAddress - 1]
        : undefined
  if (!decisive) return
  const seconds = Math.max(
    1,
    Math.ceil((new Date(decisive.created_at).getTime() + windowMs - ctx.time.getTime()) / 1000),
  )
  throw new Problem('rate_limited', 'Too many failed attempts to sign in.', {
    headers: { 'retry-after': String(seconds) },
  })
}

async function recordLoginFailure(ctx: Context, emailKey: string): Promise<void> {
  await ctx.db.deleteFrom('login_attempts').where('created_at', '<=', since(ctx)).execute()
  await ctx.db
    .insertInto('login_attempts')
    .values({ email_key: emailKey, ip: networkOf(ctx.ip ?? ''), created_at: stamp(ctx.time) })
    .execute()
}

async function clearLoginFailures(ctx: Context, emailKey: string): Promise<void> {
  await ctx.db
    .deleteFrom('login_attempts')
    .where('email_key', '=', emailKey)
    .where('ip', '=', networkOf(ctx.ip ?? ''))
    .execute()
}

/**
 * Who is refused, and for which window, as far as this server has seen it: whoever asks all the more then costs no write. By the
 * database that counts; no more than so many, the oldest go first.
 */
const refusals = new WeakMap<object, Map<string, number>>()
const mostRefusals = 10_000

function refusalsOf({ services: { store } }: Context): Map<string, number> {
  const known = refusals.get(store.db) ?? new Map<string, number>()
  refusals.set(store.db, known)
  return known
}

/**
 * Counts this call and throws 429 with Retry-After when the caller's address has made more than `most` of the scope within the
 * window; windows begin at multiples of their length. Outside of any transaction, so that a call counts whatever becomes of it.
 * `address` can be another one than the caller's, such as that of a mailbox.
 */
export async function limited(
  ctx: Context,
  scope: string,
  most: number,
  windowMs: number,
  address: string = networkOf(ctx.ip ?? ''),
): Promise<void> {
  const start = Math.floor(ctx.time.getTime() / windowMs) * windowMs
  const refused = refusalsOf(ctx)
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
  await ifItCan(async () => {
    ;({ count } = await counting.executeTakeFirstOrThrow())
  })
  if (count <= most) return
  refused.delete(key)
  refused.set(key, start)
  const [oldest] = refused.keys()
  if (refused.size > mostRefusals && oldest !== undefined) refused.delete(oldest)
  throw refuse()
}

/** An address of IPv6 by its first half: whoever has one has 2^64 of them. */
export function networkOf(ip: string): string {
  if (!isIPv6(ip) || ip.includes('.')) return ip
  const [head = '', tail = ''] = ip.split('%')[0]?.split('::') ?? []
  const [first, last] = [head, tail].map((part) => part.split(':').filter(Boolean)) as [string[], string[]]
  const zeros = ip.includes('::') ? Array<string>(8 - first.length - last.length).fill('0') : []
  const groups = [...first, ...zeros, ...last].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${groups.join(':')}::/64`
}
