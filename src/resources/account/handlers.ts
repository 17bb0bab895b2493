// Handlers for the caller's own account: profile, permissions, e-mail and password. No
// handler requires a permission. A change of e-mail or password requires the current password.
import { permissionKeys } from '../../contract/operations.gen.ts'
import type { Body, EventBase, Schema } from '../../contract/types.ts'
import { attempt } from '../../kernel/auth/attempts.ts'
import { verifyPassword } from '../../kernel/auth/passwords.ts'
import { type Context, requireUser } from '../../kernel/context.ts'
import { notFound, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { conditions, valueField } from '../../kernel/query/filter.ts'
import { page } from '../../kernel/query/page.ts'
import { fold } from '../../kernel/values/format.ts'
import { textKey } from '../../kernel/values/names.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { checkCredentials, endAccess, withPasswordHash } from '../users/credentials.ts'
import { checkPicture, pictureUrl, setPicture } from '../users/picture.ts'
import { users } from '../users/resource.ts'

type Account = Schema<'Account'>

/**
 * Returns the caller's account with its permissions and token abilities. A session has all
 * abilities.
 */
export async function accountOf(ctx: Context): Promise<Account> {
  const { id, permissions } = requireUser(ctx)
  return {
    ...(await users.get(ctx, id)),
    permissions: permissions === 'all' ? ['*'] : permissionKeys.filter((key) => permissions.has(key)),
    abilities: [...(ctx.token?.abilities ?? (ctx.session ? ['*'] : []))],
  }
}

const getAccount: Handler<'getAccount'> = async (ctx) => ({ data: await accountOf(ctx) })

const updateAccount: Handler<'updateAccount'> = async (ctx, { body }) => {
  const { id } = requireUser(ctx)
  await users.assertVisible(ctx, id)
  const isProven = await checkCurrentPassword(ctx, body)
  const { password_hash } = await withPasswordHash(ctx, isProven ? body : {})
  return transaction(ctx, async (ctx) => {
    await users.assertVisible(ctx, id)
    const before = await users.get(ctx, id)
    const errors = new ValidationErrors()
    await checkCredentials({ ctx, errors }, body, before)
    await checkPicture({ ctx, errors }, body.image_file_id)
    if (!isProven)
      errors.invalid(
        'current_password',
        body.current_password === undefined ? 'The field is required.' : 'This is not the current password.',
      )
    errors.throwIfAny()
    const { name, email, password, image_file_id } = body
    if (password === undefined || name !== undefined || email !== undefined || image_file_id !== undefined) {
      const columns = {
        ...(name !== undefined && { name, name_key: textKey(name) }),
        ...(email !== undefined && { email, email_key: fold(email) }),
      }
      const hasChanged = (name !== undefined && name !== before.name) || (email !== undefined && email !== before.email)
      await change(ctx, 'user.account.update', body, before, hasChanged ? columns : null)
    }
    if (password_hash !== undefined) {
      await setPassword(ctx, body, password_hash)
      await endAccess(ctx, id)
    }
    return { data: await accountOf(ctx), message: 'Account updated.' }
  })
}

/**
 * Checks `current_password` when the body changes the e-mail or the password; returns true
 * otherwise. A wrong password counts as a failed login; too many failed logins throw 429.
 */
async function checkCurrentPassword(ctx: Context, body: Body<'updateAccount'>): Promise<boolean> {
  const { id } = requireUser(ctx)
  const user = await ctx.db
    .selectFrom('users')
    .select(['email', 'email_key', 'password_hash'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (!user) throw notFound('user', id)
  const { current_password: current } = body
  const isNeeded = body.password !== undefined || (body.email !== undefined && body.email !== user.email)
  if (!isNeeded) return true
  if (current === undefined) return false
  const { right } = await attempt(ctx, {
    account: user.email_key,
    isPaced: false,
    verify: () => verifyPassword(ctx.services.config, { stored: user.password_hash, password: current }),
  })
  return right
}

/** Sets the caller's own password. Must run in a transaction. */
export async function setPassword(ctx: Context, input: object, password_hash: string): Promise<void> {
  const before = await users.get(ctx, requireUser(ctx).id)
  await change(ctx, 'user.account.update-password', input, before, { password_hash })
}

/**
 * Updates the caller's row and emits the `before` and `after` events. With `columns` null, only the
 * picture can change.
 */
async function change(
  ctx: Context,
  name: EventBase,
  input: Pick<Body<'updateAccount'>, 'image_file_id'>,
  before: Schema<'User'>,
  columns: Record<string, string> | null,
): Promise<void> {
  const { id } = before
  const isAlsoBare = name === 'user.account.update-password'
  const about = { entity: 'users', input, id, before: before as Snapshot, isAlsoBare }
  await write(ctx, name, about, async (ctx) => {
    if (columns) await ctx.db.updateTable('users').set(columns).where('id', '=', id).execute()
    const hasPicture = name === 'user.account.update' && (await setPicture(ctx, id, input.image_file_id))
    if (columns || hasPicture) await users.touch(ctx, id)
    const hidden = columns && 'password_hash' in columns ? ['password'] : []
    return { id, entity: (await users.get(ctx, id)) as Snapshot, hidden }
  })
}

const listColleagues: Handler<'listColleagues'> = async (ctx, { query }) => {
  let active = ctx.db
    .selectFrom('users')
    .select(['users.id', 'users.name', 'users.image_file_id'])
    .where('users.is_active', '=', 1)
  for (const condition of conditions(ctx, query, { id: valueField('users.id') }, [{ key: 'users.name_key' }]))
    active = active.where(condition)
  const sorts = { name: 'users.name_key' }
  const { rows, links, meta } = await page(ctx, active, { ...query, sort: ['name'] }, sorts, 'users.id')
  const data = rows.map(({ id, name, image_file_id }) => ({ id, name, image_url: pictureUrl(ctx, image_file_id) }))
  return { data, links, meta }
}

export const handlers = { getAccount, updateAccount, listColleagues } satisfies Partial<Handlers>
