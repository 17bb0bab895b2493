// Sends a queued e-mail. Its status goes from queued to sending to sent or failed,
// and back to queued between attempts. Each status change is an `email.update` in a separate
// transaction. After a crash, the e-mail may be sent twice with the same Message-ID.
import type { Readable } from 'node:stream'
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import { BuryJob, type JobRun } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import { readAll, type Source } from '../../kernel/files/download.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { withRemotes } from '../../kernel/values/html.ts'
import { mailDocument } from '../../kernel/values/mail-layout.ts'
import { isOfListener, transaction } from '../../kernel/write/write.ts'
import {
  MailDeferred,
  MailRefused,
  type OutboundAttachment,
  type OutboundMessage,
  type SentMail,
} from '../../mail/outbound.ts'
import { withGracePeriod } from '../../mail/send-grace.ts'
import { attachmentRows } from './attachments.ts'
import { changeEmail } from './change-email.ts'
import { foldersOf, foldersWhenSent, storeFolders } from './folders.ts'
import { answerAddress } from './parents.ts'
import { describeRefusals, hiddenRecipients, withoutHidden } from './refused-recipients.ts'
import { emails } from './resource.ts'
import { referencesOf } from './threads.ts'

/**
 * Makes one attempt to send the e-mail. Throws when the mail server did not accept the e-mail.
 * Throws `BuryJob`, which ends the retries, when the mail server refuses the e-mail for good.
 */
export async function sendEmail(ctx: Context, id: number, job: JobRun): Promise<void> {
  if (!(await markSending(ctx, id, job.attempt))) return
  let sent: SentMail
  let hidden: readonly string[] = []
  try {
    const message = await composeMessage(ctx, id)
    hidden = hiddenRecipients(message)
    sent = await ctx.services.mailer.send(message, withGracePeriod(job.signal))
  } catch (cause) {
    if (cause instanceof MailRefused) throw new BuryJob(withoutHidden(cause.message, hidden), { cause })
    const error = deferral(cause, hidden)
    // After an abort, for example because the lease was lost, another worker continues. The status
    // then stays unchanged. After the last attempt, `markFailed` stores the error.
    if (!job.isLast && !job.signal.aborted) await requeueEmail(ctx, id, error.message, job)
    throw error
  }
  await markSent(ctx, id, { refused: describeRefusals(sent, hidden) })
}

/**
 * Sets the e-mail back to `queued` for the next attempt, unless another worker has taken over the
 * job or the e-mail is no longer `sending`. Returns whether it changed the status.
 */
const requeueEmail = (ctx: Context, id: number, error: string, job: JobRun): Promise<boolean> =>
  transaction(
    ctx,
    async (ctx) => (await job.holdsLease(ctx)) && changeStatus(ctx, id, ['sending'], { status: 'queued', error }),
  )

/**
 * Marks the e-mail as sent, even if a listener refuses or fails. Otherwise the e-mail would be sent
 * again.
 */
async function markSent(ctx: Context, id: number, { refused }: { refused: string | null }): Promise<void> {
  const columns: StatusChange = { status: 'sent', error: refused, sent_at: stamp(ctx.services.clock.now()) }
  const file = async (ctx: Context): Promise<void> => storeFolders(ctx, id, foldersWhenSent(await foldersOf(ctx, id)))
  try {
    await changeStatus(ctx, id, ['sending', 'queued'], columns, file)
  } catch (cause) {
    if (!isOfListener(cause)) throw cause
    ctx.services.log.error(
      { err: cause, email: id },
      'A listener refused or failed after an e-mail was sent; the e-mail stays sent.',
    )
    await transaction(ctx, async (ctx) => {
      await ctx.db.updateTable('emails').set(columns).where('id', '=', id).execute()
      await file(ctx)
      await emails.touch(ctx, id)
    })
  }
}

/** Marks the e-mail as failed, in the transaction that ends the retries of the job. */
export const markFailed = async (ctx: Context, id: number, error: string): Promise<void> =>
  void (await changeStatus(ctx, id, ['queued', 'sending'], { status: 'failed', error }))

/**
 * Marks the e-mail as being sent. Returns false for an e-mail that must not be sent, because it was
 * deleted, trashed or already sent.
 */
const markSending = (ctx: Context, id: number, attempts: number): Promise<boolean> =>
  transaction(ctx, async (ctx) => {
    const mail = await ctx.db
      .selectFrom('emails')
      .select(['status', 'attempts'])
      .where('id', '=', id)
      .executeTakeFirst()
    if (!mail) return false
    if ((await foldersOf(ctx, id)).folders.includes('trash')) {
      await changeStatus(ctx, id, ['sending'], { status: 'queued' })
      return false
    }
    // An earlier run of this attempt crashed after it had set the status.
    if (mail.status === 'sending' && mail.attempts === attempts) return true
    // The status is `failed` when an operator has revived the job of a failed e-mail.
    return changeStatus(ctx, id, ['queued', 'sending', 'failed'], { status: 'sending', attempts })
  })

interface StatusChange {
  status: 'queued' | 'sending' | 'sent' | 'failed'
  attempts?: number
  error?: string | null
  sent_at?: string
}

/**
 * Changes the status. Returns false when the e-mail was deleted or has none of the statuses `from`.
 */
const changeStatus = (
  ctx: Context,
  id: number,
  from: readonly string[],
  columns: StatusChange,
  also: (ctx: Context) => Promise<void> = async () => undefined,
): Promise<boolean> =>
  transaction(ctx, async (ctx) => {
    const mail = await ctx.db.selectFrom('emails').select('status').where('id', '=', id).executeTakeFirst()
    if (!mail || !from.includes(mail.status)) return false
    await changeEmail(
      ctx,
      id,
      columns,
      () => undefined,
      async (ctx) => {
        await ctx.db.updateTable('emails').set(columns).where('id', '=', id).execute()
        await also(ctx)
      },
    )
    return true
  })

function deferral(cause: unknown, hidden: readonly string[]): Error {
  if (!(cause instanceof MailDeferred)) return cause instanceof Error ? cause : new Error(String(cause))
  const reason = withoutHidden(cause.message, hidden)
  return new Error(cause.mayHaveArrived ? `${reason} It may have arrived.` : reason, { cause })
}

async function composeMessage(ctx: Context, id: number): Promise<OutboundMessage> {
  const { services } = ctx
  const mail = await ctx.db.selectFrom('emails').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const list = (column: 'from' | 'to' | 'cc' | 'bcc'): string[] => JSON.parse(mail[column]) as string[]
  const chain = ((await referencesOf(ctx, [id])).get(id) ?? []).filter((each) => each !== mail.message_id)
  const answered = chain.at(-1)
  const files = await filesOf(ctx, id)
  // Workflows write e-mails without an author.
  const isGenerated = mail.user_id === null
  const shown = withRemotes(mail.html ?? '', (url) => ownPicture(id, files, url) ?? url)
  const invitation = files.find(({ name, contentType }) => name === 'invite.ics' && contentType === 'text/calendar')
  return {
    messageId: mail.message_id,
    date: services.clock.now(),
    from: { address: list('from')[0] ?? services.config.mailFrom, name: mail.from_name ?? '' },
    sender: services.config.mailFrom,
    replyTo: answerAddress(services, mail.thread_id ?? id),
    to: list('to'),
    cc: list('cc'),
    bcc: list('bcc'),
    subject: mail.subject ?? '',
    html: isGenerated && shown !== '' ? mailDocument(shown, { language: null, direction: 'auto' }) : shown,
    text: mail.text ?? '',
    ...(answered !== undefined && { inReplyTo: answered }),
    references: chain,
    // The header keeps mail programs from sending automatic replies.
    ...(isGenerated && { headers: { 'Auto-Submitted': 'auto-generated' } }),
    attachments: files.filter((file) => file !== invitation),
    ...(invitation && { calendar: await readTextStream(invitation.content()) }),
  }
}

interface File extends OutboundAttachment {
  id: number
  fileId: number
  contentId: string
}

async function filesOf(ctx: Context, id: number): Promise<File[]> {
  const { files, config } = ctx.services
  return Promise.all(
    (await attachmentRows(ctx, [id])).map(async (row) => {
      const source = await files.find(row.sha256)
      return {
        id: row.id,
        fileId: row.file_id,
        name: row.name,
        contentType: row.content_type,
        contentId: row.content_id ?? `${row.file_id}@${config.mailDomain}`,
        content: () => streamOf(source, row.name),
      }
    }),
  )
}

function streamOf(source: Source | null, name: string): Readable {
  if (!source) throw new MailDeferred(`The bytes of the attachment ${name} are gone.`)
  return readAll(source)
}

async function readTextStream(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/**
 * Returns the `cid:` URL of the attachment that a link points to, or undefined for any other link.
 * Recipients cannot open links to attachments, so the picture is embedded.
 */
function ownPicture(id: number, files: readonly File[], url: string): string | undefined {
  const { pathname } = new URL(url)
  const file = files.find((each) =>
    [
      pathTo(operations.downloadFile, each.fileId),
      pathTo(operations.downloadSignedFile, each.fileId),
      pathTo(operations.downloadEmailAttachment, id, each.id),
    ].includes(pathname),
  )
  return file && `cid:${file.contentId}`
}
