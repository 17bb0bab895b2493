// Defines the background jobs of e-mails. They send e-mails, poll the mailbox every five minutes,
// and delete the original bytes of received e-mails after 30 days.

import { sql } from 'kysely'
import { defineJob } from '../../jobs/queue.ts'
import type { Schedule } from '../../jobs/schedules.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { daysAfter } from '../../kernel/runtime/clock.ts'
import { transaction } from '../../kernel/write/write.ts'
import { releaseFiles } from '../files/attach.ts'
import { pollEmails } from './poll.ts'
import { queueSending, sendKind, sendTimeOf } from './queue.ts'
import { markFailed, sendEmail } from './sending.ts'

interface Due {
  due: string
}

const rawDays = 30
const emailsPerTransaction = 100

/** Sends an e-mail. Retries after 1, 5, 30 and 120 minutes. */
const send = defineJob<{ email_id: number }>({
  ...sendKind,
  concurrency: 2,
  retryAfterSeconds: [60, 300, 1800, 7200],
  isMail: true,
  async run(ctx, { email_id: id }, job) {
    // The time may have changed after a worker claimed the job.
    const at = await sendTimeOf(ctx, id)
    if (at > ctx.time) return { runAgainAt: at }
    await sendEmail(ctx, id, job)
    return undefined
  },
  onBuried: (ctx, { email_id: id }, cause) => markFailed(ctx, id, cause),
  // Checks only the status. The first attempt of the revived job then changes the status.
  async revive(ctx, { email_id: id }): Promise<undefined> {
    const mail = await ctx.db.selectFrom('emails').select('status').where('id', '=', id).executeTakeFirst()
    if (mail?.status !== 'failed') throw new Problem('state_conflict', 'The e-mail is not waiting for another try.')
  },
})

/**
 * Creates jobs for queued e-mails that have no job, for example because an operator deleted the
 * job.
 */
const requeue = defineJob<Due>({
  kind: 'emails.requeue',
  async run(ctx, _payload, { signal }) {
    for (const id of await emailsWithoutJob(ctx)) {
      if (signal.aborted) return
      await transaction(ctx, (ctx) => queueSending(ctx, id))
    }
  },
})

async function emailsWithoutJob({ db }: Context): Promise<number[]> {
  const job = sql`select 1 from jobs where jobs.sequence = 'emails.send:' || emails.id and jobs.state <> 'buried'`
  const trash = sql`select 1 from email_folders as place where place.email_id = emails.id and place.folder = 'trash'`
  const rows = db.selectFrom('emails').select('id').where('status', 'in', ['queued', 'sending'])
  const lost = rows.where(sql<boolean>`not exists (${job})`).where(sql<boolean>`not exists (${trash})`)
  return (await lost.orderBy('id').execute()).map(({ id }) => id)
}

/**
 * Polls the mailbox. A failed poll is not retried, because the next poll follows in five minutes.
 */
const fetchMails = defineJob<Due>({
  kind: 'emails.poll',
  retryAfterSeconds: [],
  async run(ctx, _payload, { signal }) {
    await pollEmails(ctx, signal)
  },
})

export const pruneRaw = defineJob<Due>({
  kind: 'emails.prune-raw',
  async run(ctx, _payload, { signal }) {
    for (let gone = emailsPerTransaction; gone === emailsPerTransaction && !signal.aborted; )
      gone = await pruneSome(ctx)
  },
})

/**
 * Releases the original bytes of up to `emailsPerTransaction` old e-mails and returns their number.
 * Keeps the versions of the e-mails, because replies do not contain original bytes. The next
 * clean-up of files deletes the bytes.
 */
const pruneSome = (ctx: Context): Promise<number> =>
  transaction(ctx, async (ctx) => {
    const rows = await ctx.db
      .selectFrom('emails')
      .innerJoin('files', 'files.id', 'emails.raw_file_id')
      .select(['emails.id', 'files.id as file'])
      .where('files.created_at', '<', daysAfter(ctx.time, -rawDays))
      .orderBy('emails.id')
      .limit(emailsPerTransaction)
      .execute()
    for (const { id, file } of rows) {
      await ctx.db.updateTable('emails').set({ raw_file_id: null }).where('id', '=', id).execute()
      await releaseFiles(ctx, { type: 'emails', id }, [file])
    }
    return rows.length
  })

export const jobs = [send, requeue, fetchMails, pruneRaw]

export const schedules: readonly Schedule[] = [
  {
    name: 'emails-poll',
    at: 5,
    job: fetchMails,
    isWanted: ({ config }) => config.mailReceiver === 'webklex-imap',
  },
  { name: 'emails-requeue', at: 60, job: requeue },
  { name: 'emails-prune-raw', at: '03:00', job: pruneRaw },
]
