// Reads and changes the links between records and tags, including `tag_ids` of a
// request body. Each link is a separate write with its own pair of events, after the events of the
// record.
import { type AliasedRawBuilder, type Kysely, sql } from 'kysely'
import { type Bound, cachedQuery } from '../../../db/cached-query.ts'
import type { Db } from '../../../db/store.ts'
import type { Schema } from '../../contract/types.ts'
import { isBeingRemoved, type RecordChange } from '../../jobs/removals.ts'
import { type Context, now } from '../../kernel/context.ts'
import type { ValidationErrors } from '../../kernel/errors.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import { write } from '../../kernel/write/write.ts'

/**
 * For each taggable resource: the link table, its column with the id of the record, and the prefix
 * of the event names.
 */
const taggable = {
  leads: { table: 'lead_tags', column: 'lead_id', event: 'leads.tag' },
  persons: { table: 'person_tags', column: 'person_id', event: 'persons.tag' },
  organizations: { table: 'organization_tags', column: 'organization_id', event: 'organizations.tag' },
  products: { table: 'product_tags', column: 'product_id', event: 'products.tag' },
  warehouses: { table: 'warehouse_tags', column: 'warehouse_id', event: 'warehouses.tag' },
  quotes: { table: 'quote_tags', column: 'quote_id', event: 'quotes.tag' },
  emails: { table: 'email_tags', column: 'email_id', event: 'emails.tag' },
} as const

export type Taggable = keyof typeof taggable
// biome-ignore lint/suspicious/noExplicitAny: one of seven link tables that have the same columns
type AnyLinks = Kysely<any>

function mapTaggable<T>(make: (links: (typeof taggable)[Taggable]) => T): Record<Taggable, T> {
  const entries = Object.entries(taggable).map(([entity, links]) => [entity, make(links)])
  return Object.fromEntries(entries) as Record<Taggable, T>
}

type TagRef = Schema<'TagRef'>

/**
 * Returns a query for the tags of records of the resource, sorted by name. The caller adds the
 * condition on the record.
 */
const linked = (db: Db, entity: Taggable) =>
  (db as unknown as AnyLinks)
    .selectFrom(`${taggable[entity].table} as link`)
    .innerJoin('tags', 'tags.id', 'link.tag_id')
    .select(['tags.id', 'tags.name', 'tags.color'])
    .orderBy('tags.name_key')

export const tagsOf = (ctx: Context, entity: Taggable, id: number): Promise<TagRef[]> =>
  linked(ctx.db, entity).where(`link.${taggable[entity].column}`, '=', id).execute()

/**
 * Returns a column for a query of taggable records: the tags of each row as JSON. `readTags` parses
 * the JSON.
 */
export const tagsIn = ({ services }: SqlCaller, db: Db, entity: Taggable): AliasedRawBuilder<string, 'tags'> =>
  services.store.dialect
    .jsonRows(linked(db, entity).whereRef(`link.${taggable[entity].column}`, '=', `${entity}.id`))
    .as('tags')

export const readTags = (stored: string): TagRef[] => JSON.parse(stored)

/** Adds a validation error for each id in `tag_ids` that belongs to no tag. */
export async function checkTagIds(
  ctx: Context,
  errors: ValidationErrors,
  ids: readonly number[] | undefined,
): Promise<void> {
  if (!ids || ids.length === 0) return
  const known = new Set((await tagRefs(ctx, [...new Set(ids)])).map(({ id }) => id))
  for (const [index, id] of ids.entries())
    if (!known.has(id)) errors.invalid(`tag_ids.${index}`, `No tag has id ${id}.`)
}

/**
 * Replaces the tags of a record with the tags `ids`. `isNew` means that the record has no tags yet,
 * which saves a query.
 */
export async function setTags(
  ctx: Context,
  entity: Taggable,
  id: number,
  ids: readonly number[] | undefined,
  isNew = false,
): Promise<void> {
  if (!ids) return
  const present = isNew ? [] : await tagsOf(ctx, entity, id)
  const wanted = new Set(ids)
  const removed = present.filter((tag) => !wanted.has(tag.id))
  const added = [...wanted].filter((tagId) => !present.some((tag) => tag.id === tagId))
  for (const tag of removed) await unlinkTag(ctx, entity, id, tag)
  const tags = new Map((await tagRefs(ctx, added)).map((tag) => [tag.id, tag]))
  for (const tagId of added) await linkTag(ctx, entity, id, tagId, tags.get(tagId))
}

/** Returns those of the tags that can be attached. A tag that a job is removing cannot. */
export const tagRefs = (ctx: Context, ids: readonly number[]): Promise<TagRef[]> => attachable(ctx.db, ids)

const attachable = cachedQuery((db: Db, ids: Bound<number[]>) =>
  db
    .selectFrom('tags')
    .select(['id', 'name', 'color'])
    .where('id', 'in', ids)
    .where(({ not }) => not(isBeingRemoved('tags', 'tags.id'))),
)

const insertLink = mapTaggable(({ table, column }) =>
  cachedQuery((db: Db, id: Bound<number>, tagId: Bound<number>) =>
    (db as unknown as AnyLinks).insertInto(table).values({ [column]: id, tag_id: tagId }),
  ),
)

export async function linkTag(
  ctx: Context,
  entity: Taggable,
  id: number,
  tagId: number,
  tag: TagRef | undefined,
): Promise<void> {
  const { column, event } = taggable[entity]
  await write(
    ctx,
    `${event}.create`,
    { entity, input: { tag_id: tagId }, id, related: { type: 'tags', id: tagId } },
    async (ctx) => {
      await insertLink[entity](ctx.db, id, tagId)
      return { id, entity: { [column]: id, tag_id: tagId, tag } }
    },
  )
}

export async function unlinkTag(ctx: Context, entity: Taggable, id: number, tag: TagRef): Promise<void> {
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

/** Returns the number of records with the tag. */
export async function countTagged({ db }: Context, tagId: number): Promise<number> {
  let count = 0
  for (const { table } of Object.values(taggable)) {
    const { rows } = await sql<{ tagged: number }>`
      select count(*) as tagged from ${sql.table(table)} where tag_id = ${tagId}`.execute(db)
    count += Number(rows[0]?.tagged)
  }
  return count
}

/**
 * Returns changes that detach a tag from up to `limit` records. Each emits one pair
 * of events and increments the version of its record.
 */
export async function detachments(ctx: Context, tag: TagRef, limit: number): Promise<RecordChange[]> {
  const changes: RecordChange[] = []
  for (const entity of Object.keys(taggable) as Taggable[]) {
    const { table, column } = taggable[entity]
    const { rows } = await sql<{ id: number }>`
      select ${sql.ref(column)} as id from ${sql.table(table)} where tag_id = ${tag.id}
      order by 1 limit ${limit - changes.length}`.execute(ctx.db)
    for (const { id } of rows)
      changes.push(async (ctx) => {
        await ctx.db
          .updateTable(entity)
          .set({ version: sql`version + 1`, updated_at: now(ctx) })
          .where('id', '=', id)
          .execute()
        await unlinkTag(ctx, entity, id, tag)
      })
    if (changes.length >= limit) break
  }
  return changes
}
