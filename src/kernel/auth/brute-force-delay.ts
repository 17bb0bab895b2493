// The brake on guessing passwords (DOMAIN 6.3). Failures are counted for a network, for an account at a network, and for an account
// over all networks. What was typed as an address counts the same whether there is such an account or not.

import { apart, type Context, now } from '../context.ts'
import { Problem } from '../errors.ts'
import { stamp } from '../runtime/clock.ts'
import { transaction } from '../write/write.ts'
import { networkOf } from './ip-ranges.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** Failures a minute. */
const maxPerAccountAndNetwork = 5
const maxPerNetwork = 20
/** Failures an hour over all networks. Each further one doubles the delay before the next try. */
const maxPerAccount = 20
const maxDelayMs = 5 * minuteMs

interface Guess {
  account: string
  network: string
  /** Whether this account has signed in from this network before: it does not wait for what others do elsewhere. */
  isHome: boolean
  /** Whether any account has: then its line is not that of strangers (passwords.ts). */
  isKnown: boolean
}

interface Limits {
  /** Whether failures at other networks count as well. Not for secrets that nobody can guess: strangers could keep the owner out. */
  isOverAllNetworks: boolean
}

/**
 * Runs `verify`, a comparison with a password, under the brake: a wrong one is counted, a right one clears the count of the account
 * at this network. Asks twice, because others may have failed meanwhile: many tries at once get no more than one after another.
 * Throws 429 with Retry-After.
 */
export async function withBruteForceProtection<T extends { right: boolean }>(
  ctx: Context,
  emailKey: string,
  verify: (from: Pick<Guess, 'isKnown'>) => Promise<T>,
  { isOverAllNetworks }: Limits = { isOverAllNetworks: true },
): Promise<T> {
  const found = await guessOf(ctx, emailKey)
  const guess: Guess = isOverAllNetworks ? found : { ...found, isHome: true }
  await refuseHasty(ctx, guess)
  const outcome = await verify(guess)
  // It counts whatever becomes of the call, and whether that is a rehearsal or not.
  await transaction(apart(ctx), async (ctx) => {
    await refuseHasty(ctx, guess)
    await (outcome.right ? clear(ctx, guess) : count(ctx, guess))
  })
  return outcome
}

async function guessOf(ctx: Context, emailKey: string): Promise<Guess> {
  const network = networkOf(ctx.ip ?? '')
  const known = ctx.db.selectFrom('sign_in_networks').select('sign_in_networks.id').where('network', '=', network)
  const own = known.innerJoin('users', 'users.id', 'sign_in_networks.user_id').where('users.email_key', '=', emailKey)
  return {
    // Keyed: nobody finds out from the table what people have typed.
    account: ctx.services.seal.hmac(`sign-in:${emailKey}`),
    network,
    isHome: (await own.limit(1).executeTakeFirst()) !== undefined,
    isKnown: (await known.limit(1).executeTakeFirst()) !== undefined,
  }
}

/** Whether an account has signed in from a network before. */
export async function isHome(
  { db }: Context,
  { userId, network }: { userId: number; network: string },
): Promise<boolean> {
  const known = db.selectFrom('sign_in_networks').select('id').where('user_id', '=', userId)
  return (await known.where('network', '=', network).executeTakeFirst()) !== undefined
}

async function refuseHasty(ctx: Context, guess: Guess): Promise<void> {
  const hereMs = await waitHere(ctx, guess)
  const everywhereMs = guess.isHome ? 0 : await waitEverywhere(ctx, guess)
  const waitMs = Math.max(hereMs, everywhereMs)
  if (waitMs <= 0) return
  throw new Problem('rate_limited', 'Too many failed attempts to sign in.', {
    headers: { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  })
}

const since = ({ time }: Context, ms: number): string => stamp(new Date(time.getTime() - ms))

/** How long this network has to wait, with this account or with any. */
async function waitHere(ctx: Context, { account, network }: Guess): Promise<number> {
  const failures = await ctx.db
    .selectFrom('login_attempts')
    .select(['account', 'created_at'])
    .where('network', '=', network)
    .where('created_at', '>', since(ctx, minuteMs))
    // Failures of a clock that was ahead and was set back do not count.
    .where('created_at', '<=', now(ctx))
    .orderBy('created_at', 'desc')
    .limit(maxPerNetwork)
    .execute()
  const own = failures.filter((each) => each.account === account)
  const decisive = own[maxPerAccountAndNetwork - 1] ?? failures[maxPerNetwork - 1]
  return decisive ? Date.parse(decisive.created_at) + minuteMs - ctx.time.getTime() : 0
}

/** How long this account has to wait at networks it has not signed in from: 1, 2, 4 … seconds after the failure before. */
async function waitEverywhere(ctx: Context, { account }: Guess): Promise<number> {
  const { failures, latest } = await ctx.db
    .selectFrom('login_attempts')
    .select((eb) => [eb.fn.countAll<number>().as('failures'), eb.fn.max('created_at').as('latest')])
    .where('account', '=', account)
    .where('created_at', '>', since(ctx, hourMs))
    .where('created_at', '<=', now(ctx))
    .executeTakeFirstOrThrow()
  const beyond = Number(failures) - maxPerAccount
  if (beyond < 0 || latest === null) return 0
  return Date.parse(latest) + Math.min(maxDelayMs, 1000 * 2 ** beyond) - ctx.time.getTime()
}

async function count(ctx: Context, { account, network }: Guess): Promise<void> {
  await ctx.db.deleteFrom('login_attempts').where('created_at', '<=', since(ctx, hourMs)).execute()
  await ctx.db
    .insertInto('login_attempts')
    .values({ account, network, created_at: now(ctx) })
    .execute()
}

async function clear({ db }: Context, { account, network }: Guess): Promise<void> {
  await db.deleteFrom('login_attempts').where('account', '=', account).where('network', '=', network).execute()
}

/** From now on the account does not wait at this network for what others do elsewhere. In the transaction that signs in. */
export async function rememberNetwork(ctx: Context, userId: number): Promise<void> {
  const used = { last_used_at: now(ctx) }
  await ctx.db
    .insertInto('sign_in_networks')
    .values({ user_id: userId, network: networkOf(ctx.ip ?? ''), ...used })
    .onConflict((conflict) => conflict.columns(['user_id', 'network']).doUpdateSet(used))
    .execute()
}

/** All but the calling one. */
export const forgetNetworks = async ({ db, ip }: Context, userId: number): Promise<void> =>
  void (await db
    .deleteFrom('sign_in_networks')
    .where('user_id', '=', userId)
    .where('network', '!=', networkOf(ip ?? ''))
    .execute())
