// Receives one e-mail, however it came (DOMAIN 14.4): once, into the thread it answers, about the person who wrote it, with a body
// that is safe to show. One transaction; what was read of the mail is bounded already (mail/parse/parse.ts).
import { Readable } from 'node:stream'
import type { Insertable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Upload } from '../../kernel/files/file-store.ts'
import { cleanUpUploads, type Uploads } from '../../kernel/files/multipart.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { escapeHtml, fold } from '../../kernel/values/format.ts'
import { clean, plainText } from '../../kernel/values/html.ts'
import { isOfListener, savepoint, transaction, type Unit, write } from '../../kernel/write/write.ts'
import type { ReceivedMail } from '../../mail/parse/parse.ts'
import { addFile, releaseFiles } from '../files/attach.ts'
import { persons } from '../persons/resource.ts'
import { keepReceived, settleAttachments } from './attachments.ts'
import { change, surface } from './changes.ts'
import { completed, filedOf, putInto } from './folders.ts'
import { parentOf, threadNaming } from './parents.ts'
import { emails } from './resource.ts'
import { inheritance, joinThread } from './threads.ts'
import type { Folder } from './visibility.ts'

export interface Received {
  id: number
  /** It was here before; then nothing was written. */
  duplicate: boolean
  parent_id: number | null
  person_id: number | null
}

export interface Receiving {
  /** The bytes as they came, which are kept for a while. */
  raw: Buffer | null
  /** Where it lay in the mailbox it comes from. */
  folder?: Folder
  /** Whether somebody has read it there. */
  isSeen?: boolean
}

/** Of one file, and of the bytes of the whole mail. */
const maxBytes = 31 * 1024 * 1024
const maxTextLength = 1_000_000

/** Throws what a listener refuses it with. */
export async function receive(
  ctx: Context,
  mail: ReceivedMail,
  { raw, folder = 'inbox', isSeen = false }: Receiving,
): Promise<Received> {
  const known = await knownOf(ctx, mail)
  if (known && !(await isFinished(ctx, known, folder))) return known
  // A header of the request is about no record here.
  const own: Context & { uploads: Uploads & { files: Map<string, Upload> } } = {
    ...ctx,
    origin: 'inbound_mail',
    ifMatch: null,
    uploads: { files: new Map(), kept: new Set() },
  }
  let isStored = false
  try {
    const take = async (bytes: Buffer, name: string): Promise<Upload> => {
      const upload = await ctx.services.files.receive(Readable.from([bytes]), name, maxBytes)
      own.uploads.files.set(String(own.uploads.files.size), upload)
      return upload
    }
    const files: Omit<Files, 'isSeen'> = { attachments: [], raw: raw && (await take(raw, 'message.eml')) }
    for (const { name, contentId, bytes } of mail.attachments)
      files.attachments.push({ upload: await take(bytes, name), contentId })
    // The bytes as they came go after 30 days; of a mail that is not shown whole they stay.
    if (mail.error !== null && files.raw) files.attachments.push({ upload: files.raw, contentId: null })
    const stored = await store(own, mail, { ...files, isSeen }, folder)
    isStored = true
    return stored
  } catch (error) {
    const other = error instanceof Problem && error.code === 'unique_violation' ? await knownOf(ctx, mail) : null
    if (!other) throw error
    return other
  } finally {
    await cleanUpUploads(own, !isStored)
  }
}

async function knownOf({ db }: Context, { messageId }: ReceivedMail): Promise<Received | null> {
  const known = await db
    .selectFrom('emails')
    .select(['id', 'parent_id', 'person_id'])
    .where('message_id', '=', messageId)
    .executeTakeFirst()
  return known ? { ...known, duplicate: true } : null
}

interface Files {
  attachments: { upload: Upload; contentId: string | null }[]
  raw: Upload | null
  isSeen: boolean
}

const store = (ctx: Context, mail: ReceivedMail, files: Files, folder: Folder): Promise<Received> =>
  transaction(ctx, async (ctx) => {
    // The same mail may have come on another way meanwhile.
    const known = await knownOf(ctx, mail)
    if (known) {
      if (await isFinished(ctx, known, folder)) await finish(ctx, known.id, mail, files)
      return known
    }
    const isOwn = (await isOurs(ctx, mail)) || folder === 'sent' || folder === 'draft'
    const place = isOwn && folder === 'inbox' ? 'sent' : folder
    const parent = await parentOf(ctx, mail)
    const late = parent === null ? await threadNaming(ctx, mail.messageId) : null
    const thread = parent ?? late
    const from = thread === null ? null : await inheritance(ctx, thread)
    const person = from?.person_id ?? (await personOf(ctx, mail))
    const row = {
      ...columnsOf(mail, { isOwn, hasOriginal: files.raw !== null }),
      is_read: Number(isOwn || files.isSeen),
      parent_id: parent,
      person_id: person,
      lead_id: from?.lead_id ?? null,
    }
    const { id, entity } = await write(
      ctx,
      emails.events.create,
      { entity: emails.entity, input: inputOf(mail, place) },
      async (ctx) => {
        const at = now(ctx)
        const { id } = await ctx.db
          .insertInto('emails')
          .values({ ...row, created_at: at, updated_at: at })
          .returning('id')
          .executeTakeFirstOrThrow()
        await joinThread(ctx, id, { sent: [...mail.references, ...mail.inReplyTo], thread: late })
        await putInto(ctx, id, { folders: [place], kept: [] })
        await keepReceived(ctx, id, files.attachments)
        if (files.raw) await keepRaw(ctx, id, files.raw)
        return { id, entity: { ...(await emails.get(ctx, id)) } }
      },
    )
    // An answer is seen where the thread is; what we wrote ourselves, and what nobody wants, is no reason to look.
    if (parent !== null && !isOwn && place !== 'trash' && place !== 'spam')
      await surfaced(ctx, Number(entity?.thread_id), id)
    return { id, duplicate: false, parent_id: parent, person_id: person }
  })

/** Whether what is known was read while it was being written in a mailbox, and this is what was sent. */
async function isFinished(ctx: Context, { id }: Received, folder: Folder): Promise<boolean> {
  if (folder !== 'sent') return false
  const { status } = await ctx.db.selectFrom('emails').select('status').where('id', '=', id).executeTakeFirstOrThrow()
  const { folders, kept } = await filedOf(ctx, id)
  return status === 'received' && [...folders, ...kept].includes('draft')
}

/** A draft that was sent meanwhile is as it was sent. */
async function finish(ctx: Context, id: number, mail: ReceivedMail, files: Files): Promise<void> {
  const work = async (ctx: Context): Promise<void> => {
    const columns = { ...columnsOf(mail, { isOwn: true, hasOriginal: files.raw !== null }), raw_file_id: null }
    await ctx.db.updateTable('emails').set(columns).where('id', '=', id).execute()
    await putInto(ctx, id, completed(await filedOf(ctx, id)))
    await settleAttachments(ctx, id, { attachment_ids: [] })
    await releaseFiles(ctx, { type: 'emails', id })
    await keepReceived(ctx, id, files.attachments)
    if (files.raw) await keepRaw(ctx, id, files.raw)
  }
  await change(ctx, id, inputOf(mail, 'sent'), () => undefined, work)
}

/** A listener that will not have the thread shown anew has no say about the mail that came. */
async function surfaced(ctx: Context & { unit: Unit }, thread: number, id: number): Promise<void> {
  try {
    await savepoint(ctx, () => surface(ctx, thread, id))
  } catch (error) {
    if (!isOfListener(error)) throw error
    ctx.services.log.warn({ err: error, thread, email: id }, 'A listener refused to have a thread shown anew.')
  }
}

/** What listeners are asked about. */
const inputOf = (mail: ReceivedMail, folder: Folder) => ({
  subject: mail.subject,
  from: mail.from === null ? [] : [mail.from.address],
  reply_to: mail.to,
  cc: mail.cc,
  text: mail.text,
  folders: [folder],
  is_automatic: mail.isAutomatic,
  message_id: mail.messageId,
})

function columnsOf(
  mail: ReceivedMail,
  { isOwn, hasOriginal }: { isOwn: boolean; hasOriginal: boolean },
): Omit<Insertable<DB['emails']>, 'created_at' | 'updated_at'> {
  const note =
    mail.error === null ? null : hasOriginal ? `${mail.error} The original is attached as message.eml.` : mail.error
  const html = mail.html === null ? null : clean(mail.html)
  // Of what is too much to be shown, the text is left.
  const reply = html?.trim() || htmlOf(mail.text) || htmlOf(note)
  const text = mail.text ?? (html === null ? note : plainText(html))
  return {
    subject: mail.subject,
    subject_key: mail.subject === null ? null : fold(mail.subject),
    reply,
    text: text?.slice(0, maxTextLength).trimEnd() || null,
    reply_to: JSON.stringify(mail.to),
    cc: JSON.stringify(mail.cc),
    bcc: JSON.stringify(mail.bcc),
    from: JSON.stringify(mail.from === null ? [] : [mail.from.address]),
    sender: JSON.stringify(mail.sender),
    name: mail.from?.name || null,
    source: 'email',
    user_type: isOwn ? 'admin' : 'person',
    status: 'received',
    error: mail.error,
    sent_at: mail.date === null ? null : stamp(mail.date),
    is_read: Number(isOwn),
    is_automatic: Number(mail.isAutomatic),
    message_id: mail.messageId,
    message_id_key: fold(mail.messageId),
  }
}

const htmlOf = (text: string | null): string | null =>
  (text === null || text.trim() === ''
    ? null
    : clean(`<p>${escapeHtml(text.trim()).replaceAll('\n', '<br />')}</p>`)) || null

/** Whether a user wrote it, or this installation. */
async function isOurs({ db, services }: Context, { from }: ReceivedMail): Promise<boolean> {
  if (from === null) return false
  const key = fold(from.address)
  if (key === fold(services.config.mailFrom)) return true
  return (await db.selectFrom('users').select('id').where('email_key', '=', key).executeTakeFirst()) !== undefined
}

/** The person with the sender's address; of several the first there was. */
async function personOf(ctx: Context, { from }: ReceivedMail): Promise<number | null> {
  if (from === null) return null
  const rows = await persons.query(ctx, { email: [from.address], sort: ['id'] })
  const person = await rows.clearSelect().select('persons.id').limit(1).executeTakeFirst()
  return person?.id ?? null
}

async function keepRaw(ctx: Context, id: number, raw: Upload): Promise<void> {
  const file = await addFile(ctx, raw, { type: 'emails', id })
  await ctx.db.updateTable('emails').set({ raw_file_id: file }).where('id', '=', id).execute()
}
