// Issues and verifies bearer tokens, and loads the user of a token with permissions and
// visibility. sessions.ts handles sessions.
import type { Db, Store } from '../../../db/store.ts'
import type { CallingToken, Context, CurrentUser, Services } from '../context.ts'
import { Problem } from '../errors.ts'
import { untilNextCommit } from '../query/caller-query.ts'
import { daysMs, stamp } from '../runtime/clock.ts'
import { writeAside } from '../runtime/unavailable.ts'
import { isInRanges } from './ip-ranges.ts'
import { constantTimeEquals, newSecret, sha256Hex } from './secrets.ts'

const headers = { 'www-authenticate': 'Bearer' }
export const unauthenticated = (): Problem => new Problem('unauthenticated', undefined, { headers })
export const inactive = (): Problem => new Problem('account_inactive', undefined, { headers })

const isAllowed = (ip: string, networks: readonly string[]): boolean =>
  networks.length === 0 || isInRanges(ip, networks)

export interface NewToken {
  userId: number
  name: string
  kind: 'login' | 'personal'
  /**
   * The id of the token with which the caller creates this token. The new token expires no later
   * than that token.
   */
  parentId?: number | null
  abilities: readonly string[]
  expiresAt: string | null
  allowedIps: readonly string[]
}

/**
 * Stores a token. Returns its id and its text `<id>|<secret>`. Only the hash of the secret is
 * stored.
 */
export async function issueToken(db: Db, token: NewToken, at: string): Promise<{ id: number; text: string }> {
  const secret = newSecret()
  const { id } = await db
    .insertInto('tokens')
    .values({
      user_id: token.userId,
      name: token.name,
      kind: token.kind,
      parent_id: token.parentId ?? null,
      abilities: JSON.stringify(token.abilities),
      secret_hash: sha256Hex(secret),
      expires_at: token.expiresAt,
      allowed_ips: JSON.stringify(token.allowedIps),
      created_at: at,
      updated_at: at,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return { id, text: `${id}|${secret}` }
}

/** The columns of a caller's user and role. */
export const callerColumns = [
  'users.id as user_id',
  'users.name',
  'users.email',
  'users.is_active',
  'users.view_permission',
  'users.role_id',
  'roles.permission_type',
  'roles.permissions',
] as const

/**
 * Returns the user and the token of an Authorization header. Throws 401 `unauthenticated` for an
 * invalid token and 401 `account_inactive` for an inactive user.
 */
export async function authenticate(
  services: Services,
  authorization: string | undefined,
  ip: string,
): Promise<{ user: CurrentUser; token: CallingToken }> {
  const [, idText, secret] = /^Bearer ([1-9]\d{0,15})\|([\w-]{20,100})$/i.exec(authorization?.trim() ?? '') ?? []
  if (!idText || !secret) throw unauthenticated()
  const { store } = services
  const known = await untilNextCommit(store, `token ${idText}`, () => tokenOf(store, Number(idText)))
  if (!known || !constantTimeEquals(sha256Hex(secret), known.row.secret_hash)) throw unauthenticated()

  const { row, token, user } = known
  const time = services.clock.now()
  const nowMs = time.getTime()
  // An unparsable expiry counts as expired.
  if (!(known.expiresMs > nowMs)) throw unauthenticated()
  const idleDays = services.config.tokenIdleDays
  const activeMs = Math.min(known.usedMs ?? known.createdMs, known.parentsActiveMs)
  if (idleDays > 0 && !(activeMs >= nowMs - daysMs(idleDays))) throw unauthenticated()
  if (!isAllowed(ip, token.allowedIps)) throw unauthenticated()
  if (row.is_active !== 1) throw inactive()

  // The time of the last use is written at most once a minute. Otherwise every read request would
  // cause a write.
  if (known.usedMs === null || !(known.usedMs >= nowMs - 60_000)) {
    const set = { last_used_at: stamp(time), last_used_ip: ip }
    const used = store.db.updateTable('tokens').set(set).where('id', '=', row.id)
    writeAside(services, `token ${row.id}`, () => used.execute())
  }
  return { user, token }
}

/** Returns a token with its user; null when the token does not exist. */
async function tokenOf(store: Store, id: number) {
  const row = await store.db
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .innerJoin('roles', 'roles.id', 'users.role_id')
    .select(['tokens.id', 'tokens.secret_hash', 'tokens.abilities', 'tokens.allowed_ips'])
    .select(['tokens.expires_at', 'tokens.last_used_at', 'tokens.created_at', 'tokens.parent_id'])
    .select(callerColumns)
    .where('tokens.id', '=', id)
    .executeTakeFirst()
  if (!row) return null
  const allowedIps = JSON.parse(row.allowed_ips) as string[]
  const expiresAt = row.expires_at
  const token: CallingToken = { id: row.id, abilities: JSON.parse(row.abilities) as string[], allowedIps, expiresAt }
  return {
    row,
    token,
    user: await userOfCaller(store, row),
    expiresMs: row.expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(row.expires_at),
    usedMs: row.last_used_at === null ? null : Date.parse(row.last_used_at),
    createdMs: Date.parse(row.created_at),
    parentsActiveMs: row.parent_id === null ? Number.POSITIVE_INFINITY : await activeMsOf(store, row.parent_id),
  }
}

/**
 * Returns the earliest time of last use among the token `id` and its ancestors, in milliseconds
 * since 1970.
 */
async function activeMsOf(store: Store, id: number): Promise<number> {
  const line = await store.db
    .withRecursive('line(id, parent_id, last_used_at, created_at)', (db) =>
      db
        .selectFrom('tokens')
        .select(['tokens.id', 'tokens.parent_id', 'tokens.last_used_at', 'tokens.created_at'])
        .where('tokens.id', '=', id)
        .union(
          db
            .selectFrom('tokens')
            .innerJoin('line', 'line.parent_id', 'tokens.id')
            .select(['tokens.id', 'tokens.parent_id', 'tokens.last_used_at', 'tokens.created_at']),
        ),
    )
    .selectFrom('line')
    .select(['last_used_at', 'created_at'])
    .execute()
  return Math.min(...line.map((each) => Date.parse(each.last_used_at ?? each.created_at)))
}

/** Returns the user that a row with `callerColumns` describes. */
export const userOfCaller = (store: Store, row: Omit<UserRow, 'id'> & { user_id: number }): Promise<CurrentUser> =>
  userOf(store.db, { ...row, id: row.user_id })

/**
 * Loads a user for later work in the user's name, such as a job. Returns null when the user was
 * deleted or is inactive.
 */
export async function signedInAs(db: Db, id: number): Promise<CurrentUser | null> {
  const row = await db
    .selectFrom('users')
    .innerJoin('roles', 'roles.id', 'users.role_id')
    .select(['users.id', 'users.name', 'users.email', 'users.view_permission', 'users.role_id'])
    .select(['roles.permission_type', 'roles.permissions'])
    .where('users.id', '=', id)
    .where('users.is_active', '=', 1)
    .executeTakeFirst()
  return row ? userOf(db, row) : null
}

interface UserRow {
  id: number
  name: string
  email: string
  role_id: number
  view_permission: string
  permission_type: string
  permissions: string | null
}

/** Returns the user of a row with permissions and visible owners. */
async function userOf(db: Db, row: UserRow): Promise<CurrentUser> {
  const viewPermission = row.view_permission as CurrentUser['viewPermission']
  return {
    id: row.id,
    name: row.name,
    email: row.email,
    roleId: row.role_id,
    permissions: row.permission_type === 'all' ? 'all' : new Set(JSON.parse(row.permissions ?? '[]') as string[]),
    viewPermission,
    visibleOwners: await visibleOwners(db, row.id, viewPermission),
    seesOwnerless: viewPermission !== 'global' && (await includesOwnerless(db, viewPermission)),
  }
}

/** Returns whether the configuration includes records without an owner in this view. */
async function includesOwnerless(db: Db, view: 'group' | 'individual'): Promise<boolean> {
  const stored = db.selectFrom('core_config').select('value').where('code', '=', 'visibility.ownerless')
  const narrowest: unknown = JSON.parse((await stored.executeTakeFirst())?.value ?? 'null')
  return narrowest === 'individual' || narrowest === view
}

/** Returns the ids of the owners whose records a user sees; null for all owners. */
async function visibleOwners(db: Db, userId: number, view: CurrentUser['viewPermission']): Promise<number[] | null> {
  if (view === 'global') return null
  if (view === 'individual') return [userId]
  const members = await db
    .selectFrom('user_groups as mine')
    .innerJoin('user_groups as theirs', 'theirs.group_id', 'mine.group_id')
    .select('theirs.user_id')
    .distinct()
    .where('mine.user_id', '=', userId)
    .execute()
  return [...new Set([userId, ...members.map((member) => member.user_id)])]
}

/**
 * Returns the ids of the owners whose records a user would see with these groups; null for all
 * owners. `id` is undefined for a user who is not created yet.
 */
export async function visibleOwnersWith(
  db: Db,
  { id, view, groupIds }: { id: number | undefined; view: CurrentUser['viewPermission']; groupIds: readonly number[] },
): Promise<number[] | null> {
  if (view === 'global') return null
  const self = id === undefined ? [] : [id]
  if (view === 'individual' || groupIds.length === 0) return self
  const members = db.selectFrom('user_groups').select('user_id').distinct().where('group_id', 'in', groupIds)
  return [...new Set([...self, ...(await members.execute()).map((member) => member.user_id)])]
}

/**
 * Returns the context with the caller's current rights, which may have changed since the request
 * was authenticated. Throws 401 when the user was deleted or is inactive.
 */
export async function withCurrentCaller(ctx: Context): Promise<Context> {
  if (!ctx.user) return ctx
  const user = await signedInAs(ctx.db, ctx.user.id)
  if (!user) throw inactive()
  return { ...ctx, user }
}
