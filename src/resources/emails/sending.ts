// Sends a mail that is queued (DOMAIN 14.2): queued → sending → sent, or failed; in between queued again until the next try. Each
// step is an `email.update` in a transaction of its own. A server that took the mail and a crash before that was stored leave it
// `sending`: it is sent again then, with the same Message-ID, by which the recipient's server knows it. So a mail is accepted at
// least once, and of each at most one try is in flight.
import { Readable } from 'node:stream'
import { operations } from '../../contract/operations.gen.ts'
import { pathTo } from '../../contract/paths.ts'
import { BuryJob, type JobRun } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import type { Source } from '../../kernel/files/download.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { withRemotes } from '../../kernel/values/html.ts'
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
import { change } from './changes.ts'
import { delivered, filedOf, putInto } from './folders.ts'
import { answerAddress } from './parents.ts'
import { hiddenOf, refusal, withoutHidden } from './refusals.ts'
import { emails } from './resource.ts'
import { referencesOf } from './threads.ts'

/** One try. Throws when the mail was not taken; Bury when it never will be. */
export async function sendMail(ctx: Context, id: number, job: JobRun): Promise<void> {
  if (!(await begin(ctx, id, job.attempt))) return
  let sent: SentMail
  let hidden: readonly string[] = []
  try {
    const message = await messageOf(ctx, id)
    hidden = hiddenOf(message)
    sent = await ctx.services.mailer.send(message, withGracePeriod(job.signal))
  } catch (cause) {
    if (cause instanceof MailRefused) throw new BuryJob(withoutHidden(cause.message, hidden), { cause })
    const error = deferral(cause, hidden)
    // A run that is told to stop leaves the mail as it is; so does one whose job is another worker's. `giveUp` has the last words.
    if (!job.isLast && !job.signal.aborted) await putOff(ctx, id, error.message, job)
    throw error
  }
  await accept(ctx, id, { refused: refusal(sent, hidden) })
}

/** It waits for the next try. */
const putOff = (ctx: Context, id: number, error: string, job: JobRun): Promise<boolean> =>
  transaction(
    ctx,
    async (ctx) => (await job.holdsLease(ctx)) && step(ctx, id, ['sending'], { status: 'queued', error }),
  )

/** It is sent, whoever likes it: a listener that refuses to hear of it, or fails, must not have it sent again. */
async function accept(ctx: Context, id: number, { refused }: { refused: string | null }): Promise<void> {
  const columns: Step = { status: 'sent', error: refused, sent_at: stamp(ctx.services.clock.now()) }
  const file = async (ctx: Context): Promise<void> => putInto(ctx, id, delivered(await filedOf(ctx, id)))
  try {
    await step(ctx, id, ['sending', 'queued'], columns, file)
  } catch (cause) {
    if (!isOfListener(cause)) throw cause
    ctx.services.log.error(
      { err: cause, email: id },
      'A listener refused that an e-mail was sent, or failed; it was sent all the same.',
    )
    await transaction(ctx, async (ctx) => {
      await ctx.db.updateTable('emails').set(columns).where('id', '=', id).execute()
      await file(ctx)
      await emails.touch(ctx, id)
    })
  }
}

/** No more tries. In the transaction that says so of the job. */
export const giveUp = async (ctx: Context, id: number, error: string): Promise<void> =>
  void (await step(ctx, id, ['queued', 'sending'], { status: 'failed', error }))

/** Whether it is to be sent: it is there, nobody has thrown it away, and it was not sent before. */
const begin = (ctx: Context, id: number, attempts: number): Promise<boolean> =>
  transaction(ctx, async (ctx) => {
    const mail = await ctx.db
      .selectFrom('emails')
      .select(['status', 'attempts'])
      .where('id', '=', id)
      .executeTakeFirst()
    if (!mail) return false
    if ((await filedOf(ctx, id)).folders.includes('trash')) {
      await step(ctx, id, ['sending'], { status: 'queued' })
      return false
    }
    // Left by a try that never came to its end.
    if (mail.status === 'sending' && mail.attempts === attempts) return true
    // A job of a failed mail is one that somebody wants to be tried again.
    return step(ctx, id, ['queued', 'sending', 'failed'], { status: 'sending', attempts })
  })

interface Step {
  status: 'queued' | 'sending' | 'sent' | 'failed'
  attempts?: number
  error?: string | null
  sent_at?: string
}

/** False when the mail is gone, or in none of these states. */
const step = (
  ctx: Context,
  id: number,
  from: readonly string[],
  columns: Step,
  also: (ctx: Context) => Promise<void> = async () => undefined,
): Promise<boolean> =>
  transaction(ctx, async (ctx) => {
    const mail = await ctx.db.selectFrom('emails').select('status').where('id', '=', id).executeTakeFirst()
    if (!mail || !from.includes(mail.status)) return false
    await change(
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

async function messageOf(ctx: Context, id: number): Promise<OutboundMessage> {
  const { services } = ctx
  const mail = await ctx.db.selectFrom('emails').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  const list = (column: 'from' | 'reply_to' | 'cc' | 'bcc'): string[] => JSON.parse(mail[column]) as string[]
  const chain = ((await referencesOf(ctx, [id])).get(id) ?? []).filter((each) => each !== mail.message_id)
  const answered = chain.at(-1)
  const files = await filesOf(ctx, id)
  const invitation = files.find(({ name, contentType }) => name === 'invite.ics' && contentType === 'text/calendar')
  return {
    messageId: mail.message_id,
    date: services.clock.now(),
    from: { address: list('from')[0] ?? services.config.mailFrom, name: mail.name ?? '' },
    replyTo: answerAddress(services, mail.thread_id ?? id),
    to: list('reply_to'),
    cc: list('cc'),
    bcc: list('bcc'),
    subject: mail.subject ?? '',
    html: withRemotes(mail.reply ?? '', (url) => ownPicture(id, files, url) ?? url),
    text: mail.text ?? '',
    ...(answered !== undefined && { inReplyTo: answered }),
    references: chain,
    // What nobody wrote by hand is not to be answered by a machine.
    ...(mail.user_id === null && { headers: { 'Auto-Submitted': 'auto-generated' } }),
    attachments: files.filter((file) => file !== invitation),
    ...(invitation && { calendar: { method: 'REQUEST', content: await textOf(invitation.content()) } }),
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
  return source.size === 0 ? Readable.from([]) : source.read(0, source.size - 1)
}

async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** A link of ours to one of the mail's files becomes the file itself: nobody outside could follow it. */
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
