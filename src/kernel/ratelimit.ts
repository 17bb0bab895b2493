// The brake on guessing passwords (DOMAIN 6.3): failures are rows, so that every process counts the same.

import { stamp } from './clock.ts'
import type { Context } from './context.ts'
import { Problem } from './errors.ts'

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
    .where('ip', '=', ctx.ip ?? '')
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
    .values({ email_key: emailKey, ip: ctx.ip ?? '', created_at: stamp(ctx.time) })
    .execute()
}

async function clearLoginFailures(ctx: Context, emailKey: string): Promise<void> {
  await ctx.db
    .deleteFrom('login_attempts')
    .where('email_key', '=', emailKey)
    .where('ip', '=', ctx.ip ?? '')
    .execute()
}
