// Files as rows, who sees one (DOMAIN 16), and how it is shown. An upload is its uploader's until it belongs to a record; then
// whoever sees the record sees it.
import type { Selectable } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, may } from '../../kernel/context.ts'
import { notFound } from '../../kernel/errors.ts'

export type FileRow = Selectable<Tables['files']>

/** The record a file belongs to: `activities`, 7. */
export interface Owner {
  type: string
  id: number
}

export const urlOf = (ctx: Context, id: number): string => ctx.base + pathTo(operations.downloadFile, id)

export const presentFile = (ctx: Context, row: FileRow): Schema<'File'> => ({
  id: row.id,
  name: row.name,
  size: row.size,
  content_type: row.content_type,
  sha256: row.sha256,
  url: urlOf(ctx, row.id),
  user_id: row.user_id,
  created_at: row.created_at,
})

export const presentRef = (ctx: Context, row: FileRow): Schema<'FileRef'> => ({
  id: row.id,
  name: row.name,
  size: row.size,
  content_type: row.content_type,
  url: urlOf(ctx, row.id),
})

export async function rowsOf(ctx: Context, ids: readonly number[]): Promise<FileRow[]> {
  if (ids.length === 0) return []
  return ctx.db
    .selectFrom('files')
    .selectAll()
    .where('id', 'in', [...new Set(ids)])
    .execute()
}

/** Those that the caller sees, with one question for all files of records of one kind. */
export async function visibleOf(ctx: Context, rows: readonly FileRow[]): Promise<FileRow[]> {
  if (ctx.user === null) return [...rows]
  const { id: caller } = ctx.user
  const types = [...new Set(rows.flatMap(({ owner_type: type }) => type ?? []))]
  const seen = new Map<string, ReadonlySet<number>>()
  for (const type of types) {
    const ids = rows.flatMap((row) => (row.owner_type === type && row.owner_id !== null ? [row.owner_id] : []))
    seen.set(type, await seenOwners(ctx, type, ids))
  }
  return rows.filter((row) =>
    row.owner_type === null ? row.user_id === caller : (seen.get(row.owner_type)?.has(row.owner_id ?? 0) ?? false),
  )
}

/** Which records of a kind the caller may be shown: by permission, ability and sight. */
async function seenOwners(ctx: Context, type: string, ids: readonly number[]): Promise<ReadonlySet<number>> {
  // A user is named, with the picture, wherever a record is: that asks for no permission (DOMAIN 7.4).
  if (type === 'users') return new Set(ids)
  if (type === 'configuration') return may(ctx, operations.getConfiguration) ? new Set(ids) : new Set()
  const resource = ctx.services.resources.get(type)
  if (!resource || !may(ctx, resource.shows)) return new Set()
  return resource.seenFiles ? resource.seenFiles(ctx, ids) : resource.seen(ctx, ids)
}

/** Throws 404 for a file that does not exist or is out of the caller's sight. */
export async function findFile(ctx: Context, id: number): Promise<FileRow> {
  const [row] = await visibleOf(ctx, await rowsOf(ctx, [id]))
  if (!row) throw notFound('file', id)
  return row
}
