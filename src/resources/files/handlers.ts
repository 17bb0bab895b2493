// Handlers that upload, read, download and delete files. attach.ts attaches files to
// records.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { inUse, notFound } from '../../kernel/errors.ts'
import { type Download, download } from '../../kernel/files/download.ts'
import { dispositionOf } from '../../kernel/files/file-types.ts'
import { uploaded } from '../../kernel/files/multipart.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { bestEffort } from '../../kernel/runtime/unavailable.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { write } from '../../kernel/write/write.ts'
import { addFile } from './attach.ts'
import { type FileRow, fileRows, findFile, presentFile } from './rows.ts'
import { checkSignature } from './signed-links.ts'

/** The visibility check that runs before every operation on a file. */
export const files = {
  assertVisible: async (ctx: Context, id: number): Promise<void> => {
    await findFile(ctx, id)
  },
}

const uploadFile: Handler<'uploadFile'> = async (ctx, { body }) => {
  const upload = uploaded(ctx, body.file)
  const { name, size, contentType: content_type } = upload
  const { entity } = await write(
    ctx,
    'files.create',
    { entity: 'files', input: { name, size, content_type } },
    async (ctx) => {
      const [row] = await fileRows(ctx, [await addFile(ctx, upload, null)])
      if (!row) throw new Error('The file was stored but not read.')
      return { id: row.id, entity: { ...presentFile(ctx, row) } }
    },
  )
  return { data: entity as Schema<'FileRecord'>, message: 'File created.' }
}

const getFile: Handler<'getFile'> = async (ctx, { params }) => ({
  data: presentFile(ctx, await findFile(ctx, params.id)),
})

const deleteFile: Handler<'deleteFile'> = async (ctx, { params }) => {
  const row = await findFile(ctx, params.id)
  if (row.owner_type !== null)
    throw inUse('The file belongs to a record and is deleted with it.', [
      { entity_type: row.owner_type, id: row.owner_id, field: null },
    ])
  await removeFile(ctx, row)
  // The bytes are deleted now and not in the next clean-up. Otherwise deleted uploads, which no
  // longer count toward the upload quota, could fill the disk.
  if (!ctx.dryRun) await bestEffort(() => ctx.services.sweepFiles(ctx, [row.sha256]))
  return { message: 'File deleted.' }
}

/**
 * Deletes the row of a file, with the events of a deletion. The bytes remain, because other files
 * may share them; the calling function must remove unused bytes.
 */
export async function removeFile(ctx: Context, row: FileRow): Promise<void> {
  const before: Snapshot = { ...presentFile(ctx, row) }
  await write(ctx, 'files.delete', { entity: 'files', input: {}, id: row.id, before }, async (ctx) => {
    await ctx.db.deleteFrom('files').where('id', '=', row.id).execute()
    return { id: row.id, entity: null }
  })
}

const downloadFile: Handler<'downloadFile'> = async (ctx, { params }) =>
  downloadBytes(ctx, await findFile(ctx, params.id))

const downloadSignedFile: Handler<'downloadSignedFile'> = async (ctx, { params, query }) => {
  checkSignature(ctx, params.id, query)
  const [row] = await fileRows(ctx, [params.id])
  if (!row) throw notFound('file', params.id)
  return downloadBytes(ctx, row)
}

/**
 * Returns the download of a file. Does not check whether the caller may see the file. Throws 404
 * when the stored bytes are missing.
 */
export async function downloadBytes(
  ctx: Context,
  row: Pick<FileRow, 'id' | 'name' | 'content_type' | 'sha256'>,
): Promise<Download> {
  const { id, name, content_type, sha256 } = row
  const body = await ctx.services.files.find(sha256)
  if (!body) {
    ctx.services.log.error({ file: id, sha256 }, 'The bytes of a file are gone.')
    throw notFound('file', id)
  }
  const disposition = dispositionOf(content_type)
  return download({
    mediaType: content_type.startsWith('text/') ? `${content_type}; charset=utf-8` : content_type,
    body,
    name,
    disposition,
    etag: `"${sha256}"`,
    headers: {
      'cache-control': 'private, no-cache',
      // A PDF gets no sandbox, because the PDF viewer of the browser runs scripts.
      ...(content_type !== 'application/pdf' && { 'content-security-policy': "default-src 'none'; sandbox" }),
    },
  })
}

export const handlers = {
  uploadFile,
  getFile,
  deleteFile,
  downloadFile,
  downloadSignedFile,
} satisfies Partial<Handlers>
