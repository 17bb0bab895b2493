// Roles, which give users their permissions. Callers cannot grant more
// permissions than their own role has. No change may leave the installation without an active user
// who has all permissions.
import { sql } from 'kysely'
import type { Body, Schema } from '../../contract/types.ts'
import { permissionTree, withAncestors } from '../../kernel/auth/permissions.ts'
import { withCurrentCaller } from '../../kernel/auth/tokens.ts'
import type { Context } from '../../kernel/context.ts'
import { inUse, isProtected } from '../../kernel/errors.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { textField, valueField } from '../../kernel/query/filter.ts'
import { canSeeOwner, visible } from '../../kernel/query/visibility.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { uniqueName } from '../../kernel/resource/references.ts'
import { requireHoldersWithinView } from '../users/view-ceiling.ts'
import { type Grants, grantedKeys, isFullAccessHeldBeside, requirePermissionsOf } from './permission-ceiling.ts'

type Current = Grants & { id: number; name: string }
const ownKey = 'settings.user.roles.edit'

export const roles = defineResource({
  noun: 'role',
  table: 'roles',
  externalIds: { table: 'role_external_ids', column: 'role_id' },
  namedBy: { keys: { name: nameKey } },
  operations: { list: 'listRoles', get: 'getRole', create: 'createRole', update: 'updateRole', delete: 'deleteRole' },
  rows: (ctx, db) =>
    db
      .selectFrom('roles')
      .selectAll('roles')
      .select(
        sql<number>`(select count(*) from users where users.role_id = roles.id and ${visible(ctx, 'users.id')})`.as(
          'users_count',
        ),
      ),
  sort: { id: 'roles.id', name: 'roles.name_key', created_at: 'roles.created_at' },
  filter: { name: textField('roles.name_key'), permission_type: valueField('roles.permission_type') },
  search: [{ key: 'roles.name_key' }, { text: 'roles.description' }],
  governs: ['permission_type'],
  withoutColumn: {},
  toRow: async (body, writing) => {
    const { current, errors } = writing
    const ctx = await withCurrentCaller(writing.ctx)
    const named = await uniqueName(writing, { table: 'roles', entity: 'roles', noun: 'role' }, body.name)
    const granted = grantsOf(body, current)
    if (!errors.any) {
      checkCeiling(ctx, body, current, granted)
      if (current && isRegranted(current, granted)) await requireHoldersWithinView(ctx, current.id)
      if (current) await checkLockOut(ctx, current, granted)
    }
    return { columns: { ...named, description: body.description, ...granted } }
  },
  toReply: (row): Schema<'Role'> => ({
    id: row.id,
    name: row.name,
    description: row.description,
    permission_type: row.permission_type as Schema<'Role'>['permission_type'],
    permissions: row.permission_type === 'all' ? null : (grantedKeys(row) as Schema<'PermissionKey'>[]),
    users_count: Number(row.users_count),
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  beforeExternalIds: async (ctx, row) => requirePermissionsOf(await withCurrentCaller(ctx), row),
  beforeDelete: async (ctx, row) => {
    requirePermissionsOf(await withCurrentCaller(ctx), row)
    if (row.id === ctx.user?.roleId) throw isProtected('This is your own role.')
    await refuseUsed(ctx, row)
    await refuseLast(ctx, row)
  },
})

/**
 * Returns the permissions of the role after the write. A role with all permissions stores no list.
 */
function grantsOf(body: Body<'updateRole'>, current: Grants | null): Grants {
  const type = body.permission_type ?? current?.permission_type ?? 'custom'
  if (type === 'all') return { permission_type: type, permissions: null }
  const keys = body.permissions === undefined ? grantedKeys(current ?? { permissions: null }) : (body.permissions ?? [])
  return { permission_type: type, permissions: JSON.stringify(withAncestors(keys)) }
}

const isRegranted = (current: Grants, granted: Grants): boolean =>
  granted.permission_type !== current.permission_type || grantedKeys(granted).join() !== grantedKeys(current).join()

/** Throws 403 when the caller lacks a permission that the role has before or after the change. */
function checkCeiling(
  ctx: Context,
  body: Body<'updateRole'>,
  current: (Current & { description: string | null }) | null,
  granted: Grants,
): void {
  if (current) {
    const renamed = body.name !== undefined && body.name !== current.name
    const described = body.description !== undefined && body.description !== current.description
    if (!renamed && !described && !isRegranted(current, granted)) return
    requirePermissionsOf(ctx, current)
  }
  requirePermissionsOf(ctx, granted)
}

/**
 * Throws 409 when the caller could not undo the change, or when no active user would have all
 * permissions after the change.
 */
async function checkLockOut(ctx: Context, current: Current, granted: Grants): Promise<void> {
  if (granted.permission_type === 'all') return
  const isOwn = current.id === ctx.user?.roleId
  if (isOwn && !grantedKeys(granted).includes(ownKey)) {
    throw isProtected(`This is your own role; without ${ownKey} you could not change it back.`)
  }
  if (current.permission_type === 'all' && !(await isFullAccessHeldBeside(ctx, { role: current.id }))) {
    throw isProtected('No other active user holds every permission.')
  }
}

async function refuseUsed(ctx: Context, role: { id: number; name: string }): Promise<void> {
  const holders = await ctx.db
    .selectFrom('users')
    .select('id')
    .where('role_id', '=', role.id)
    .orderBy('id')
    .limit(20)
    .execute()
  if (holders.length === 0) return
  throw inUse(
    `Users have the role ${role.name}.`,
    holders.map(({ id }) => ({ entity_type: 'users', id: canSeeOwner(ctx, id) ? id : null, field: 'role_id' })),
  )
}

async function refuseLast(ctx: Context, role: Current): Promise<void> {
  if (role.permission_type !== 'all') return
  const other = await ctx.db
    .selectFrom('roles')
    .select('id')
    .where('permission_type', '=', 'all')
    .where('id', '!=', role.id)
    .executeTakeFirst()
  if (!other) throw isProtected(`${role.name} is the last role that holds every permission.`)
}

export const handlers = {
  // The types differ: the contract describes four levels of the tree, and `permissionTree` returns
  // a recursive type.
  listPermissions: async () => ({ data: permissionTree() as object[] as Schema<'Permission'>[] }),
} satisfies Partial<Handlers>
