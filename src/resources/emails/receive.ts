// Stores a received e-mail once, in one transaction. The e-mail joins the thread it
// replies to, is linked to the person of its sender, and has a sanitized body. mail/parse/parse.ts
// has already limited its size.
import { Readable } from 'node:stream'
import type { Insertable, Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import { canonicalAddress } from '../../contract/input/email-addresses.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Upload } from '../../kernel/files/file-store.ts'
import { cleanUpUploads, prepareUploads, type Uploads } from '../../kernel/files/multipart.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { escapeHtml, fold } from '../../kernel/values/format.ts'
import { clean } from '../../kernel/values/html.ts'
import { textKey } from '../../kernel/values/names.ts'
import { plainText } from '../../kernel/values/plain-text.ts'
import { type InTransaction, isOfListener, savepoint, transaction, write } from '../../kernel/write/write.ts'
import { generatedMessageId } from '../../mail/message-ids.ts'
import type { ReceivedMail } from '../../mail/parse/parse.ts'
import { addFile, releaseFiles } from '../files/attach.ts'
import { leadStatus } from '../leads/change-stage.ts'
import { findErased } from '../persons/erase/suppression.ts'
import { persons } from '../persons/resource.ts'
import { saveAttachments, saveReceivedAttachments } from './attachments.ts'
import { queueBounce } from './bounces.ts'
import { changeEmail, moveThreadToInbox } from './change-email.ts'
import { foldersOf, foldersOfSentDraft, storeFolders } from './folders.ts'
import { queueAnswers } from './invitation-answers.ts'
import { findParent, findThreadNaming } from './parents.ts'
import { emails } from './resource.ts'
import { inheritFrom, joinThread } from './threads.ts'
import type { EmailFolder } from './visibility.ts'

export interface ReceiveResult {
  id: number
  /** True when the e-mail was already stored and nothing was written. */
  duplicate: boolean
  parent_id: number | null
  person_id: number | null
}

export interface ReceiveOptions {
  /** The original bytes, which are stored for 30 days. */
  raw: Buffer | null
  /** The folder of the e-mail in the polled mailbox. */
  folder?: EmailFolder
  /** Whether the e-mail was marked as read in the polled mailbox. */
  isSeen?: boolean
}

/** The maximum size in bytes of one attachment, and of the original e-mail. */
const maxBytes = 31 * 1024 * 1024
const maxTextLength = 1_000_000

/** Stores a received e-mail, unless it is already stored. Throws when a listener vetoes it. */
export async function receiveMail(
  ctx: Context,
  received: ReceivedMail,
  { raw, folder = 'inbox', isSeen = false }: ReceiveOptions,
): Promise<ReceiveResult> {
  const allowed = await withoutErased(ctx, withCanonicalAddresses(received), folder)
  const mail = await withOwnId(ctx, allowed, folder)
  const known = await findKnown(ctx, mail)
  if (known && !(await isSentDraft(ctx, known, folder))) return known
  // The request's If-Match header does not apply to this e-mail.
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
    // An e-mail that cannot be shown completely gets its original bytes as an attachment, because
    // the other copy of the original is deleted after 30 days.
    if (mail.error !== null && files.raw) files.attachments.push({ upload: files.raw, contentId: null })
    await prepareUploads(own)
    const stored = await storeEmail(own, mail, { ...files, isSeen }, folder)
    isStored = true
    return stored
  } catch (error) {
    const other = error instanceof Problem && error.code === 'unique_violation' ? await findKnown(ctx, mail) : null
    if (!other) throw error
    return other
  } finally {
    await cleanUpUploads(own, !isStored)
  }
}

/**
 * Returns the e-mail without the addresses of erased persons among its recipients. Throws 403 when
 * such a person sent it, as when a listener vetoes it.
 */
async function withoutErased(ctx: Context, mail: ReceivedMail, folder: EmailFolder): Promise<ReceivedMail> {
  const named = [...mail.authors, ...mail.to, ...mail.cc, ...mail.bcc, ...mail.recipients, ...mail.replyTo]
  const erased = await findErased(ctx, 'email', [...new Set(named)])
  if (erased.size === 0) return mail
  if (folder !== 'sent' && mail.authors.some((address) => erased.has(address)))
    throw new Problem('event_vetoed', 'The sender is a person who was erased.')
  const others = (addresses: readonly string[]): string[] => addresses.filter((address) => !erased.has(address))
  const { to, cc, bcc, recipients, replyTo } = mail
  return {
    ...{ ...mail, to: others(to), cc: others(cc), bcc: others(bcc) },
    ...{ recipients: others(recipients), replyTo: others(replyTo) },
  }
}

/** Gives internationalized domains the form in which addresses are stored. */
function withCanonicalAddresses(mail: ReceivedMail): ReceivedMail {
  const all = (addresses: readonly string[]): string[] => addresses.map(canonicalAddress)
  const { from } = mail
  return {
    ...mail,
    from: from && { ...from, address: canonicalAddress(from.address) },
    authors: all(mail.authors),
    sender: all(mail.sender),
    replyTo: all(mail.replyTo),
    to: all(mail.to),
    cc: all(mail.cc),
    bcc: all(mail.bcc),
    recipients: all(mail.recipients),
  }
}

/**
 * Returns the e-mail with a generated Message-ID when a different e-mail with its Message-ID is
 * stored. Some devices give all their e-mails one Message-ID. Drafts and e-mails that this
 * installation sent are compared by Message-ID alone.
 */
async function withOwnId(ctx: Context, mail: ReceivedMail, folder: EmailFolder): Promise<ReceivedMail> {
  if (folder === 'draft' || folder === 'sent') return mail
  const stored = await ctx.db
    .selectFrom('emails')
    .select(['id', 'from', 'sent_at', 'subject', 'text', 'source', 'status'])
    .where('message_id', '=', mail.messageId)
    .executeTakeFirst()
  if (stored?.source !== 'email' || stored.status !== 'received') return mail
  if (isCopy(mail, stored)) return mail
  const { folders, kept } = await foldersOf(ctx, stored.id)
  if ([...folders, ...kept].some((each) => each === 'draft' || each === 'sent')) return mail
  const facts = [mail.messageId, mail.from?.address ?? null, mail.date?.toISOString() ?? null, mail.subject, mail.text]
  return { ...mail, messageId: generatedMessageId([...facts, mail.html]) }
}

type Stored = Pick<Selectable<DB['emails']>, 'from' | 'sent_at' | 'subject' | 'text'>

/**
 * Returns whether an e-mail is a copy of the stored one with its Message-ID: sender and date are
 * equal, and subject or text. A mailing list changes one of both. The text is compared last,
 * because it may have to be made from the HTML.
 */
const isCopy = (mail: ReceivedMail, stored: Stored): boolean =>
  fold(JSON.stringify(mail.authors)) === fold(stored.from) &&
  (mail.date === null ? null : stamp(mail.date)) === stored.sent_at &&
  (words(mail.subject) === words(stored.subject) ||
    words(columnsOf(mail, { isOwn: false, hasOriginal: true }).text) === words(stored.text))

const words = (text: string | null | undefined): string => fold((text ?? '').replaceAll(/\s+/g, ' ').trim())

async function findKnown({ db }: Context, { messageId }: ReceivedMail): Promise<ReceiveResult | null> {
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

const storeEmail = (ctx: Context, mail: ReceivedMail, files: Files, folder: EmailFolder): Promise<ReceiveResult> =>
  transaction(ctx, async (ctx) => {
    // Another process may have stored the same e-mail since the first check.
    const known = await findKnown(ctx, mail)
    if (known) {
      if (await isSentDraft(ctx, known, folder)) await replaceDraft(ctx, known.id, mail, files)
      return known
    }
    const isOwn = (await isFromUs(ctx, mail)) || folder === 'sent' || folder === 'draft'
    const place = isOwn && folder === 'inbox' ? 'sent' : folder
    const parent = await findParent(ctx, mail)
    const late = parent === null ? await findThreadNaming(ctx, mail.messageId) : null
    const thread = parent ?? late
    const from = thread === null ? null : await inheritFrom(ctx, thread)
    const person = from?.person_id ?? (await findSender(ctx, mail))
    // A reply stays where its thread is, also in no lead.
    const isNews = thread === null && !isOwn && place !== 'trash' && place !== 'spam'
    const row = {
      ...columnsOf(mail, { isOwn, hasOriginal: files.raw !== null }),
      is_read: Number(isOwn || files.isSeen),
      parent_id: parent,
      person_id: person,
      lead_id: from?.lead_id ?? (isNews && person !== null ? await onlyOpenLead(ctx, person) : null),
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
        await storeFolders(ctx, id, { folders: [place], kept: [] })
        await saveReceivedAttachments(ctx, id, files.attachments)
        if (files.raw) await saveRaw(ctx, id, files.raw)
        await queueBounce(ctx, mail.bounce)
        await queueAnswers(ctx, mail)
        return { id, entity: { ...(await emails.get(ctx, id)) } }
      },
    )
    // A reply moves its thread back to the inbox. The exceptions are replies from a user or this
    // installation, and replies in the trash or spam folder.
    if (parent !== null && !isOwn && place !== 'trash' && place !== 'spam')
      await tryMoveThreadToInbox(ctx, Number(entity?.thread_id), id)
    return { id, duplicate: false, parent_id: parent, person_id: person }
  })

/**
 * Returns whether the stored e-mail is a draft from the mailbox and the new e-mail is the sent
 * version of that draft.
 */
async function isSentDraft(ctx: Context, { id }: ReceiveResult, folder: EmailFolder): Promise<boolean> {
  if (folder !== 'sent') return false
  const { status } = await ctx.db.selectFrom('emails').select('status').where('id', '=', id).executeTakeFirstOrThrow()
  const { folders, kept } = await foldersOf(ctx, id)
  return status === 'received' && [...folders, ...kept].includes('draft')
}

async function replaceDraft(ctx: Context, id: number, mail: ReceivedMail, files: Files): Promise<void> {
  const work = async (ctx: Context): Promise<void> => {
    const columns = { ...columnsOf(mail, { isOwn: true, hasOriginal: files.raw !== null }), raw_file_id: null }
    await ctx.db.updateTable('emails').set(columns).where('id', '=', id).execute()
    await storeFolders(ctx, id, foldersOfSentDraft(await foldersOf(ctx, id)))
    await saveAttachments(ctx, id, { attachment_ids: [] })
    await releaseFiles(ctx, { type: 'emails', id })
    await saveReceivedAttachments(ctx, id, files.attachments)
    if (files.raw) await saveRaw(ctx, id, files.raw)
  }
  await changeEmail(ctx, id, inputOf(mail, 'sent'), () => undefined, work)
}

/**
 * Moves the thread to the inbox. If a listener refuses the move, the received e-mail is stored
 * anyway.
 */
async function tryMoveThreadToInbox(ctx: InTransaction, thread: number, id: number): Promise<void> {
  try {
    await savepoint(ctx, () => moveThreadToInbox(ctx, thread, id))
  } catch (error) {
    if (!isOfListener(error)) throw error
    ctx.services.log.warn({ err: error, thread, email: id }, 'A listener refused to move a thread back to the inbox.')
  }
}

/** Returns the event input for listeners. */
const inputOf = (mail: ReceivedMail, folder: EmailFolder) => ({
  subject: mail.subject,
  from: mail.authors,
  to: mail.to,
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
  const sent = mail.html === null ? null : clean(mail.html)
  // The plain text becomes the body when the HTML is missing or too large to sanitize.
  const html = sent?.trim() || htmlOf(mail.text) || htmlOf(note)
  const text = mail.text ?? (sent === null ? note : plainText(sent))
  return {
    subject: mail.subject,
    subject_key: mail.subject === null ? null : textKey(mail.subject),
    html,
    text: text?.slice(0, maxTextLength).trimEnd() || null,
    to: JSON.stringify(mail.to),
    cc: JSON.stringify(mail.cc),
    bcc: JSON.stringify(mail.bcc),
    from: JSON.stringify(mail.authors),
    sender: JSON.stringify(mail.sender),
    reply_addresses: JSON.stringify(mail.replyTo),
    from_name: mail.from?.name || null,
    source: 'email',
    sender_type: isOwn ? 'user' : 'person',
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

/** Returns whether a user or this installation wrote the e-mail. */
const isFromUs = async (ctx: Context, { from }: ReceivedMail): Promise<boolean> =>
  from !== null && (await isOurs(ctx, from.address))

async function isOurs({ db, services }: Context, address: string): Promise<boolean> {
  const key = fold(address)
  if (key === fold(services.config.mailFrom)) return true
  return (await db.selectFrom('users').select('id').where('email_key', '=', key).executeTakeFirst()) !== undefined
}

/** Matches addresses of programs, which send the messages of others: forms, shops, calendars. */
const noReply = /^(do-?not-?reply|no-?reply|noreply|notifications?|mailer|forms?|wordpress|www-data|postmaster)\b/i

/**
 * Returns the id of the oldest visible person with the sender's address. An e-mail of a program is
 * filed under the person of its Reply-To address.
 */
async function findSender(ctx: Context, { from, replyTo }: ReceivedMail): Promise<number | null> {
  const own = from === null ? [] : [from.address]
  const isProgram = from === null || noReply.test(from.address) || (await isOurs(ctx, from.address))
  for (const address of isProgram ? [...replyTo, ...own] : [...own, ...replyTo]) {
    const rows = await persons.query(ctx, { email: [address], sort: ['id'] })
    const person = await rows.clearSelect().select('persons.id').limit(1).executeTakeFirst()
    if (person) return person.id
  }
  return null
}

/** Returns the id of the person's open lead, if the person has exactly one. */
async function onlyOpenLead({ db }: Context, personId: number): Promise<number | null> {
  const open = db.selectFrom('leads').select('id').where('person_id', '=', personId)
  const [lead, ...more] = await open.where('status', '=', leadStatus.open).limit(2).execute()
  return lead !== undefined && more.length === 0 ? lead.id : null
}

async function saveRaw(ctx: Context, id: number, raw: Upload): Promise<void> {
  const file = await addFile(ctx, raw, { type: 'emails', id })
  await ctx.db.updateTable('emails').set({ raw_file_id: file }).where('id', '=', id).execute()
}
