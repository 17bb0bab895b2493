// Slows down password guessing. Failed attempts are counted per network, per account and network,
// and per account over all networks. The first two limits refuse the network for a minute. The
// third refuses no caller: while an account is being guessed, unknown devices wait for their turn
// (guess-pacing.ts). Unknown e-mail addresses count like known accounts.

import { apart, type Context, now } from '../context.ts'
import { Problem } from '../errors.ts'
import { stamp } from '../runtime/clock.ts'
import { transaction } from '../write/write.ts'
import { waitForTurn } from './guess-pacing.ts'
import { clientNetwork } from './ip-ranges.ts'
import type { Waiting } from './passwords.ts'
import { type Device, findDevice } from './sign-in-devices.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** The maximum number of failed attempts per minute before further attempts are refused. */
const maxPerAccountAndNetwork = 5
const maxPerNetwork = 20
/** From this number of failed attempts per hour on, over all networks, the account is guessed. */
const maxPerAccount = 20

interface Guess {
  account: string
  /** The network of the caller, or the device if it is known. Each has its own failures. */
  place: string
  device: Device | null
}

interface Options {
  /** The device token that the caller sent. */
  deviceToken?: string | undefined
  /**
   * Whether the attempt waits while others guess. False for random secrets, which cannot be
   * guessed, and for callers who have signed in.
   */
  isPaced?: boolean
}

export interface Attempted {
  /** The known device of the caller; null for an unknown device. */
  device: Device | null
  /** Whether the account was being guessed before this attempt. */
  isGuessed: boolean
}

/**
 * Runs `verify`, which checks a password. Counts a failure; a success clears the failures of the
 * account at this network. The limits of the network are checked before and after `verify`, because
 * concurrent attempts may fail meanwhile. Throws 429 with Retry-After when a limit is reached.
 */
export async function withBruteForceProtection<T extends { right: boolean }>(
  ctx: Context,
  emailKey: string,
  verify: (from: Waiting) => Promise<T>,
  { deviceToken, isPaced = true }: Options = {},
): Promise<T & Attempted> {
  const device = await findDevice(ctx, emailKey, deviceToken)
  const guess: Guess = {
    // Stores an HMAC, so that the table does not reveal the e-mail addresses that users typed.
    account: ctx.services.encryption.hmac(`sign-in:${emailKey}`),
    place: device ? `device ${device.id}` : clientNetwork(ctx.ip ?? ''),
    device,
  }
  await refuseHasty(ctx, guess)
  const isGuessed = (await countFailures(ctx, guess)) >= maxPerAccount
  if (isPaced && isGuessed && device === null) {
    const hasFailed = (await countFailures(ctx, guess, guess.place)) > 0
    await waitForTurn(guess.account, guess.place, { hasFailed })
    await refuseHasty(atPresent(ctx), guess)
  }
  const outcome = await verify({ isKnown: device !== null, place: guess.place })
  // The failure is committed in a transaction of its own, so it counts even if the call fails or is
  // a dry run.
  await transaction(apart(atPresent(ctx)), async (ctx) => {
    await refuseHasty(ctx, guess)
    await (outcome.right ? clear(ctx, guess) : count(ctx, guess))
  })
  return { ...outcome, device, isGuessed }
}

/** Returns the context with the present time, because the attempt may have waited for seconds. */
const atPresent = (ctx: Context): Context => ({ ...ctx, time: ctx.services.clock.now() })

async function refuseHasty(ctx: Context, guess: Guess): Promise<void> {
  const waitMs = await waitHere(ctx, guess)
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
async function waitHere(ctx: Context, { account, place }: Guess): Promise<number> {
  const failures = await ctx.db
    .selectFrom('login_attempts')
    .select(['account', 'created_at'])
    .where('network', '=', place)
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

/** Returns the number of failures of the account in the last hour, at all networks or at one. */
async function countFailures(ctx: Context, { account }: Guess, place?: string): Promise<number> {
  let failures = ctx.db
    .selectFrom('login_attempts')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('account', '=', account)
    .where('created_at', '>', since(ctx, hourMs))
    .where('created_at', '<=', now(ctx))
  if (place !== undefined) failures = failures.where('network', '=', place)
  return Number((await failures.executeTakeFirstOrThrow()).count)
}

async function count(ctx: Context, { account, place }: Guess): Promise<void> {
  await ctx.db.deleteFrom('login_attempts').where('created_at', '<=', since(ctx, hourMs)).execute()
  await ctx.db
    .insertInto('login_attempts')
    .values({ account, network: place, created_at: now(ctx) })
    .execute()
}

async function clear({ db }: Context, { account, place }: Guess): Promise<void> {
  await db.deleteFrom('login_attempts').where('account', '=', account).where('network', '=', place).execute()
}
