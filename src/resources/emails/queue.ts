// When a mail is to be sent: a job for it, in the transaction that queues it. A mail in the trash is not sent; it waits there, and
// is sent once somebody takes it out.
import { enqueue } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { type Filed, filedOf } from './folders.ts'

/** How the job is stored; what it does is in jobs.ts. */
export const sendKind = { kind: 'emails.send' }

/** Jobs of one mail run one after another, so there is never more than one try in flight. */
export const sequenceOf = (id: number): string => `emails.send:${id}`

export async function queueSending(ctx: Context, id: number): Promise<void> {
  await enqueue(ctx, sendKind, { email_id: id }, { sequence: sequenceOf(id) })
}

/** Queues a mail that is new, or has left the trash; `before` is where it lay. */
export async function queueIfDue(ctx: Context, id: number, before: Filed): Promise<void> {
  const hasLeft = before.folders.length === 0 || before.folders.includes('trash')
  if (!hasLeft || (await filedOf(ctx, id)).folders.includes('trash')) return
  const { status } = await ctx.db.selectFrom('emails').select('status').where('id', '=', id).executeTakeFirstOrThrow()
  if (status !== 'queued' && status !== 'sending') return
  // One that waits for its time finds the mail where it is now; one that runs may have seen it in the trash.
  const waiting = await ctx.db
    .selectFrom('jobs')
    .select('id')
    .where('sequence', '=', sequenceOf(id))
    .where('state', 'in', ['waiting', 'blocked'])
    .executeTakeFirst()
  if (!waiting) await queueSending(ctx, id)
}

/**
 * Throws 409 for a mail that may be on its way this moment: deleted, it could not be told that it was sent, and once it is restored
 * it would be sent again.
 */
export async function checkAtRest({ services }: Context, { status }: { status: string }): Promise<void> {
  if (status === 'sending' && services.mailer.isConfigured)
    throw new Problem('state_conflict', 'The e-mail is being sent this moment; delete it in a while.')
}

/** Restored as it was: what waited to be sent waits again. Of one that was being sent nobody knows. */
export async function queuedAgain(
  ctx: Context,
  { id, status }: { id: number; status: string },
): Promise<Record<string, string>> {
  if (status === 'queued') await queueSending(ctx, id)
  return status === 'sending' ? { status: 'failed', error: 'It was being sent, and may have arrived.' } : {}
}
