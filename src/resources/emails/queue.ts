// Queues e-mails for sending: the job is created in the transaction of the change. A trashed e-mail
// is not sent until it is restored.
import { enqueue } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { type EmailFolders, foldersOf } from './folders.ts'

/** The kind of the job; jobs.ts defines its work. */
export const sendKind = { kind: 'emails.send' }

/** Jobs of one e-mail run in sequence, so that at most one try is in progress. */
export const sequenceOf = (id: number): string => `emails.send:${id}`

export async function queueSending(ctx: Context, id: number): Promise<void> {
  await enqueue(ctx, sendKind, { email_id: id }, { sequence: sequenceOf(id) })
}

/**
 * Queues an e-mail that is new or was restored from the trash; `before` has its previous folders.
 */
export async function queueIfDue(ctx: Context, id: number, before: EmailFolders): Promise<void> {
  const hasLeft = before.folders.length === 0 || before.folders.includes('trash')
  if (!hasLeft || (await foldersOf(ctx, id)).folders.includes('trash')) return
  const { status } = await ctx.db.selectFrom('emails').select('status').where('id', '=', id).executeTakeFirstOrThrow()
  if (status !== 'queued' && status !== 'sending') return
  // A waiting job reads the folders when it runs; a running one may have read them while the e-mail
  // was trashed.
  const waiting = await ctx.db
    .selectFrom('jobs')
    .select('id')
    .where('sequence', '=', sequenceOf(id))
    .where('state', 'in', ['waiting', 'blocked'])
    .executeTakeFirst()
  if (!waiting) await queueSending(ctx, id)
}

/**
 * Throws 409 for an e-mail that is being sent. After deletion the job could not record the result,
 * and a restored e-mail would be sent again.
 */
export async function checkNotSending({ services }: Context, { status }: { status: string }): Promise<void> {
  if (status === 'sending' && services.mailer.isConfigured)
    throw new Problem('state_conflict', 'The e-mail is being sent; delete it later.')
}

/**
 * Columns of a restored e-mail. A queued one is queued again; for one that was being sent, the
 * result is unknown.
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
