// Checks, attaches and releases the files of records, for all resources. An attached file belongs
// to one record and has no events of its own.
import type { Schema } from '../../contract/types.ts'
import { author, type Context, now } from '../../kernel/context.ts'
import type { Upload } from '../../kernel/files/file-store.ts'
import { storeUpload } from '../../kernel/files/multipart.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { checkUploadQuota } from './quota.ts'
import { type FileOwner, fileRows, presentRef, visibleFiles } from './rows.ts'

export type { FileOwner as Owner } from './rows.ts'

export interface FileLimits {
  /** The allowed media types. They are compared with the type detected from the file content. */
  types?: readonly string[]
  /**
   * Matches the names of files that are accepted although their type was not detected. They may be
   * text that is not UTF-8.
   */
  otherText?: RegExp
  maxBytes?: number
}

type Finding = Pick<Writing<unknown>, 'ctx' | 'errors'>

/**
 * Returns the id in a value that is an id or a FileRef. Returns null and undefined
 * unchanged.
 */
export function acceptFileRef<Empty extends null | undefined>(sent: number | { id: number } | Empty): number | Empty {
  return typeof sent === 'object' && sent !== null ? sent.id : sent
}

/**
 * Returns a map from file id to FileRef. Visibility is not checked, because a user who sees a
 * record also sees its files.
 */
export async function fileRefs(ctx: Context, ids: readonly number[]): Promise<Map<number, Schema<'FileRef'>>> {
  return new Map((await fileRows(ctx, ids)).map((row) => [row.id, presentRef(ctx, row)]))
}

/**
 * Adds an error when the file does not exist, is not visible to the caller, or exceeds the limits
 * of the field. An id of null or undefined adds no error.
 */
export async function checkFileReference(
  { ctx, errors }: Finding,
  field: string,
  id: number | null | undefined,
  limits: FileLimits = {},
): Promise<void> {
  if (id === null || id === undefined) return
  const [row] = await visibleFiles(ctx, await fileRows(ctx, [id]))
  if (!row) errors.invalid(field, `No file has id ${id}.`)
  else checkFileLimits(errors, field, { name: row.name, size: row.size, contentType: row.content_type }, limits)
}

/** Adds an error when the type or the size of an upload is not allowed for the field. */
export function checkFileLimits(
  errors: Finding['errors'],
  field: string,
  { name, size, contentType }: Pick<Upload, 'name' | 'size' | 'contentType'>,
  { types, otherText, maxBytes }: FileLimits,
): void {
  const isOtherText = contentType === 'application/octet-stream' && otherText?.test(name) === true
  if (types && !types.includes(contentType) && !isOtherText)
    errors.invalid(field, `Must be a file of type ${types.join(', ')}; this is ${contentType}.`)
  if (maxBytes !== undefined && size > maxBytes)
    errors.invalid(field, `Must have at most ${Math.floor(maxBytes / 1024 / 1024)} MiB.`)
}

/** Stores an upload and returns the id of its file. Must run in the transaction of the write. */
export async function addFile(ctx: Context, upload: Upload, owner: FileOwner | null): Promise<number> {
  if (owner === null) await checkUploadQuota(ctx, upload.size)
  await storeUpload(ctx, upload)
  const { name, size, contentType, sha256 } = upload
  return insertFile(ctx, { name, size, content_type: contentType, sha256, user_id: author(ctx)?.id ?? null }, owner)
}

/**
 * Attaches a file to a record and returns the id of the attached file. `checkFileReference` must
 * have accepted the file. A file belongs to one record, so the file of another record is copied.
 * The copy shares the stored bytes. Must run in the transaction of the write.
 */
export async function attachFile(ctx: Context, id: number, owner: FileOwner): Promise<number> {
  const row = await ctx.db.selectFrom('files').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  if (row.owner_type === owner.type && row.owner_id === owner.id) return id
  if (row.owner_type === null) {
    await ctx.db.updateTable('files').set({ owner_type: owner.type, owner_id: owner.id }).where('id', '=', id).execute()
    return id
  }
  const { name, size, content_type, sha256 } = row
  return insertFile(ctx, { name, size, content_type, sha256, user_id: author(ctx)?.id ?? row.user_id }, owner)
}

/**
 * Deletes the files of a record: all files, or only those with the given ids. The next clean-up
 * deletes the bytes that no other file shares.
 */
export async function releaseFiles(ctx: Context, owner: FileOwner, ids?: readonly number[]): Promise<void> {
  if (ids?.length === 0) return
  let files = ctx.db.deleteFrom('files').where('owner_type', '=', owner.type).where('owner_id', '=', owner.id)
  if (ids) files = files.where('id', 'in', ids)
  await files.execute()
}

async function insertFile(
  ctx: Context,
  file: { name: string; size: number; content_type: string; sha256: string; user_id: number | null },
  owner: FileOwner | null,
): Promise<number> {
  const { id } = await ctx.db
    .insertInto('files')
    .values({ ...file, owner_type: owner?.type ?? null, owner_id: owner?.id ?? null, created_at: now(ctx) })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}
