// Queues e-mails for sending. The job is created in the transaction that queues the e-mail. A
// trashed e-mail is not sent until it is restored.
import { enqueue } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { transaction } from '../../kernel/write/write.ts'
import { type EmailFolders, foldersOf } from './folders.ts'

/** The job kind; jobs.ts defines the job itself. */
export const sendKind = { kind: 'emails.send' }

/**
 * Returns the sequence of an e-mail's jobs. Jobs of one sequence run one after the other, so an
 * e-mail never has two attempts in progress.
 */
export const sequenceOf = (id: number): string => `emails.send:${id}`

/** Creates the job, which runs at the time to send the e-mail, or at once. */
export async function queueSending(ctx: Context, id: number): Promise<void> {
  await enqueue(ctx, sendKind, { email_id: id }, { sequence: sequenceOf(id), runAt: await sendTimeOf(ctx, id) })
}

/** Returns the time to send the e-mail, which is not before the present. */
export async function sendTimeOf({ db, time }: Context, id: number): Promise<Date> {
  const mail = await db.selectFrom('emails').select('send_at').where('id', '=', id).executeTakeFirst()
  const wanted = mail?.send_at ? new Date(mail.send_at) : time
  return wanted > time ? wanted : time
}

/** Moves the waiting job to the time to send the e-mail, after that time has changed. */
export const moveSending = (ctx: Context, id: number): Promise<void> =>
  transaction(ctx, async (ctx) => {
    await ctx.db
      .updateTable('jobs')
      .set({ run_at: stamp(await sendTimeOf(ctx, id)), updated_at: now(ctx) })
      .where('sequence', '=', sequenceOf(id))
      .where('state', '=', 'waiting')
      .execute()
    ctx.unit.wakes = true
  })

/**
 * Creates the job for an e-mail that is new or was restored from the trash. `before` are the
 * folders before the change.
 */
export async function queueIfDue(ctx: Context, id: number, before: EmailFolders): Promise<void> {
  const hasLeft = before.folders.length === 0 || before.folders.includes('trash')
  if (!hasLeft || (await foldersOf(ctx, id)).folders.includes('trash')) return
  const { status } = await ctx.db.selectFrom('emails').select('status').where('id', '=', id).executeTakeFirstOrThrow()
  if (status !== 'queued' && status !== 'sending') return
  // A waiting job is enough, because it reads the folders when it starts. A running job is not: it
  // may have read the folders while the e-mail was in the trash.
  const waiting = await ctx.db
    .selectFrom('jobs')
    .select('id')
    .where('sequence', '=', sequenceOf(id))
    .where('state', 'in', ['waiting', 'blocked'])
    .executeTakeFirst()
  if (!waiting) await queueSending(ctx, id)
}

/**
 * Throws 409 for the deletion of an e-mail that is being sent, because the job could no longer
 * store the result.
 */
export async function checkNotSending({ services }: Context, { status }: { status: string }): Promise<void> {
  if (status === 'sending' && services.mailer.isConfigured)
    throw new Problem('state_conflict', 'The e-mail is being sent; delete it later.')
}

/**
 * Returns the columns to change in a restored e-mail. A queued e-mail is queued again. An e-mail
 * that was being sent becomes failed, because the result is unknown.
 */
export async function restoreSending(
  ctx: Context,
  { id, status }: { id: number; status: string },
): Promise<Record<string, string>> {
  if (status === 'queued') await queueSending(ctx, id)
  return status === 'sending'
    ? { status: 'failed', error: 'The e-mail was deleted while it was being sent; it may have arrived.' }
    : {}
}
