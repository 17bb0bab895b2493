// Files of records, for every slice that has some: rules for the ids in a body, attaching, and what goes with a record. A file
// that belongs to a record is a child of it: it comes and goes with the events of the record, not with its own.
import type { Schema } from '../../contract/types.ts'
import { author, type Context, now } from '../../kernel/context.ts'
import type { Upload } from '../../kernel/files/file-store.ts'
import { storeUpload } from '../../kernel/files/multipart.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { checkUploadQuota } from './quota.ts'
import { type Owner, presentRef, rowsOf, visibleOf } from './rows.ts'

export type { Owner } from './rows.ts'

/** What a field takes of all files. */
export interface FileLimits {
  /** Media types, as they are found in the content. */
  types?: readonly string[]
  maxBytes?: number
}

type Finding = Pick<Writing<unknown>, 'ctx' | 'found'>

/** The id of what was sent for a file: the id itself, or a FileRef written back (DOMAIN 3.4). */
export function acceptFileRef<Empty extends null | undefined>(sent: number | { id: number } | Empty): number | Empty {
  return typeof sent === 'object' && sent !== null ? sent.id : sent
}

/** The files by id as replies name them. Who sees the record sees its files, so nothing is asked here. */
export async function fileRefs(ctx: Context, ids: readonly number[]): Promise<Map<number, Schema<'FileRef'>>> {
  return new Map((await rowsOf(ctx, ids)).map((row) => [row.id, presentRef(ctx, row)]))
}

/** A file that a body names must exist, be visible and be what the field takes. Null passes. */
export async function referFile(
  { ctx, found }: Finding,
  field: string,
  id: number | null | undefined,
  limits: FileLimits = {},
): Promise<void> {
  if (id === null || id === undefined) return
  const [row] = await visibleOf(ctx, await rowsOf(ctx, [id]))
  if (!row) found.invalid(field, `No file has id ${id}.`)
  else checkLimits(found, field, { size: row.size, contentType: row.content_type }, limits)
}

/** The same for a file that came with the body. */
export function checkLimits(
  found: Finding['found'],
  field: string,
  { size, contentType }: Pick<Upload, 'size' | 'contentType'>,
  { types, maxBytes }: FileLimits,
): void {
  if (types && !types.includes(contentType))
    found.invalid(field, `Must be a file of type ${types.join(', ')}; this is ${contentType}.`)
  if (maxBytes !== undefined && size > maxBytes)
    found.invalid(field, `Must have at most ${Math.floor(maxBytes / 1024 / 1024)} MiB.`)
}

/** Keeps a file that came with the body. Runs in the transaction of the write; returns its id. */
export async function addFile(ctx: Context, upload: Upload, owner: Owner | null): Promise<number> {
  if (owner === null) await checkUploadQuota(ctx, upload.size)
  await storeUpload(ctx, upload)
  const { name, size, contentType, sha256 } = upload
  return insert(ctx, { name, size, content_type: contentType, sha256, user_id: author(ctx)?.id ?? null }, owner)
}

/**
 * Makes a file that `referFile` had nothing against belong to a record, in the transaction of the write. A file belongs to
 * one record: what belongs to another is copied, which shares the bytes. Returns the id the record has to name.
 */
export async function attachFile(ctx: Context, id: number, owner: Owner): Promise<number> {
  const row = await ctx.db.selectFrom('files').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  if (row.owner_type === owner.type && row.owner_id === owner.id) return id
  if (row.owner_type === null) {
    await ctx.db.updateTable('files').set({ owner_type: owner.type, owner_id: owner.id }).where('id', '=', id).execute()
    return id
  }
  const { name, size, content_type, sha256 } = row
  return insert(ctx, { name, size, content_type, sha256, user_id: author(ctx)?.id ?? row.user_id }, owner)
}

/** Lets go of the files of a record, or of some of them. Their bytes go with the next tidying, unless others share them. */
export async function releaseFiles(ctx: Context, owner: Owner, ids?: readonly number[]): Promise<void> {
  if (ids?.length === 0) return
  let files = ctx.db.deleteFrom('files').where('owner_type', '=', owner.type).where('owner_id', '=', owner.id)
  if (ids) files = files.where('id', 'in', ids)
  await files.execute()
}

async function insert(
  ctx: Context,
  file: { name: string; size: number; content_type: string; sha256: string; user_id: number | null },
  owner: Owner | null,
): Promise<number> {
  const { id } = await ctx.db
    .insertInto('files')
    .values({ ...file, owner_type: owner?.type ?? null, owner_id: owner?.id ?? null, created_at: now(ctx) })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}
