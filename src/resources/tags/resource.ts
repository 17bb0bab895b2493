// Tags for records. All users see all tags. Users without a global view may change
// only their own tags.

import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { all, defineRemoval, refuseWhileRemoved } from '../../jobs/removals.ts'
import { assertCanCall, author, type Context } from '../../kernel/context.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { conditionField, textField, valueField } from '../../kernel/query/filter.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { massDelete } from '../../kernel/resource/mass.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { expandReferences, uniqueName } from '../../kernel/resource/references.ts'
import { textKey } from '../../kernel/values/names.ts'
import { deleteOrDefer } from '../system/jobs.ts'
import { userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { users } from '../users/resource.ts'
import { countTagged, detachments } from './tag-links.ts'

const palette = ['#0E90D9', '#D92D20', '#DC6803', '#039855', '#7A5AF8', '#475467']

const paletteColor = (key: string): string =>
  palette[(createHash('sha256').update(key).digest()[0] ?? 0) % palette.length] ?? '#0E90D9'

export const tags = defineResource({
  noun: 'tag',
  table: 'tags',
  externalIds: { table: 'tag_external_ids', column: 'tag_id' },
  namedBy: { keys: { name: nameKey }, isShown: true },
  operations: { list: 'listTags', get: 'getTag', create: 'createTag', update: 'updateTag', delete: 'deleteTag' },
  rows: (_caller, db) =>
    db
      .selectFrom('tags')
      .leftJoin('users', 'users.id', 'tags.user_id')
      .selectAll('tags')
      .select(['users.name as user_name', 'users.email as user_email', 'users.image_file_id as user_image']),
  sort: { id: 'tags.id', name: 'tags.name_key', created_at: 'tags.created_at' },
  filter: {
    name: textField('tags.name_key'),
    // Colors are stored in upper case.
    color: conditionField(
      (wanted) => sql`tags.color in (${sql.join(wanted.map((each) => String(each).toUpperCase()))})`,
    ),
    user_id: valueField('tags.user_id'),
  },
  search: [{ key: 'tags.name_key' }],
  canChange: ({ user }, row) => !user || user.visibleOwners === null || row.user_id === user.id,
  withoutColumn: {},
  toRow: async ({ name, color }, writing) => {
    const { ctx, current } = writing
    const named = await uniqueName(writing, { table: 'tags', entity: 'tags', noun: 'tag' }, name)
    if (current) return { columns: { ...named, color: color?.toUpperCase() } }
    return {
      columns: {
        ...named,
        color: color?.toUpperCase() ?? paletteColor(named.name_key ?? ''),
        user_id: author(ctx)?.id ?? null,
      },
    }
  },
  toReply: (row, ctx): Schema<'Tag'> => ({
    id: row.id,
    name: row.name,
    color: row.color,
    user_id: row.user_id,
    user: userRef(row.user_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image)),
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  loadRelated: (ctx, replies, include) => expandReferences(ctx, replies, include, { user: () => users }),
  beforeDelete: async (ctx, { id, name, color }) => {
    for (const change of await detachments(ctx, { id, name, color }, all)) await change(ctx)
  },
})

/**
 * Returns the id of the tag with this name, and creates the tag when it does not exist. Throws 403
 * when the tag does not exist and the caller may not create tags.
 */
export async function findOrCreateTag(ctx: Context, name: string): Promise<number> {
  const known = await ctx.db.selectFrom('tags').select('id').where('name_key', '=', textKey(name)).executeTakeFirst()
  if (known) {
    await refuseWhileRemoved(ctx, 'tags', known.id)
    return known.id
  }
  assertCanCall(ctx, 'createTag')
  return (await tags.create(ctx, { name })).id
}

/** Detaches a tag from many records and then deletes it. */
export const tagRemoval = defineRemoval<object>({
  kind: 'tags.remove',
  entity: 'tags',
  noun: 'tag',
  operation: () => 'deleteTag',
  count: (ctx, id) => countTagged(ctx, id),
  async pending(ctx, id, _request, limit) {
    const tag = await ctx.db.selectFrom('tags').select(['id', 'name', 'color']).where('id', '=', id).executeTakeFirst()
    return tag ? detachments(ctx, tag, limit) : []
  },
  finish: (ctx, id) => tags.remove(ctx, id),
})

const startRemoval = async (ctx: Context, id: number, replacement?: number): Promise<number | null> => {
  await tags.assertVisible(ctx, id)
  return tagRemoval.startDeletion(ctx, id, {}, replacement)
}

export const handlers = {
  deleteTag: deleteOrDefer(
    startRemoval,
    tags.handlers.deleteTag,
    'The tag is detached from all records and then deleted.',
  ),
  massDeleteTags: massDelete(tags, { defer: startRemoval }),
} satisfies Partial<Handlers>
