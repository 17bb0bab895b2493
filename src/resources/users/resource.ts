// Users, who sign in to the CRM. Passwords are hashed before the transaction starts.
// authority.ts decides which users a caller may change; credentials.ts checks passwords.

import { operations } from '../../contract/operations.gen.ts'
import type { Body, Schema } from '../../contract/types.ts'
import { enqueue } from '../../jobs/queue.ts'
import { all, defineRemoval, type RemovalJob } from '../../jobs/removals.ts'
import { withCurrentCaller } from '../../kernel/auth/tokens.ts'
import type { Context } from '../../kernel/context.ts'
import { notFound } from '../../kernel/errors.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import { foldedField, linkedField, textField, valueField } from '../../kernel/query/filter.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { defineResource, type Resource, type Writing } from '../../kernel/resource/define-resource.ts'
import { upsertHandler } from '../../kernel/resource/external-ids.ts'
import { massDelete, massUpdate } from '../../kernel/resource/mass.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { checkReference, checkReferences, expandReferences } from '../../kernel/resource/references.ts'
import { fold } from '../../kernel/values/format.ts'
import { textKey } from '../../kernel/values/names.ts'
import { answering, inSteps } from '../../kernel/write/idempotency.ts'
import { transaction } from '../../kernel/write/write.ts'
import { passwordLink } from '../authentication/password-links.ts'
import { releaseFiles } from '../files/attach.ts'
import { groupsOf, setMembers } from '../groups/members.ts'
import { groups } from '../groups/resource.ts'
import { roles } from '../roles/resource.ts'
import { deferredReply } from '../system/jobs.ts'
import { checkAuthority, checkDeletable, type GovernedUser, requireAuthorityOver } from './authority.ts'
import { checkCredentials, endAccess, passwordHashOf, type WithPasswordHash, withPasswordHash } from './credentials.ts'
import { checkPicture, picturePath, pictureUrl, setPicture } from './picture.ts'
import { checkSuccessor, countOwned, disown, type OwnedResource, ownerChanges } from './reassign.ts'
import { requireOwnGroups, requireWithinView } from './view-ceiling.ts'

type User = Schema<'User'>
type Write = Body<'updateUser'>
type Row = GovernedUser & {
  name: string
  email: string
  role_name: string
  image_file_id: number | null
  created_at: string
  updated_at: string
  version: number
}

const rows = (ctx: SqlCaller, db: Context['db']) =>
  db
    .selectFrom('users')
    .innerJoin('roles', 'roles.id', 'users.role_id')
    .select(['users.id', 'users.name', 'users.email', 'users.is_active', 'users.view_permission', 'users.role_id'])
    .select(['users.image_file_id', 'users.created_at', 'users.updated_at', 'users.version'])
    .select(['roles.name as role_name', 'roles.permission_type', 'roles.permissions'])
    .where(visible(ctx, 'users.id'))

const baseUsers = defineResource({
  noun: 'user',
  table: 'users',
  externalIds: { table: 'user_external_ids', column: 'user_id' },
  namedBy: {
    keys: { name: nameKey, email: { column: 'email_key', keyOf: fold } },
    isShown: true,
  },
  operations: { list: 'listUsers', get: 'getUser', create: 'createUser', update: 'updateUser', delete: 'deleteUser' },
  rows,
  sort: {
    id: 'users.id',
    name: 'users.name_key',
    email: 'users.email_key',
    is_active: 'users.is_active',
    created_at: 'users.created_at',
  },
  filter: {
    name: textField('users.name_key'),
    email: foldedField('users.email_key'),
    is_active: valueField('users.is_active'),
    view_permission: valueField('users.view_permission'),
    role_id: valueField('users.role_id'),
    group_id: linkedField('user_groups', 'users.id', 'user_id', 'group_id'),
  },
  search: [{ key: 'users.name_key' }, { text: 'users.email' }],
  withoutColumn: {
    password: 'other columns',
    password_confirmation: 'this request',
    group_ids: 'links',
    image_file_id: 'links',
  },
  toRow: async (body: WithPasswordHash<Write>, writing) => {
    await checkCredentials(writing, body, writing.current)
    await checkPicture(writing, body.image_file_id)
    const joining = await joiningOf(body, writing)
    checkOwn(body, writing)
    if (!writing.errors.any) await checkStanding(body, writing, joining)
    const { name, email, is_active, view_permission, role_id, password_hash } = body
    const columns = {
      name,
      name_key: name === undefined ? undefined : textKey(name),
      email,
      email_key: email === undefined ? undefined : fold(email),
      is_active: is_active === undefined ? undefined : Number(is_active),
      view_permission,
      role_id,
      password_hash,
    }
    return {
      columns,
      save: async (ctx, id) => {
        await setMembers(ctx, { user_id: id }, body.group_ids)
        await setPicture(ctx, id, body.image_file_id)
        if (is_active === false || password_hash !== undefined) await endAccess(ctx, id)
      },
    }
  },
  toReply: (row, ctx): User => ({
    id: row.id,
    name: row.name,
    email: row.email,
    is_active: row.is_active === 1,
    view_permission: row.view_permission as User['view_permission'],
    role_id: row.role_id,
    role: {
      id: row.role_id,
      name: row.role_name,
      permission_type: row.permission_type as Schema<'RoleRef'>['permission_type'],
    },
    group_ids: [],
    groups: [],
    image: picturePath(row.image_file_id),
    image_url: pictureUrl(ctx, row.image_file_id),
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  loadRelated: async (ctx, replies, include) => {
    const memberships = await groupsOf(
      ctx,
      replies.map(({ id }) => id),
    )
    for (const reply of replies) {
      reply.groups = memberships.get(reply.id) ?? []
      reply.group_ids = reply.groups.map(({ id }) => id)
    }
    await expandReferences(ctx, replies, include, { role: () => roles, groups: () => groups })
  },
  beforeExternalIds: async (ctx, row) => requireAuthorityOver(await withCurrentCaller(ctx), row),
  beforeDelete: async (ctx, row) => {
    await checkDeletable(ctx, row)
    await endAccess(ctx, row.id)
    await disown(ctx, row.id)
    await releaseFiles(ctx, { type: 'users', id: row.id })
  },
})

interface Joining {
  joined: number[]
  /** Whether the user joins or leaves a group. */
  changes: boolean
}

/**
 * Adds a validation error for a role or group that does not exist. Returns how the groups change.
 */
async function joiningOf({ role_id, group_ids }: Write, writing: Writing<Row>): Promise<Joining> {
  const { ctx, current } = writing
  if (role_id !== current?.role_id) await checkReference(writing, 'role_id', role_id, roles)
  if (!group_ids) return { joined: [], changes: false }
  await checkReferences(writing, 'group_ids', group_ids, groups)
  const present = current ? ((await groupsOf(ctx, [current.id])).get(current.id) ?? []) : []
  const before = new Set(present.map(({ id }) => id))
  const joined = [...new Set(group_ids)].filter((id) => !before.has(id))
  const leaves = present.some(({ id }) => !group_ids.includes(id))
  return { joined, changes: leaves || joined.length > 0 }
}

/**
 * Adds a validation error for each field that users may not change here on their own account.
 * Users change their e-mail address and password through `/account`.
 */
function checkOwn(body: Write, { ctx, current, errors }: Writing<Row>): void {
  if (!current || current.id !== ctx.user?.id) return
  for (const field of ['role_id', 'view_permission'] as const) {
    if (body[field] !== undefined && body[field] !== current[field])
      errors.invalid(field, 'You cannot change this on your own account.')
  }
  const inAccount = `Change your own with PUT ${operations.updateAccount.path}, which asks for the current password.`
  if (body.email !== undefined && body.email !== current.email) errors.invalid('email', inAccount)
  if (body.password !== undefined) errors.invalid('password', inAccount)
}

/**
 * Throws 403 when the user, role, view or a joined group exceeds the caller's rights. Throws 409
 * when the change would lock out the caller or the last user with all permissions.
 */
async function checkStanding(
  body: WithPasswordHash<Write>,
  { ctx: outer, current }: Writing<Row>,
  { joined, changes }: Joining,
): Promise<void> {
  const ctx = await withCurrentCaller(outer)
  const { name, email, is_active, view_permission, role_id, password_hash, image_file_id } = body
  const sent = {
    name,
    email,
    is_active: is_active === undefined ? undefined : Number(is_active),
    view_permission,
    role_id,
  }
  const differs = Object.entries(sent).some(
    ([key, each]) => each !== undefined && each !== current?.[key as keyof typeof sent],
  )
  const role =
    role_id === undefined || role_id === current?.role_id
      ? undefined
      : await ctx.db
          .selectFrom('roles')
          .select(['id', 'permission_type', 'permissions'])
          .where('id', '=', role_id)
          .executeTakeFirst()
  await checkAuthority(
    ctx,
    current,
    { is_active, role },
    differs || changes || (password_hash ?? image_file_id) !== undefined,
  )
  await requireOwnGroups(ctx, joined)
  const view = view_permission ?? current?.view_permission ?? 'global'
  if (!current || changes || view !== current.view_permission)
    await requireWithinView(ctx, {
      id: current?.id,
      view_permission: view,
      ...(body.group_ids && { groupIds: body.group_ids }),
    })
}

export const users = {
  ...baseUsers,
  create: async (ctx: Context, body: Write): Promise<User> => baseUsers.create(ctx, await withPasswordHash(ctx, body)),
  add: async (ctx: Context, body: Write): Promise<number> => baseUsers.add(ctx, await withPasswordHash(ctx, body)),
  update: async (ctx: Context, id: number, body: Write): Promise<User> =>
    baseUsers.update(ctx, id, await withPasswordHash(ctx, body)),
} satisfies Resource<User, Write>

/** Creates a user. A user without a password gets an e-mail with a link for choosing one. */
const createUser: Handler<'createUser'> = inSteps(async (ctx, input) => {
  const body = await withPasswordHash(ctx, input.body)
  return answering(ctx, (ctx) => createWithLink(ctx, { ...input, body }))
})

const createWithLink: Handler<'createUser'> = async (ctx, input) => {
  const reply = await baseUsers.handlers.createUser(ctx, input)
  if (input.body.password === undefined) await enqueue(ctx, passwordLink, { user_id: reply.data.id })
  return reply
}

const upsertUser: Handler<'upsertUser'> = upsertHandler(baseUsers, {
  create: 'createUser',
  update: 'updateUser',
  creating: createWithLink,
  updating: baseUsers.handlers.updateUser,
  prepare: passwordHashOf,
})

/** The successor is null when the records of the user get no owner. */
interface Departure {
  successor: number | null
}

/**
 * Returns the removal of users: first the records change their owner, then the user is deleted.
 * `owned` returns the resources whose records have an owner.
 */
export const removalOfUsers = (owned: () => readonly OwnedResource[]): RemovalJob<Departure> =>
  defineRemoval<Departure>({
    kind: 'users.remove',
    entity: 'users',
    noun: 'user',
    operation: () => 'deleteUser',
    count: (ctx, id) => countOwned(ctx, id),
    pending: (ctx, from, { successor: to }, limit) => ownerChanges(ctx, owned(), { from, to, limit }),
    finish: (ctx, id) => baseUsers.remove(ctx, id),
  })

/**
 * Deactivates a user and enqueues the job that deletes the user, if the user has many records.
 * Inactive users cannot sign in or become owners, so they get no new records. Returns null if the
 * user can be deleted at once.
 */
async function startRemoval(
  ctx: Context,
  { startDeletion }: RemovalJob<Departure>,
  id: number,
  { successor, replacement }: Departure & { replacement?: number | undefined },
): Promise<number | null> {
  const jobId = await startDeletion(ctx, id, { successor }, replacement)
  // If-Match names the version of the user before this change.
  if (jobId !== null) await baseUsers.update({ ...ctx, ifMatch: null }, id, { is_active: false })
  return jobId
}

async function findDeletable(ctx: Context, id: number): Promise<void> {
  await baseUsers.assertVisible(ctx, id)
  const user = await rows(ctx, ctx.db).where('users.id', '=', id).executeTakeFirst()
  if (!user) throw notFound('user', id)
  await checkDeletable(ctx, user)
}

/**
 * Deletes a user. With `reassign_to`, the records of the deleted user first get `reassign_to` as
 * their owner.
 */
const deleteUser =
  (owned: () => readonly OwnedResource[], removal: RemovalJob<Departure>): Handler<'deleteUser'> =>
  (ctx, input) =>
    transaction(ctx, async (ctx) => {
      const { id } = input.params
      const successor = input.query.reassign_to ?? null
      await baseUsers.assertVisible(ctx, id)
      if (successor !== null) await checkSuccessor(ctx, id, successor)
      await findDeletable(ctx, id)
      const jobId = await startRemoval(ctx, removal, id, { successor, replacement: input.query.replace_with })
      if (jobId !== null) return deferredReply(ctx, jobId, 'The records change their owner; then the user is deleted.')
      if (successor !== null)
        for (const change of await ownerChanges(ctx, owned(), { from: id, to: successor, limit: all }))
          await change(ctx)
      return baseUsers.handlers.deleteUser(ctx, input)
    })

/** Creates the handlers of users. `owned` is the same as for `removalOfUsers`. */
export const userHandlers = (owned: () => readonly OwnedResource[], removal: RemovalJob<Departure>) =>
  ({
    createUser,
    upsertUser,
    updateUser: async (ctx, input) =>
      baseUsers.handlers.updateUser(ctx, { ...input, body: await withPasswordHash(ctx, input.body) }),
    deleteUser: deleteUser(owned, removal),
    // Hashes the password before the loop over the users: hashing is slow, and with `atomic` all
    // users share one transaction.
    massUpdateUsers: inSteps(async (ctx, { body: { changes, ...body } }) =>
      massUpdate(baseUsers, (ctx, id, is_active: boolean) => baseUsers.update(ctx, id, { is_active }))(ctx, {
        body: changes ? { ...body, changes: await withPasswordHash(ctx, changes) } : body,
      }),
    ),
    massDeleteUsers: massDelete(baseUsers, {
      async defer(ctx, id) {
        await findDeletable(ctx, id)
        return startRemoval(ctx, removal, id, { successor: null })
      },
    }),
  }) satisfies Partial<Handlers>
