// Who is calling: turns a bearer token into a user with permissions and visibility (DOMAIN 6.4, 7). Issues and revokes
// tokens, because the shape of a token's secret is known here and nowhere else. Sessions are in sessions.ts.
import type { Db, Store } from '../../db/open.ts'
import { daysMs, stamp } from './clock.ts'
import type { CallingToken, Services, SignedIn } from './context.ts'
import { Problem } from './errors.ts'
import { mapOf, remembered } from './kept.ts'
import { isAmong } from './networks.ts'
import { digest, isSame, newSecret } from './secrets.ts'
import { ifItCan } from './unavailable.ts'

const headers = { 'www-authenticate': 'Bearer' }
export const unauthenticated = (): Problem => new Problem('unauthenticated', undefined, { headers })
export const inactive = (): Problem => new Problem('account_inactive', undefined, { headers })

const isAllowed = (ip: string, networks: readonly string[]): boolean => networks.length === 0 || isAmong(ip, networks)

export interface NewToken {
  userId: number
  name: string
  kind: 'login' | 'personal'
  abilities: readonly string[]
  expiresAt: string | null
  allowedIps: readonly string[]
}

/** Stores a token and returns its id with the only copy of `<id>|<secret>`. */
export async function issueToken(db: Db, token: NewToken, at: string): Promise<{ id: number; text: string }> {
  const secret = newSecret()
  const { id } = await db
    .insertInto('tokens')
    .values({
      user_id: token.userId,
      name: token.name,
      kind: token.kind,
      abilities: JSON.stringify(token.abilities),
      secret_hash: digest(secret),
      expires_at: token.expiresAt,
      allowed_ips: JSON.stringify(token.allowedIps),
      created_at: at,
      updated_at: at,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return { id, text: `${id}|${secret}` }
}

/** What is asked of a user who calls, and of the role. */
export const callerColumns = [
  'users.id as user_id',
  'users.name',
  'users.email',
  'users.status',
  'users.view_permission',
  'users.role_id',
  'roles.permission_type',
  'roles.permissions',
] as const

/** The user and token behind an Authorization header. Throws 401 `unauthenticated` or `account_inactive`. */
export async function authenticate(
  services: Services,
  authorization: string | undefined,
  ip: string,
): Promise<{ user: SignedIn; token: CallingToken }> {
  const [, idText, secret] = /^Bearer ([1-9]\d{0,15})\|([\w-]{20,100})$/i.exec(authorization?.trim() ?? '') ?? []
  if (!idText || !secret) throw unauthenticated()
  const { store } = services
  const known = await remembered(store, store, `token ${idText}`, () => tokenOf(store, Number(idText)))
  if (!known || !isSame(digest(secret), known.row.secret_hash)) throw unauthenticated()

  const { row, token, user } = known
  const time = services.clock.now()
  const nowMs = time.getTime()
  // What is no time is over.
  if (!(known.expiresMs > nowMs)) throw unauthenticated()
  const idleDays = services.config.tokenIdleDays
  if (idleDays > 0 && !((known.usedMs ?? known.createdMs) >= nowMs - daysMs(idleDays))) throw unauthenticated()
  if (!isAllowed(ip, token.allowedIps)) throw unauthenticated()
  if (row.status !== 1) throw inactive()

  // Written at most once a minute: a write per read would make every request a transaction.
  if (known.usedMs === null || !(known.usedMs >= nowMs - 60_000)) {
    const set = { last_used_at: stamp(time), last_used_ip: ip }
    const used = store.db.updateTable('tokens').set(set).where('id', '=', row.id)
    await ifItCan(() => used.execute())
  }
  return { user, token }
}

/** A token with its user as they are stored; null when there is none. */
async function tokenOf(store: Store, id: number) {
  const row = await store.db
    .selectFrom('tokens')
    .innerJoin('users', 'users.id', 'tokens.user_id')
    .innerJoin('roles', 'roles.id', 'users.role_id')
    .select(['tokens.id', 'tokens.secret_hash', 'tokens.abilities', 'tokens.allowed_ips'])
    .select(['tokens.expires_at', 'tokens.last_used_at', 'tokens.created_at'])
    .select(callerColumns)
    .where('tokens.id', '=', id)
    .executeTakeFirst()
  if (!row) return null
  const allowedIps = JSON.parse(row.allowed_ips) as string[]
  const token: CallingToken = { id: row.id, abilities: JSON.parse(row.abilities) as string[], allowedIps }
  return {
    row,
    token,
    user: await callingUser(store, row),
    expiresMs: row.expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(row.expires_at),
    usedMs: row.last_used_at === null ? null : Date.parse(row.last_used_at),
    createdMs: Date.parse(row.created_at),
  }
}

/** The user behind a row with `callerColumns`. */
export const callingUser = async (store: Store, row: Omit<UserRow, 'id'> & { user_id: number }): Promise<SignedIn> =>
  asBefore(store, await userOf(store.db, { ...row, id: row.user_id }))

const lastSeen = new WeakMap<Store, Map<number, { text: string; user: SignedIn }>>()

/** What is kept for others goes with them. */
const mostUsers = 300

/** The same object as long as nothing about a user changes, because what is kept for a caller hangs on it (kept.ts). */
function asBefore(store: Store, user: SignedIn): SignedIn {
  const users = mapOf(lastSeen, store)
  const { permissions } = user
  const text = JSON.stringify({ ...user, permissions: permissions === 'all' ? permissions : [...permissions] })
  const before = users.get(user.id)
  if (before?.text === text) return before.user
  const [oldest] = users.size >= mostUsers ? users.keys() : []
  if (oldest !== undefined) users.delete(oldest)
  users.set(user.id, { text, user })
  return user
}

/** A user as callers are, for what happens later in the user's name; null for one who is gone or not active. */
export async function signedInAs(db: Db, id: number): Promise<SignedIn | null> {
  const row = await db
    .selectFrom('users')
    .innerJoin('roles', 'roles.id', 'users.role_id')
    .select(['users.id', 'users.name', 'users.email', 'users.view_permission', 'users.role_id'])
    .select(['roles.permission_type', 'roles.permissions'])
    .where('users.id', '=', id)
    .where('users.status', '=', 1)
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

/** A user with permissions and visibility. */
async function userOf(db: Db, row: UserRow): Promise<SignedIn> {
  const viewPermission = row.view_permission as SignedIn['viewPermission']
  return {
    id: row.id,
    name: row.name,
    email: row.email,
    roleId: row.role_id,
    permissions: row.permission_type === 'all' ? 'all' : new Set(JSON.parse(row.permissions ?? '[]') as string[]),
    viewPermission,
    visibleOwners: await visibleOwners(db, row.id, viewPermission),
  }
}

/** Owners whose records a user sees: null for all (DOMAIN 7.4). */
async function visibleOwners(db: Db, userId: number, view: SignedIn['viewPermission']): Promise<number[] | null> {
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

const areas = [
  'leads',
  'persons',
  'organizations',
  'quotes',
  'products',
  'activities',
  'emails',
  'settings',
  'automation',
  'data-transfer',
  'events',
  'reports',
  'files',
  'account',
]

/** Every ability a token can have, for a hint (DOMAIN 6.4). */
export const knownAbilities: readonly string[] = [
  '*',
  '*:read',
  ...areas.flatMap((area) => [`${area}:*`, `${area}:read`, `${area}:write`]),
]

/** Whether abilities cover one: `leads:*` covers `leads:write`, `*:read` covers `leads:read`, and any that reads `any:read`. */
export function covers(abilities: readonly string[], wanted: string): boolean {
  if (abilities.includes('*') || abilities.includes(wanted)) return true
  if (wanted === 'any:read') return abilities.some((each) => /:(read|\*)$/.test(each))
  const [area, verb] = wanted.split(':')
  if (verb === '*')
    return (
      abilities.includes(`${area}:*`) || (abilities.includes(`${area}:read`) && abilities.includes(`${area}:write`))
    )
  return abilities.includes(`${area}:*`) || (verb === 'read' && abilities.includes('*:read'))
}
