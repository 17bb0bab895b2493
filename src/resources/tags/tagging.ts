// Tags on records (DOMAIN 9.6): the same list, attach and detach for every taggable resource, and `tag_ids` in bodies. Each
// link is a write of its own, with the events of its resource, after the record's own pair.
import { type AliasedRawBuilder, type Kysely, sql } from 'kysely'
import type { Db } from '../../../db/store.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { notFound, Problem, ValidationErrors } from '../../kernel/errors.ts'
import { queryByIds, queryCached } from '../../kernel/query/statement-cache.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { findOrCreateTag } from './resource.ts'

/** Per taggable resource: its link table, the column of its id there, and the stem of its event names. */
export const taggable = {
  leads: { table: 'lead_tags', column: 'lead_id', event: 'leads.tag' },
  persons: { table: 'person_tags', column: 'person_id', event: 'persons.tag' },
  organizations: { table: 'organization_tags', column: 'organization_id', event: 'organizations.tag' },
  products: { table: 'product_tags', column: 'product_id', event: 'products.tag' },
  warehouses: { table: 'warehouse_tags', column: 'warehouse_id', event: 'warehouses.tag' },
  quotes: { table: 'quote_tags', column: 'quote_id', event: 'quotes.tag' },
  emails: { table: 'email_tags', column: 'email_id', event: 'emails.tag' },
} as const

export type Taggable = keyof typeof taggable
type TagRef = Schema<'TagRef'>
const most = 50

/** Tags by name, of the records that `link` says. */
const linked = (db: Db, entity: Taggable) =>
  // biome-ignore lint/suspicious/noExplicitAny: one of seven tables of links, all of them alike
  (db as unknown as Kysely<any>)
    .selectFrom(`${taggable[entity].table} as link`)
    .innerJoin('tags', 'tags.id', 'link.tag_id')
    .select(['tags.id', 'tags.name', 'tags.color'])
    .orderBy('tags.name_key')

/** The tags of a record. */
const tagsOf = (ctx: Context, entity: Taggable, id: number): Promise<TagRef[]> =>
  queryCached<TagRef>(ctx, {
    name: `tags of ${entity}`,
    values: [id],
    build: () => linked(ctx.db, entity).where(`link.${taggable[entity].column}`, '=', id),
  })

/** A column of a query of taggable records: the tags of each, for `readTags`. */
export const tagsIn = ({ db, services }: Context, entity: Taggable): AliasedRawBuilder<string, 'tags'> =>
  services.store.dialect
    .jsonRows(linked(db, entity).whereRef(`link.${taggable[entity].column}`, '=', `${entity}.id`))
    .as('tags')

export const readTags = (stored: string): TagRef[] => JSON.parse(stored)

/** Finds what is wrong with `tag_ids` of a body. */
export async function checkTagIds(
  ctx: Context,
  found: ValidationErrors,
  ids: readonly number[] | undefined,
): Promise<void> {
  if (!ids || ids.length === 0) return
  const known = new Set((await tagRefs(ctx, [...new Set(ids)])).map(({ id }) => id))
  for (const [index, id] of ids.entries()) if (!known.has(id)) found.invalid(`tag_ids.${index}`, `No tag has id ${id}.`)
}

/** Makes `ids` the complete set of tags of a record, which has none yet when it is new. True when something changed. */
export async function setTags(
  ctx: Context,
  entity: Taggable,
  id: number,
  ids: readonly number[] | undefined,
  isNew = false,
): Promise<boolean> {
  if (!ids) return false
  const present = isNew ? [] : await tagsOf(ctx, entity, id)
  const wanted = new Set(ids)
  const removed = present.filter((tag) => !wanted.has(tag.id))
  const added = [...wanted].filter((tagId) => !present.some((tag) => tag.id === tagId))
  for (const tag of removed) await unlink(ctx, entity, id, tag)
  const tags = new Map((await tagRefs(ctx, added)).map((tag) => [tag.id, tag]))
  for (const tagId of added) await link(ctx, entity, id, tagId, tags.get(tagId))
  return removed.length + added.length > 0
}

const tagRefs = (ctx: Context, ids: readonly number[]): Promise<TagRef[]> =>
  queryByIds(
    ctx,
    'tags: some',
    ids,
    (ids) => ctx.db.selectFrom('tags').select(['id', 'name', 'color']).where('id', 'in', ids),
    true,
  )

async function link(ctx: Context, entity: Taggable, id: number, tagId: number, tag: TagRef | undefined): Promise<void> {
  const { table, column, event } = taggable[entity]
  await write(
    ctx,
    `${event}.create`,
    { entity, input: { tag_id: tagId }, id, related: { type: 'tags', id: tagId } },
    async (ctx) => {
      const insertion = sql`insert into ${sql.table(table)} (${sql.ref(column)}, tag_id) values (${id}, ${tagId})`
      await queryCached(ctx, {
        name: `tags: link ${entity}`,
        values: [id, tagId],
        build: () => ({ compile: () => insertion.compile(ctx.db) }),
      })
      return { id, entity: { [column]: id, tag_id: tagId, tag } }
    },
  )
}

async function unlink(ctx: Context, entity: Taggable, id: number, tag: TagRef): Promise<void> {
  const { table, column, event } = taggable[entity]
  const before = { [column]: id, tag_id: tag.id, tag }
  await write(
    ctx,
    `${event}.delete`,
    { entity, input: {}, id, before, related: { type: 'tags', id: tag.id } },
    async (ctx) => {
      await sql`delete from ${sql.table(table)} where ${sql.ref(column)} = ${id} and tag_id = ${tag.id}`.execute(ctx.db)
      return { id, entity: null }
    },
  )
}

/** Takes a tag off every record, with one event each (DOMAIN 15.2); the records change with it. */
export async function detachEverywhere(ctx: Context, tag: { id: number; name: string; color: string }): Promise<void> {
  for (const entity of Object.keys(taggable) as Taggable[]) {
    const { table, column } = taggable[entity]
    const { rows } = await sql<{
      id: number
    }>`select ${sql.ref(column)} as id from ${sql.table(table)} where tag_id = ${tag.id} order by 1`.execute(ctx.db)
    if (rows.length === 0) continue
    await ctx.db
      .updateTable(entity)
      .set({ version: sql`version + 1`, updated_at: now(ctx) })
      .where(
        'id',
        'in',
        rows.map(({ id }) => id),
      )
      .execute()
    for (const { id } of rows) await unlink(ctx, entity, id, { id: tag.id, name: tag.name, color: tag.color })
  }
}

type Target = Pick<Resource<unknown, never>, 'assertVisible' | 'touch'>
interface Attach {
  params: { id: number }
  body: Schema<'TagAttach'>
}

/** The three handlers of a taggable resource. */
export function tagging(entity: Taggable, target: Target) {
  return {
    list: async (ctx: Context, { params }: { params: { id: number } }) => {
      await target.assertVisible(ctx, params.id)
      return { data: await tagsOf(ctx, entity, params.id) }
    },
    attach: (ctx: Context, { params, body }: Attach) =>
      transaction(ctx, async (ctx) => {
        await target.assertVisible(ctx, params.id)
        const tagId = await namedTag(ctx, body)
        const present = await tagsOf(ctx, entity, params.id)
        if (!present.some((tag) => tag.id === tagId)) {
          if (present.length >= most) throw new Problem('state_conflict', `A record has at most ${most} tags.`)
          await link(ctx, entity, params.id, tagId, (await tagRefs(ctx, [tagId]))[0])
          await target.touch(ctx, params.id)
        }
        return { data: await tagsOf(ctx, entity, params.id), message: 'Tag attached.' }
      }),
    detach: (ctx: Context, { params }: { params: { id: number; tag_id: number } }) =>
      transaction(ctx, async (ctx) => {
        await target.assertVisible(ctx, params.id)
        const tag = (await tagsOf(ctx, entity, params.id)).find(({ id }) => id === params.tag_id)
        if (!tag) throw notFound('attached tag', params.tag_id)
        await unlink(ctx, entity, params.id, tag)
        await target.touch(ctx, params.id)
        return { message: 'Tag detached.' }
      }),
  }
}

async function namedTag(ctx: Context, body: Schema<'TagAttach'>): Promise<number> {
  if (!('tag_id' in body)) return findOrCreateTag(ctx, body.name)
  const found = new ValidationErrors()
  const known = await ctx.db.selectFrom('tags').select('id').where('id', '=', body.tag_id).executeTakeFirst()
  if (!known) found.invalid('tag_id', `No tag has id ${body.tag_id}.`)
  found.throwIfAny()
  return body.tag_id
}
