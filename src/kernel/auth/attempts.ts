// Limits what strangers attempt, by counts in rows that all processes share: calls of public
// operations per network, and failed checks of a secret per network, per account and network, and
// per account. The last refuses no caller: while an account is guessed, unknown devices wait for
// their turn. Unknown e-mail addresses count like known accounts.
import { LRUCache } from 'lru-cache'
import { apart, type Context, now } from '../context.ts'
import { Problem } from '../errors.ts'
import { stamp } from '../runtime/clock.ts'
import { createFairQueue, type FairQueue } from '../runtime/fair-queue.ts'
import { perOwner } from '../runtime/per-owner.ts'
import { bestEffort } from '../runtime/unavailable.ts'
import { transaction } from '../write/write.ts'
import { clientNetwork } from './ip-ranges.ts'
import { tooManySignIns, type Waiting } from './passwords.ts'
import { type Device, findDevice } from './sign-in-devices.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** The maximum number of failed attempts per minute before further attempts are refused. */
const maxPerAccountAndNetwork = 5
const maxPerNetwork = 20
/** From this number of failed attempts per hour on, over all networks, the account is guessed. */
const maxPerAccount = 20

/** A public operation that each client network may call `most` times in `windowMs` milliseconds. */
interface CallLimit {
  /** The name of the counter. */
  scope: string
  most: number
  /** Windows begin at multiples of this time. */
  windowMs: number
}

/** A check of a password or of another secret. */
interface SecretCheck<T> {
  /** The account whose secret it is: the key of its e-mail address. */
  account: string
  verify: (from: Waiting) => Promise<T>
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
 * Counts a call of a public operation. Throws 429 with Retry-After above its limit. The count is
 * written outside of any transaction, so a failed call counts, too.
 */
export function attempt(ctx: Context, limit: CallLimit): Promise<void>
/**
 * Runs `verify`, which checks a secret. Counts a failure; a success clears the failures of the
 * account at this network. The limits of the network are checked before and after `verify`, because
 * concurrent attempts may fail meanwhile. Throws 429 with Retry-After when a limit is reached.
 */
export function attempt<T extends { right: boolean }>(ctx: Context, check: SecretCheck<T>): Promise<T & Attempted>
export function attempt(ctx: Context, what: CallLimit | SecretCheck<{ right: boolean }>): Promise<unknown> {
  return 'verify' in what ? checkSecret(ctx, what) : countCall(ctx, what)
}

const refusal = (sentence: string, waitMs: number): Problem =>
  new Problem('rate_limited', sentence, {
    headers: { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  })

/** The maximum number of cached refusals per store. A cached refusal needs no database write. */
const maxRefusals = 10_000
const refusals = perOwner((_db: object) => new LRUCache<string, number>({ max: maxRefusals }))

async function countCall(ctx: Context, { scope, most, windowMs }: CallLimit): Promise<void> {
  const { db } = ctx.services.store
  const start = Math.floor(ctx.time.getTime() / windowMs) * windowMs
  const address = clientNetwork(ctx.ip ?? '')
  const refused = refusals(db)
  const key = `${scope} ${address}`
  if (refused.get(key) !== start) {
    const counting = db
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
  }
  throw refusal(
    `At most ${most} of these are taken from one address in a while.`,
    start + windowMs - ctx.time.getTime(),
  )
}

interface Guess {
  account: string
  /** The network of the caller, or the device if it is known. Each has its own failures. */
  place: string
}

async function checkSecret<T extends { right: boolean }>(
  ctx: Context,
  { account: emailKey, verify, deviceToken, isPaced = true }: SecretCheck<T>,
): Promise<T & Attempted> {
  const device = await findDevice(ctx, emailKey, deviceToken)
  const guess: Guess = {
    // Stores an HMAC, so that the table does not reveal the e-mail addresses that users typed.
    account: ctx.services.encryption.hmac(`sign-in:${emailKey}`),
    place: device ? `device ${device.id}` : clientNetwork(ctx.ip ?? ''),
  }
  await refuseHasty(ctx, guess)
  const isGuessed = (await countFailures(ctx, guess)) >= maxPerAccount
  if (isPaced && isGuessed && device === null) {
    const hasFailed = (await countFailures(ctx, guess, guess.place)) > 0
    await (hasFailed ? failedTurn : freshTurn)(guess)
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
  if (waitMs > 0) throw refusal('Too many failed attempts to sign in.', waitMs)
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

/**
 * Returns a function that waits until a secret of an account may be checked: one check each
 * `everyMs` milliseconds, and the networks take turns.
 */
function pace(everyMs: number): (guess: Guess) => Promise<void> {
  /** The accounts with waiting callers, or with a check in the last `everyMs`. */
  const queues = new Map<string, FairQueue>()
  function next(account: string, queue: FairQueue): void {
    if (queue.next() === undefined) queues.delete(account)
    else setTimeout(() => next(account, queue), everyMs).unref()
  }
  return async ({ account, place }) => {
    const known = queues.get(account)
    const queue = known ?? createFairQueue({ maxWaitMs: 12_000, maxWaiting: 1_000 }, tooManySignIns)
    const turn = queue.wait(place)
    if (known === undefined) {
      queues.set(account, queue)
      next(account, queue)
    }
    await turn
  }
}

/** For networks without a failure at the account: at most 86,000 an hour. */
const freshTurn = pace(42)
/** For all networks together that have failed at the account within the last hour. */
const failedTurn = pace(1_000)
