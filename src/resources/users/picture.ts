// The picture of a user, which is a file attached to the user. The row of the user
// stores the file id, so a UserRef can link to the picture without another query.
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import type { Context } from '../../kernel/context.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { attachFile, checkFileReference, type FileLimits, releaseFiles } from '../files/attach.ts'
import { downloadUrl } from '../files/rows.ts'

const limits: FileLimits = {
  types: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'],
  maxBytes: 5 * 1024 * 1024,
}

export const pictureUrl = (ctx: Context, fileId: number | null): string | null =>
  fileId === null ? null : downloadUrl(ctx, fileId)

export const picturePath = (fileId: number | null): string | null =>
  fileId === null ? null : pathTo(operations.downloadFile, fileId)

/** Adds a validation error when the file does not exist or is not a picture within `limits`. */
export const checkPicture = (writing: Pick<Writing<unknown>, 'ctx' | 'errors'>, fileId: number | null | undefined) =>
  checkFileReference(writing, 'image_file_id', fileId, limits)

/**
 * Sets the picture of a user; null as `fileId` removes the picture. Returns whether the picture
 * changed.
 */
export async function setPicture(ctx: Context, userId: number, fileId: number | null | undefined): Promise<boolean> {
  if (fileId === undefined) return false
  const users = ctx.db.selectFrom('users').select('image_file_id').where('id', '=', userId)
  const { image_file_id: current } = await users.executeTakeFirstOrThrow()
  const owner = { type: 'users', id: userId }
  const next = fileId === null ? null : await attachFile(ctx, fileId, owner)
  if (next === current) return false
  await ctx.db.updateTable('users').set({ image_file_id: next }).where('id', '=', userId).execute()
  if (current !== null) await releaseFiles(ctx, owner, [current])
  return true
}
