// Saved views: conditions on the records of a type, which lists, boards, exports and campaigns use
// by the id of the view. A view names records as a query parameter does, so it does not keep them
// from being deleted.
import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { assertCanCall, type Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { rulesNaming } from '../../kernel/history/stored-references.ts'
import { always } from '../../kernel/query/event-visibility.ts'
import { linkedField, textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { checkReferences } from '../../kernel/resource/references.ts'
import { textKey } from '../../kernel/values/names.ts'
import { groups } from '../groups/resource.ts'
import { resolveOwnerId, userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { groupsOfViews, saveGroups } from './groups.ts'
import { asAdministrator, isInSight, seesAllViews } from './sight.ts'
import { readWhere } from './where.ts'

type Type = Schema<'ViewType'>
type Row = { id: number; name_key: string; type: string; where: string; user_id: number | null }

export const views = defineResource({
  noun: 'view',
  table: 'saved_views',
  operations: { list: 'listViews', get: 'getView', create: 'createView', update: 'updateView', delete: 'deleteView' },
  rows: (ctx, db) =>
    db
      .selectFrom('saved_views')
      .leftJoin('users', 'users.id', 'saved_views.user_id')
      .selectAll('saved_views')
      .select(['users.name as user_name', 'users.email as user_email', 'users.image_file_id as user_image'])
      .where(isInSight(ctx)),
  sort: { id: 'saved_views.id', name: 'saved_views.name_key', created_at: 'saved_views.created_at' },
  filter: {
    name: textField('saved_views.name_key'),
    type: valueField('saved_views.type'),
    user_id: valueField('saved_views.user_id'),
    group_id: linkedField('saved_view_groups', 'saved_views.id', 'saved_view_id', 'group_id'),
  },
  search: [{ key: 'saved_views.name_key' }],
  // Members of the groups see the view, so a 404 would mislead them.
  canChange: (ctx, { id, user_id }) => {
    if (seesAllViews(ctx) || user_id === ctx.user?.id) return true
    throw new Problem('forbidden', `Only the owner of view ${id} may change or delete it.`)
  },
  withoutColumn: { group_ids: 'links' },
  toRow: async (body, writing) => {
    const { name, where, group_ids } = body
    const { current, errors } = writing
    if (current && body.type !== undefined && body.type !== current.type)
      errors.invalid('type', 'A view keeps its type; save another view.')
    // The schema may have refused the type of a new view.
    const type = current ? (current.type as Type) : body.type
    const user_id = await resolveOwnerId(writing, body.user_id)
    const owner = user_id === undefined ? (current?.user_id ?? null) : user_id
    if (name !== undefined && type !== undefined) await checkName(writing, { name, type, owner })
    await checkReferences(writing, 'group_ids', group_ids, groups)
    const conditions = where === undefined || !type ? undefined : await checkWhere(writing, type, where)
    return {
      columns: {
        ...(name !== undefined && { name, name_key: textKey(name) }),
        ...(!current && { type }),
        ...(conditions !== undefined && { where: conditions }),
        user_id,
      },
      save: (ctx, id) => saveGroups(ctx, id, group_ids),
    }
  },
  toReply: (row, ctx): Schema<'View'> => ({
    id: row.id,
    name: row.name,
    type: row.type as Type,
    where: JSON.parse(row.where),
    user_id: row.user_id,
    user: userRef(row.user_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
    group_ids: [],
    groups: [],
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  loadRelated: async (ctx, replies) => {
    const shared = await groupsOfViews(
      ctx,
      replies.map(({ id }) => id),
    )
    for (const reply of replies) {
      reply.groups = shared.get(reply.id) ?? []
      reply.group_ids = reply.groups.map(({ id }) => id)
    }
  },
  wasInSight: (ctx) => (seesAllViews(ctx) ? always : sql`known.owner_id = ${ctx.user?.id ?? 0}`),
})

/** Adds an error when another view of the owner has the name and the type. */
async function checkName(
  { ctx, current, errors }: Writing<Row>,
  { name, type, owner }: { name: string; type: Type; owner: number | null },
): Promise<void> {
  // Others may not learn which views an owner has.
  if (!seesAllViews(ctx) && owner !== ctx.user?.id) return
  const other = await ctx.db
    .selectFrom('saved_views')
    .select('id')
    .where('name_key', '=', textKey(name))
    .where('type', '=', type)
    .where('user_id', owner === null ? 'is' : '=', owner)
    .where('id', '<>', current?.id ?? 0)
    .executeTakeFirst()
  if (other) errors.taken('name', 'views', other.id, 'Another view of the owner has this name.')
}

/** Returns the conditions as stored, and adds their errors. */
async function checkWhere(
  { ctx, current, errors }: Writing<Row>,
  type: Type,
  sent: unknown,
): Promise<string | undefined> {
  if (errors.isRefused('where')) return undefined
  const read = await readWhere(ctx, type, sent)
  for (const [field, sentences] of Object.entries(read.errors))
    for (const sentence of sentences) errors.invalid(field, sentence)
  const conditions = JSON.stringify(read.value)
  if (current && conditions !== current.where) await checkRules(ctx, current.id)
  return conditions
}

/**
 * Throws 403 when a campaign uses the view and the caller could not give the campaign another
 * audience. Without this, the owner of a view could decide who gets the e-mails of others.
 */
async function checkRules(ctx: Context, id: number): Promise<void> {
  if ((await rulesNaming(ctx, { entity: 'views', id })).length === 0) return
  assertCanCall(ctx, 'updateCampaign')
  if ((ctx.user?.visibleOwners ?? null) !== null)
    throw new Problem('forbidden', 'A campaign uses this view; only a user who sees all persons can change it.')
}

/** Transfers the views of a deleted user, which the caller may not see. */
export const inheritedViews = {
  table: views.table,
  update: (ctx: Context, id: number, owner: { user_id?: number | null }) =>
    views.update(asAdministrator(ctx), id, owner),
}
