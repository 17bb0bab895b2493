// The API of tokens. Callers manage their own tokens. With the permission
// settings.user.tokens and the ability users:read or users:write, they also manage tokens of other
// users. A new token cannot have more abilities, more networks or a later expiry than the token
// that creates it.
import { type SqlBool, sql } from 'kysely'
import { didYouMean } from '../../contract/input/validation-errors.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { Body } from '../../contract/types.ts'
import { covers, knownAbilities } from '../../kernel/auth/abilities.ts'
import { deprecatedUsesOf } from '../../kernel/auth/deprecated-uses.ts'
import { isNetwork, isSubnetOf } from '../../kernel/auth/ip-ranges.ts'
import { confirmCaller } from '../../kernel/auth/sessions.ts'
import { issueToken } from '../../kernel/auth/tokens.ts'
import { assertCanCall, type Context, canCall, hasPermission, now, requireUser } from '../../kernel/context.ts'
import { forbidden, notFound, Problem, ValidationErrors } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { always, type Sight } from '../../kernel/query/event-visibility.ts'
import { conditions, textField, timeField, valueField } from '../../kernel/query/filter.ts'
import { page } from '../../kernel/query/page.ts'
import { visible } from '../../kernel/query/visibility.ts'
import type { Examine } from '../../kernel/resource/definition.ts'
import { daysAfter } from '../../kernel/runtime/clock.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { requireAuthorityOverId } from '../users/authority.ts'
import { maxTokens, presentToken, revokeTokens, tokenRows } from './rows.ts'

const othersKey = 'settings.user.tokens'
const defaultDays = 90
const maxDays = 365

const fields = {
  id: valueField('tokens.id'),
  user_id: valueField('tokens.user_id'),
  name: textField('tokens.name_key'),
  kind: valueField('tokens.kind'),
  created_at: timeField('tokens.created_at'),
  expires_at: timeField('tokens.expires_at'),
  last_used_at: timeField('tokens.last_used_at'),
}

const sort = {
  id: 'tokens.id',
  name: 'tokens.name_key',
  created_at: 'tokens.created_at',
  last_used_at: 'tokens.last_used_at',
  expires_at: 'tokens.expires_at',
}

/**
 * Returns a query for the tokens that the caller may manage: the caller's own tokens, or with the
 * permission `othersKey` the tokens of all visible users.
 */
function manageableTokens(ctx: Context) {
  const rows = tokenRows(ctx)
  return hasPermission(ctx, othersKey)
    ? rows.where(visible(ctx, 'tokens.user_id'))
    : rows.where('tokens.user_id', '=', requireUser(ctx).id)
}

const mayReadOthers = (ctx: Context): boolean => canCall(ctx, { permission: othersKey, ability: 'users:read' })

/**
 * The visibility of token events: the owner of the token sees its events, and so do callers who may
 * read the tokens of the owner.
 */
export const tokenSight: Sight = {
  lists: operations.listTokens,
  records: {
    table: 'tokens',
    deleted: 'user.token.delete',
    inSight(ctx) {
      const ids = tokenRows(ctx).clearSelect().select('tokens.id')
      if (!ctx.user) return ids
      return mayReadOthers(ctx)
        ? manageableTokens(ctx).clearSelect().select('tokens.id')
        : ids.where('tokens.user_id', '=', ctx.user.id)
    },
    wasInSight(ctx) {
      if (!ctx.user) return always
      const isOwn = sql<SqlBool>`known.owner_id = ${ctx.user.id}`
      return mayReadOthers(ctx) ? sql<SqlBool>`(${isOwn} or ${visible(ctx, 'known.owner_id')})` : isOwn
    },
  },
}

/**
 * Returns a token. Throws 404 when the caller may not manage it. Throws 403 for a token of another
 * user when the caller lacks `ability`.
 */
async function find(ctx: Context, id: number, ability?: 'users:read' | 'users:write') {
  const row = await manageableTokens(ctx).where('tokens.id', '=', id).executeTakeFirst()
  if (!row) throw notFound('token', id)
  if (ability && row.user_id !== requireUser(ctx).id) assertCanCall(ctx, { permission: othersKey, ability })
  return row
}

/**
 * The check for API paths below `/tokens/{id}`: throws 404 for a token that the caller may not
 * manage.
 */
export const tokens = {
  assertVisible: async (ctx: Context, id: number): Promise<void> => {
    await find(ctx, id)
  },
}

const listTokens: Handler<'listTokens'> = async (ctx, { query }) => {
  const own = requireUser(ctx).id
  if (query.user_id?.some((id) => id !== own)) assertCanCall(ctx, { permission: othersKey, ability: 'users:read' })
  let rows = manageableTokens(ctx)
  // Without `user_id` the list contains only the caller's tokens.
  if (query.user_id === undefined) rows = rows.where('tokens.user_id', '=', own)
  for (const condition of conditions(ctx, query, fields, [{ key: 'tokens.name_key' }])) rows = rows.where(condition)
  const { rows: shown, links, meta } = await page(ctx, rows, query, sort, 'tokens.id')
  return { data: shown.map(presentToken), links, meta }
}

const getToken: Handler<'getToken'> = async (ctx, { params }) => ({
  data: presentToken(await find(ctx, params.id, 'users:read')),
  meta: { deprecated_uses: await deprecatedUsesOf(ctx, params.id) },
})

const createToken: Handler<'createToken'> = async (ctx, { body }) => {
  const abilities = [...new Set(body.abilities ?? ['*'])]
  const sent = [...new Set(body.allowed_ips ?? [])]
  // A calling token that is limited to networks passes this limit on to the new token.
  const allowedIps = sent.length > 0 ? sent : (ctx.token?.allowedIps ?? [])
  const errors = new ValidationErrors()
  checkCreation(ctx, body, errors)
  errors.throwIfAny()
  const wanted = expiryOf(ctx, body)
  if (wanted === null && !hasPermission(ctx, othersKey)) throw forbidden(othersKey)
  const expiresAt = earliest(wanted, ctx.token?.expiresAt ?? null)
  const own = ctx.token?.abilities ?? (ctx.session ? ['*'] : [])
  const beyond = abilities.find((ability) => !covers(own, ability))
  if (beyond !== undefined)
    throw new Problem('forbidden', `This token lacks the ability ${beyond}, so it cannot pass it on.`, {
      required: beyond,
    })

  const userId = requireUser(ctx).id
  let secret = ''
  let row: Awaited<ReturnType<typeof find>> | undefined
  await transaction(ctx, async (ctx) => {
    await confirmCaller(ctx)
    await write(ctx, 'user.token.create', { entity: 'tokens', input: body }, async (ctx) => {
      await refuseTooMany(ctx, userId)
      const parentId = ctx.token?.id ?? null
      const token = { userId, name: body.name, kind: 'personal', parentId, abilities, expiresAt, allowedIps } as const
      const issued = await issueToken(ctx.db, token, now(ctx))
      secret = issued.text
      row = await tokenRows(ctx).where('tokens.id', '=', issued.id).executeTakeFirstOrThrow()
      return { id: issued.id, entity: { ...presentToken(row) } }
    })
  })
  if (!row) throw new Error('The token was issued but not read.')
  return {
    data: { ...presentToken(row), token: secret },
    message: 'Token created. Keep it now; it is not shown again.',
  }
}

/** Returns the earlier of two expiry times. A null time means that the token never expires. */
const earliest = (a: string | null, b: string | null): string | null =>
  a === null || b === null ? (a ?? b) : a < b ? a : b

const daysFrom = (ctx: Context, days: number): string => daysAfter(ctx.time, days)

/** Returns the requested expiry time; null when the token never expires. */
const expiryOf = (ctx: Context, { expires_at, expires_in_days }: Body<'createToken'>): string | null => {
  if (expires_at !== undefined) return expires_at
  return expires_in_days === null ? null : daysFrom(ctx, expires_in_days ?? defaultDays)
}

/**
 * Returns the validation errors of the fields that passed the schema. `refused` names the fields
 * that failed the schema.
 */
export const examineCreation: Examine = async (ctx, { body }, refused) => {
  const errors = new ValidationErrors(refused)
  checkCreation(ctx, body as Body<'createToken'>, errors)
  return errors.all
}

/** Checks a new token against the rules that the schema does not cover, and adds the errors. */
function checkCreation(ctx: Context, body: Body<'createToken'>, errors: ValidationErrors): void {
  for (const [index, ability] of (body.abilities ?? []).entries()) {
    if (!knownAbilities.includes(ability))
      errors.invalid(`abilities.${index}`, `Unknown ability.${didYouMean(ability, knownAbilities)}`)
  }
  const reach = ctx.token?.allowedIps ?? []
  for (const [index, network] of (body.allowed_ips ?? []).entries()) {
    if (!isNetwork(network))
      errors.invalid(`allowed_ips.${index}`, 'Must be an address or a CIDR range such as 10.0.0.0/8.')
    else if (reach.length > 0 && !isSubnetOf(network, reach))
      errors.invalid(`allowed_ips.${index}`, `Must lie within ${reach.join(', ')}, where this token may be used from.`)
  }
  const { expires_at, expires_in_days } = body
  if (expires_at !== undefined && expires_in_days !== undefined)
    errors.invalid('expires_in_days', 'Send either expires_at or expires_in_days.')
  else if (typeof expires_at === 'string') {
    if (expires_at <= now(ctx)) errors.invalid('expires_at', 'Must be in the future.')
    else if (expires_at > daysFrom(ctx, maxDays)) errors.invalid('expires_at', `Must be within ${maxDays} days.`)
  }
}

async function refuseTooMany(ctx: Context, userId: number): Promise<void> {
  const { count } = await ctx.db
    .selectFrom('tokens')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('user_id', '=', userId)
    .where('kind', '=', 'personal')
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now(ctx))]))
    .executeTakeFirstOrThrow()
  if (Number(count) >= maxTokens)
    throw new Problem(
      'state_conflict',
      `You have ${maxTokens} personal tokens, which is the maximum; revoke one first.`,
    )
}

const deleteToken: Handler<'deleteToken'> = (ctx, { params }) =>
  transaction(ctx, async (ctx) => {
    const { id, user_id } = await find(ctx, params.id, 'users:write')
    if (user_id !== requireUser(ctx).id) await requireAuthorityOverId(ctx, user_id)
    await revokeTokens(ctx, [id])
    return { message: 'Token revoked.' }
  })

export const handlers = {
  listTokens,
  getToken,
  createToken,
  deleteToken,
} satisfies Partial<Handlers>
