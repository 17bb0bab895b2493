// Slows down password guessing. Failed attempts are counted per network, per account
// and network, and per account over all networks. Unknown e-mail addresses count like known
// accounts.

import { apart, type Context, now } from '../context.ts'
import { Problem } from '../errors.ts'
import { stamp } from '../runtime/clock.ts'
import { transaction } from '../write/write.ts'
import { clientNetwork } from './ip-ranges.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** The maximum number of failed attempts per minute before further attempts are refused. */
const maxPerAccountAndNetwork = 5
const maxPerNetwork = 20
/**
 * The maximum number of failed attempts per hour for an account over all networks. Each further
 * failure doubles the delay before the next attempt.
 */
const maxPerAccount = 20
const maxDelayMs = 5 * minuteMs

interface Guess {
  account: string
  network: string
  /**
   * Whether this account has signed in from this network before. If so, failures at other networks
   * do not delay an attempt from this network.
   */
  isHome: boolean
  /**
   * Whether any account has signed in from this network before. Attempts from such networks wait in
   * a separate queue (passwords.ts).
   */
  isKnown: boolean
}

interface Limits {
  /**
   * Whether failures at other networks count. False for random secrets: they cannot be guessed, and
   * counting would let strangers lock out the owner.
   */
  isOverAllNetworks: boolean
}

/**
 * Runs `verify`, which checks a password. Counts a failure; a success clears the failures of the
 * account at this network. The limits are checked before and after `verify`, because concurrent
 * attempts may fail meanwhile. Throws 429 with Retry-After when a limit is reached.
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
  // The failure is committed in a transaction of its own, so it counts even if the call fails or is
  // a dry run.
  await transaction(apart(ctx), async (ctx) => {
    await refuseHasty(ctx, guess)
    await (outcome.right ? clear(ctx, guess) : count(ctx, guess))
  })
  return outcome
}

async function guessOf(ctx: Context, emailKey: string): Promise<Guess> {
  const network = clientNetwork(ctx.ip ?? '')
  const known = ctx.db.selectFrom('sign_in_networks').select('sign_in_networks.id').where('network', '=', network)
  const own = known.innerJoin('users', 'users.id', 'sign_in_networks.user_id').where('users.email_key', '=', emailKey)
  return {
    // Stores an HMAC, so that the table does not reveal the e-mail addresses that users typed.
    account: ctx.services.encryption.hmac(`sign-in:${emailKey}`),
    network,
    isHome: (await own.limit(1).executeTakeFirst()) !== undefined,
    isKnown: (await known.limit(1).executeTakeFirst()) !== undefined,
  }
}

/** Returns whether an account has signed in from a network before. */
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

/**
 * Returns how many milliseconds this network must wait before its next attempt for this account.
 * The failures of the network for all accounts count, too.
 */
async function waitHere(ctx: Context, { account, network }: Guess): Promise<number> {
  const failures = await ctx.db
    .selectFrom('login_attempts')
    .select(['account', 'created_at'])
    .where('network', '=', network)
    .where('created_at', '>', since(ctx, minuteMs))
    // Ignores failures with a future timestamp, which occur after the clock was set back.
    .where('created_at', '<=', now(ctx))
    .orderBy('created_at', 'desc')
    .limit(maxPerNetwork)
    .execute()
  const own = failures.filter((each) => each.account === account)
  const decisive = own[maxPerAccountAndNetwork - 1] ?? failures[maxPerNetwork - 1]
  return decisive ? Date.parse(decisive.created_at) + minuteMs - ctx.time.getTime() : 0
}

/**
 * Returns how many milliseconds this account must wait at networks from which it has not signed in.
 * The delay starts at one second and doubles with each failure.
 */
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

/**
 * Stores that the account has signed in from this network. The caller must be in the transaction
 * that creates the session.
 */
export async function rememberNetwork(ctx: Context, userId: number): Promise<void> {
  const used = { last_used_at: now(ctx) }
  await ctx.db
    .insertInto('sign_in_networks')
    .values({ user_id: userId, network: clientNetwork(ctx.ip ?? ''), ...used })
    .onConflict((conflict) => conflict.columns(['user_id', 'network']).doUpdateSet(used))
    .execute()
}

/** Deletes the stored sign-in networks of the account, except the caller's network. */
export const forgetNetworks = async ({ db, ip }: Context, userId: number): Promise<void> =>
  void (await db
    .deleteFrom('sign_in_networks')
    .where('user_id', '=', userId)
    .where('network', '!=', clientNetwork(ip ?? ''))
    .execute())
