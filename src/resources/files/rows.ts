// Reads files, converts them to replies, and decides who sees them. An unattached
// upload is visible to the user who uploaded it. An attached file is visible to every user who sees
// its record.
import { type RawBuilder, type Selectable, type SqlBool, sql } from 'kysely'
import { isIn } from '../../../db/long-lists.ts'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import { notFound } from '../../kernel/errors.ts'
import { always, type Sight } from '../../kernel/query/event-visibility.ts'
import type { Rows } from '../../kernel/query/page.ts'

export type FileRow = Selectable<Tables['files']>

/** The record that a file is attached to, such as `{ type: 'activities', id: 7 }`. */
export interface FileOwner {
  type: string
  id: number
}

export const downloadUrl = (ctx: Context, id: number): string => ctx.baseUrl + pathTo(operations.downloadFile, id)

export const presentFile = (ctx: Context, row: FileRow): Schema<'FileRecord'> => ({
  id: row.id,
  name: row.name,
  size: row.size,
  content_type: row.content_type,
  sha256: row.sha256,
  url: downloadUrl(ctx, row.id),
  user_id: row.user_id,
  created_at: row.created_at,
})

export const presentRef = (ctx: Context, row: FileRow): Schema<'FileRef'> => ({
  id: row.id,
  name: row.name,
  size: row.size,
  content_type: row.content_type,
  url: downloadUrl(ctx, row.id),
})

export async function fileRows(ctx: Context, ids: readonly number[]): Promise<FileRow[]> {
  if (ids.length === 0) return []
  return ctx.db
    .selectFrom('files')
    .selectAll()
    .where('id', 'in', [...new Set(ids)])
    .execute()
}

/**
 * Visibility rule for the events of files. A caller who sees a file also sees its events. The
 * events of a deleted file are visible to the user who uploaded the file.
 */
export const fileSight: Sight = {
  lists: operations.getFile,
  records: {
    table: 'files',
    deleted: 'files.delete',
    seen: async (ctx, ids) => new Set((await visibleFiles(ctx, await fileRows(ctx, ids))).map(({ id }) => id)),
    async inSight(ctx) {
      const all = ctx.db.selectFrom('files').select('files.id')
      if (!ctx.user) return all
      const own = sql<SqlBool>`(files.owner_type is null and files.user_id = ${ctx.user.id})`
      const owners = await ctx.db.selectFrom('files').select('owner_type').distinct().execute()
      const attached: RawBuilder<SqlBool>[] = []
      for (const { owner_type: type } of owners) {
        const ids = type === null ? 'none' : await ownersInSight(ctx, type)
        if (ids === 'none') continue
        const among = ids === 'all' ? always : sql<SqlBool>`files.owner_id in (${ids})`
        attached.push(sql<SqlBool>`(files.owner_type = ${type} and ${among})`)
      }
      return all.where(sql<SqlBool>`(${sql.join([own, ...attached], sql` or `)})`)
    },
    wasInSight: ({ user }) => (user ? sql<SqlBool>`known.owner_id = ${user.id}` : always),
  },
}

/**
 * Returns the subset of `rows` that the caller may see. Runs one query per entity, not per file.
 */
export async function visibleFiles(ctx: Context, rows: readonly FileRow[]): Promise<FileRow[]> {
  if (ctx.user === null) return [...rows]
  const { id: caller } = ctx.user
  const types = [...new Set(rows.flatMap(({ owner_type: type }) => type ?? []))]
  const seen = new Map<string, ReadonlySet<number>>()
  for (const type of types) {
    const ids = rows.flatMap((row) => (row.owner_type === type && row.owner_id !== null ? [row.owner_id] : []))
    seen.set(type, await visibleOwners(ctx, type, ids))
  }
  return rows.filter((row) =>
    row.owner_type === null ? row.user_id === caller : (seen.get(row.owner_type)?.has(row.owner_id ?? 0) ?? false),
  )
}

/**
 * Returns a query for the ids of the records whose files the caller may see. Returns 'all' or
 * 'none' when no query is necessary. Permission, ability and visibility decide.
 */
async function ownersInSight(ctx: Context, type: string): Promise<'all' | 'none' | Rows<{ id: number }>> {
  // The only file of a user is the picture. Any reply may contain a user's picture, so no
  // permission is needed.
  if (type === 'users') return 'all'
  if (type === 'configuration') return canCall(ctx, operations.getConfiguration) ? 'all' : 'none'
  const resource = ctx.services.resources.get(type)
  if (!resource || !canCall(ctx, resource.getOperation)) return 'none'
  return resource.withFiles?.(ctx) ?? resource.sight.records.inSight(ctx)
}

/** Returns the subset of record `ids` whose files the caller may see. */
async function visibleOwners(ctx: Context, type: string, ids: readonly number[]): Promise<ReadonlySet<number>> {
  const owners = await ownersInSight(ctx, type)
  if (owners === 'none') return new Set()
  if (owners === 'all') return new Set(ids)
  const resource = ctx.services.resources.get(type)
  if (!resource?.withFiles) return resource?.visibleIds(ctx, ids) ?? new Set()
  const rows = await owners.where(isIn(sql.ref(`${resource.table}.id`), [...ids])).execute()
  return new Set(rows.map(({ id }) => id))
}

/**
 * Returns the row of a file. Throws 404 when the file does not exist or is not visible to the
 * caller.
 */
export async function findFile(ctx: Context, id: number): Promise<FileRow> {
  const [row] = await visibleFiles(ctx, await fileRows(ctx, [id]))
  if (!row) throw notFound('file', id)
  return row
}
