// Recognizes the devices from which an account has signed in, by a random token. A caller with a
// device token of the account does not wait while others guess the password. The database stores
// the digest of a token. A token alone gives no access.
import { type Context, now } from '../context.ts'
import { daysAfter } from '../runtime/clock.ts'
import { cookieOf, setCookie } from './cookies.ts'
import { newSecret, sha256Hex } from './secrets.ts'

const deviceCookie = 'accord_device'
/** The number of days without a sign-in after which a device is forgotten. */
export const deviceDays = 90
/** The maximum number of devices of a user. The least recently used ones are forgotten. */
const maxDevices = 20

export interface Device {
  id: number
  token: string
}

/** Returns the device token in the cookie; undefined when there is none. */
export const deviceTokenOf = (ctx: Context): string | undefined => cookieOf(ctx, deviceCookie)

/** Returns the device with this token if the account with this address has signed in from it. */
export async function findDevice(ctx: Context, emailKey: string, token: string | undefined): Promise<Device | null> {
  const row = await ctx.db
    .selectFrom('sign_in_devices')
    .innerJoin('users', 'users.id', 'sign_in_devices.user_id')
    .select('sign_in_devices.id')
    // The query compares digests, so its duration does not help to guess a token.
    .where('sign_in_devices.secret_hash', '=', sha256Hex(token ?? ''))
    .where('sign_in_devices.last_used_at', '>', daysAfter(ctx.time, -deviceDays))
    .where('users.email_key', '=', emailKey)
    .executeTakeFirst()
  return row && token !== undefined ? { id: row.id, token } : null
}

/**
 * Stores that the account has signed in from this device, which gets a token if it has none. Must
 * run in the transaction of the sign-in. Returns the token, and whether the account has other
 * devices but not this one.
 */
export async function rememberDevice(
  ctx: Context,
  userId: number,
  device: Device | null,
): Promise<{ token: string; isNewBesideOthers: boolean }> {
  const { db } = ctx
  if (device) {
    const used = db
      .updateTable('sign_in_devices')
      .set({ last_used_at: now(ctx) })
      .where('id', '=', device.id)
    if ((await used.executeTakeFirstOrThrow()).numUpdatedRows > 0n)
      return { token: device.token, isNewBesideOthers: false }
  }
  const token = newSecret()
  const others = await db
    .selectFrom('sign_in_devices')
    .select('id')
    .where('user_id', '=', userId)
    .orderBy('last_used_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
  const forgotten = others.slice(maxDevices - 1).map(({ id }) => id)
  if (forgotten.length > 0) await db.deleteFrom('sign_in_devices').where('id', 'in', forgotten).execute()
  await db
    .insertInto('sign_in_devices')
    .values({ user_id: userId, secret_hash: sha256Hex(token), last_used_at: now(ctx), created_at: now(ctx) })
    .execute()
  return { token, isNewBesideOthers: others.length > 0 }
}

/** Sets the cookie with a device token, which scripts cannot read. */
export const keepDevice = (ctx: Context, token: string): void =>
  setCookie(ctx, deviceCookie, token, { isHidden: true, seconds: deviceDays * 24 * 60 * 60 })

/** Forgets the devices of a user, except the one with the caller's cookie. */
export const forgetDevices = async (ctx: Context, userId: number): Promise<void> =>
  void (await ctx.db
    .deleteFrom('sign_in_devices')
    .where('user_id', '=', userId)
    .where('secret_hash', '!=', sha256Hex(deviceTokenOf(ctx) ?? ''))
    .execute())
