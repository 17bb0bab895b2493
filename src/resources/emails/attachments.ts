// Attachments of e-mails. `attachment_ids` in a body replaces all attachments.
// Files uploaded in a form are added to the attachments. An attachment with a content id is a
// picture inside the e-mail body.
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import type { Schema } from '../../contract/types.ts'
import { type Context, now } from '../../kernel/context.ts'
import { notFound } from '../../kernel/errors.ts'
import { maxBytes, type Upload } from '../../kernel/files/file-store.ts'
import { uploaded } from '../../kernel/files/multipart.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { type ContentIdOf, withPictures } from '../../kernel/values/html.ts'
import { addFile, attachFile, releaseFiles } from '../files/attach.ts'
import { fileRows, visibleFiles } from '../files/rows.ts'
import { signedUrl } from '../files/signed-links.ts'

export type AttachmentInput = Pick<Schema<'EmailForm'>, 'attachment_ids' | 'attachments'>

interface Row {
  id: number
  email_id: number
  file_id: number
  name: string
  content_id: string | null
  created_at: string
  updated_at: string
  size: number
  content_type: string
  sha256: string
}

const ownerOf = (emailId: number) => ({ type: 'emails', id: emailId })

/** Returns the attachments of these e-mails, in the order of attachment. */
export const attachmentRows = ({ db }: Context, emailIds: readonly number[]): Promise<Row[]> =>
  db
    .selectFrom('email_attachments')
    .innerJoin('files', 'files.id', 'email_attachments.file_id')
    .selectAll('email_attachments')
    .select(['files.size', 'files.content_type', 'files.sha256'])
    .where('email_attachments.email_id', 'in', emailIds)
    .orderBy('email_attachments.id')
    .execute()

function presentAttachment(ctx: Context, row: Row): Schema<'EmailAttachment'> {
  const path = pathTo(operations.downloadEmailAttachment, row.email_id, row.id)
  return {
    id: row.id,
    file_id: row.file_id,
    name: row.name,
    path,
    url: ctx.baseUrl + path,
    size: row.size,
    content_type: row.content_type,
    content_id: row.content_id,
    created_at: row.created_at,
    updated_at: row.updated_at,
  }
}

/**
 * Adds the attachments to each e-mail of a page, with one query. Also turns the embedded pictures
 * in e-mail bodies into links.
 */
export async function loadAttachments(
  ctx: Context,
  replies: readonly { id: number; html: string | null; attachments: Schema<'EmailAttachment'>[] }[],
): Promise<void> {
  const rows = await attachmentRows(
    ctx,
    replies.map(({ id }) => id),
  )
  for (const reply of replies) {
    const own = rows.filter(({ email_id }) => email_id === reply.id)
    reply.attachments = own.map((row) => presentAttachment(ctx, row))
    reply.html = bodyWithPictures(ctx, reply.html, own)
  }
}

/** Returns the stored body of an e-mail with links in place of embedded pictures. */
export function bodyWithPictures(
  ctx: Context,
  body: string | null,
  files: readonly Pick<Row, 'content_id' | 'file_id'>[],
): string | null {
  if (body === null) return null
  return withPictures(body, (contentId) => {
    const file = files.find(({ content_id }) => content_id === contentId)
    return file && signedUrl(ctx, file.file_id)
  })
}

/**
 * Returns a function that maps a picture link back to its content id, the reverse of
 * `bodyWithPictures`. A client can therefore send back an e-mail body that it has fetched.
 */
export async function contentIdFinder(ctx: Context, emailId: number | undefined): Promise<ContentIdOf> {
  const rows = emailId === undefined ? [] : await attachmentRows(ctx, [emailId])
  const pictures = rows.filter(({ content_id }) => content_id !== null)
  const path = pathTo(operations.downloadSignedFile, '(\\d+)')
  const link = new RegExp(`^https?://[^/]+${path}(\\?|$)`)
  return (src) => {
    const id = Number(link.exec(src)?.[1])
    return pictures.find(({ file_id }) => file_id === id)?.content_id ?? undefined
  }
}

/**
 * Returns one attachment of the e-mail. Throws 404 when the attachment belongs to another e-mail.
 */
export async function getAttachment(ctx: Context, emailId: number, id: number): Promise<Row> {
  const row = (await attachmentRows(ctx, [emailId])).find((each) => each.id === id)
  if (!row) throw notFound('attachment', id)
  return row
}

/**
 * Reports each unknown or invisible file, and attachments that are too large together. Returns
 * whether the request changes the attachments.
 */
export async function checkAttachments(
  { ctx, current, errors }: Writing<{ id: number }>,
  { attachment_ids: sent, attachments = [] }: AttachmentInput,
): Promise<boolean> {
  if (sent === undefined && attachments.length === 0) return false
  const present = current ? await attachmentRows(ctx, [current.id]) : []
  const known = new Set(present.map(({ file_id }) => file_id))
  const rows = await fileRows(ctx, sent ?? [])
  const seen = new Set((await visibleFiles(ctx, rows)).map(({ id }) => id))
  for (const [index, id] of (sent ?? []).entries())
    if (!known.has(id) && !seen.has(id)) errors.invalid(`attachment_ids.${index}`, `No file has id ${id}.`)
  const sizes = [...rows, ...attachments.map((key) => uploaded(ctx, key))].map(({ size }) => size)
  if (sizes.reduce((sum, size) => sum + size, 0) > maxBytes)
    errors.invalid(
      sent === undefined ? 'attachments' : 'attachment_ids',
      `The attachments may have ${maxBytes / 1024 / 1024} MiB together.`,
    )
  const wanted = new Set(sent)
  return wanted.size !== known.size || [...wanted].some((id) => !known.has(id)) || attachments.length > 0
}

export async function saveAttachments(
  ctx: Context,
  emailId: number,
  { attachment_ids: sent, attachments = [] }: AttachmentInput,
): Promise<void> {
  if (sent !== undefined) {
    const wanted = new Set(sent)
    const present = (await attachmentRows(ctx, [emailId])).map(({ file_id }) => file_id)
    const gone = present.filter((id) => !wanted.has(id))
    if (gone.length > 0) {
      await ctx.db
        .deleteFrom('email_attachments')
        .where('email_id', '=', emailId)
        .where('file_id', 'in', gone)
        .execute()
      await releaseFiles(ctx, ownerOf(emailId), gone)
    }
    for (const id of wanted) {
      if (!present.includes(id)) await addAttachment(ctx, emailId, await attachFile(ctx, id, ownerOf(emailId)))
    }
  }
  for (const key of attachments)
    await addAttachment(ctx, emailId, await addFile(ctx, uploaded(ctx, key), ownerOf(emailId)))
}

export async function saveReceivedAttachments(
  ctx: Context,
  emailId: number,
  files: readonly { upload: Upload; contentId: string | null }[],
): Promise<void> {
  for (const { upload, contentId } of files)
    await addAttachment(ctx, emailId, await addFile(ctx, upload, ownerOf(emailId)), contentId)
}

async function addAttachment(
  ctx: Context,
  emailId: number,
  fileId: number,
  contentId: string | null = null,
): Promise<void> {
  const [file] = await fileRows(ctx, [fileId])
  const at = now(ctx)
  await ctx.db
    .insertInto('email_attachments')
    .values({
      email_id: emailId,
      file_id: fileId,
      name: file?.name ?? '',
      content_id: contentId,
      created_at: at,
      updated_at: at,
    })
    .execute()
}
