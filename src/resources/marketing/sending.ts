// Sends what the ledger has queued, one mail after the other over all campaigns and workers, at most ACCORD_CAMPAIGN_RATE a minute,
// counted from the ledger so that a restart does not lose the count. A mail is sent at most once: its claim is committed before it is
// handed over, and a claim whose end nobody knows makes it `uncertain`, which only a user sends again (resend.ts).
import { randomUUID } from 'node:crypto'
import { defineJob, enqueue, expedite, releaseDedupeKey } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { today } from '../../kernel/values/format.ts'
import { transaction } from '../../kernel/write/write.ts'
import { MailDeferred, MailRefused, type OutboundMessage } from '../../mail/outbound.ts'
import { withGracePeriod } from '../../mail/send-grace.ts'
import { campaignText } from './content.ts'
import { undatedOccurrence } from './occurrence.ts'
import type { Send } from './sends.ts'
import { suppressedAddresses } from './suppressions.ts'
import { unsubscribeUrl } from './unsubscribe.ts'

const kind = 'campaigns.send'
/** Seconds behind the first, second … try of a mail that the server did not take now; then it has failed. */
const ladder = [60, 300, 1800, 7200]
/** Of one job: one that crashes again and again would be given up at last. */
const maxMails = 250
const minuteMs = 60_000

/**
 * Something is queued, or will be due `at` a time. There is one job that waits at most, and never two at work: those of one sequence
 * run one after another. The one at work has let go of the key, so that what comes while it ends is seen by the next.
 */
export const scheduleSending = (ctx: Context, at: Date = ctx.time): Promise<void> =>
  transaction(ctx, async (ctx) => {
    if ((await enqueue(ctx, { kind }, {}, { key: kind, sequence: kind, runAt: at })) === null)
      await expedite(ctx, [kind], at)
  })

export const sendMails = defineJob<Record<string, never>>({
  kind,
  retryAfterSeconds: [5, 30, 60, 300],
  isMail: true,
  async run(job, _payload, { id, signal }) {
    const current = (): Context => ({ ...job, origin: 'campaign', time: job.services.clock.now() })
    await releaseDedupeKey(job, id)
    await recover(current())
    const late = withGracePeriod(signal)
    for (let tried = 0; tried < maxMails && !signal.aborted; tried++) {
      const ctx = current()
      const free = await freeAt(ctx)
      if (free > ctx.time) return scheduleSending(ctx, free)
      const mail = await take(ctx)
      if (mail === null) {
        const due = await nextDue(ctx)
        return due === null ? undefined : scheduleSending(ctx, due)
      }
      if (mail !== 'left out') await hand(current, mail, late)
    }
    await scheduleSending(current())
  },
  // What is queued is never forgotten: whatever made this one fail, the next begins.
  onBuried: (ctx) => scheduleSending(ctx),
  // It takes whatever is due.
  revive: async () => undefined,
})

/**
 * Rows that are being handed over while no other worker has the job: their worker has died, or has lost its lease. The mail server may
 * have accepted them. A worker that is alive all the same still says what became of its mail (see `hand`).
 */
async function recover(ctx: Context): Promise<void> {
  const left = await ctx.db
    .updateTable('campaign_sends')
    .set({ state: 'uncertain', error: 'The worker ended while it sent the e-mail.', updated_at: now(ctx) })
    .where('state', '=', 'queued')
    .where('run_at', 'is', null)
    .returning('id')
    .execute()
  if (left.length === 0) return
  ctx.services.log.warn(
    { sends: left.map(({ id }) => id), count: left.length },
    'Mails of campaigns were being sent when a worker ended. They are uncertain and are not sent again by themselves.',
  )
}

/** When the next mail may be handed over: as soon as there were fewer than the rate in the minute before. */
async function freeAt(ctx: Context): Promise<Date> {
  const row = await ctx.db
    .selectFrom('campaign_sends')
    .select('started_at')
    .where('started_at', '>', stamp(new Date(ctx.time.getTime() - minuteMs)))
    .orderBy('started_at', 'desc')
    .offset(ctx.services.config.campaignRate - 1)
    .limit(1)
    .executeTakeFirst()
  return row?.started_at ? new Date(new Date(row.started_at).getTime() + minuteMs) : ctx.time
}

/**
 * The next mail of each campaign that is active, the one that is due first before the others. Those of other campaigns wait until they
 * are active again, and are not even looked at: there may be many.
 */
const queued = ({ db }: Context) =>
  db
    .selectFrom('marketing_campaigns')
    .innerJoin('campaign_sends', (join) =>
      join.on('campaign_sends.id', '=', ({ selectFrom }) =>
        selectFrom('campaign_sends as waiting')
          .select('waiting.id')
          .whereRef('waiting.campaign_id', '=', 'marketing_campaigns.id')
          .where('waiting.state', '=', 'queued')
          .where('waiting.run_at', 'is not', null)
          .orderBy('waiting.run_at')
          .orderBy('waiting.id')
          .limit(1),
      ),
    )
    .where('marketing_campaigns.status', '=', 1)
    .orderBy('campaign_sends.run_at')
    .orderBy('campaign_sends.id')
    .limit(1)

async function nextDue(ctx: Context): Promise<Date | null> {
  const row = await queued(ctx).select('campaign_sends.run_at').executeTakeFirst()
  return row?.run_at ? new Date(row.run_at) : null
}

/**
 * Meant for a day on which its campaign was off, and which had passed when it was switched on. What was on its way on the day goes out
 * at its pace, however long that takes; and whoever runs a campaign after its day wants it to go out all the same (DOMAIN 20.2).
 */
function isTooLate(ctx: Context, { occurrence, created_at, active_since }: Send & { active_since: string | null }) {
  if (occurrence === undatedOccurrence) return false
  const dayOf = (time: string): string => today(new Date(time), ctx.services.config.timezone)
  return dayOf(created_at) <= occurrence && occurrence < dayOf(active_since ?? created_at)
}

/** The next mail that is due, marked as being handed over; null when there is none. */
const take = (ctx: Context): Promise<Send | 'left out' | null> =>
  transaction(ctx, async (ctx) => {
    const row = await queued(ctx)
      .selectAll('campaign_sends')
      .select('marketing_campaigns.active_since')
      .where('campaign_sends.run_at', '<=', now(ctx))
      .executeTakeFirst()
    if (!row) return null
    if ((await suppressedAddresses(ctx, [row.address])).size > 0) return leftOut(ctx, row, { state: 'suppressed' })
    if (row.person_id === null) return leftOut(ctx, row, { state: 'failed', error: 'The person was deleted.' })
    if (isTooLate(ctx, row))
      return leftOut(ctx, row, { state: 'failed', error: 'Too late: the day it was for has passed.' })
    const started = { started_at: now(ctx), run_at: null, attempts: row.attempts + 1, claim: randomUUID() }
    await ctx.db.updateTable('campaign_sends').set(started).where('id', '=', row.id).execute()
    const { active_since: _since, ...mail } = row
    return { ...mail, ...started }
  })

type Change = { state?: Send['state']; error?: string | null; sent_at?: string; run_at?: string; attempts?: number }

/** The text of a mail that has ended is not kept. An uncertain one may be sent again. */
const ended = { subject: null, content: null, run_at: null }
const hasEnded = ({ state }: Change): boolean => state !== undefined && state !== 'uncertain'

async function leftOut(ctx: Context, { id }: Send, change: Change): Promise<'left out'> {
  await ctx.db
    .updateTable('campaign_sends')
    .set({ ...ended, ...change, updated_at: now(ctx) })
    .where('id', '=', id)
    .execute()
  return 'left out'
}

/** One try. What became of it is written only by the claim that has the mail: nobody has sent it again meanwhile. */
async function hand(current: () => Context, mail: Send, late: AbortSignal): Promise<void> {
  const ctx = current()
  const settle = async (change: Change): Promise<void> => {
    const ctx = current()
    await ctx.db
      .updateTable('campaign_sends')
      // Another worker may have called it uncertain.
      .set({ state: 'queued', ...(hasEnded(change) && ended), error: null, ...change, updated_at: now(ctx) })
      .where('id', '=', mail.id)
      .where('claim', '=', mail.claim)
      .where('state', 'in', ['queued', 'uncertain'])
      .execute()
  }
  try {
    await ctx.services.mailer.send(messageOf(ctx, mail), late)
  } catch (cause) {
    return settle(afterFailure(current(), mail, cause, late.aborted))
  }
  await settle({ state: 'sent', sent_at: now(current()) })
}

function afterFailure(ctx: Context, { id, attempts }: Send, cause: unknown, isStopped: boolean): Change {
  const { log } = ctx.services
  if (cause instanceof MailRefused) return { state: 'failed', error: cause.message }
  const isKnown = cause instanceof MailDeferred
  if (isKnown && cause.mayHaveArrived) {
    log.warn({ sends: [id], count: 1 }, 'A mail of a campaign was handed over and not confirmed. It is uncertain.')
    return { state: 'uncertain', error: `${cause.message} It may have arrived all the same.` }
  }
  // Made before anything is handed over: the mailer tells of everything later as MailDeferred.
  if (!isKnown) log.error({ err: cause, send: id }, 'A mail of a campaign failed unexpectedly.')
  // What was stopped with the worker has not failed.
  if (isStopped) return { run_at: now(ctx), attempts: attempts - 1 }
  const error = isKnown ? cause.message : 'It could not be sent.'
  const delay = ladder[attempts - 1]
  return delay === undefined
    ? { state: 'failed', error }
    : { error, run_at: stamp(new Date(ctx.time.getTime() + delay * 1000)) }
}

function messageOf(ctx: Context, { address, message_id, subject, content }: Send): OutboundMessage {
  const { mailFrom, mailFromName } = ctx.services.config
  const url = unsubscribeUrl(ctx, address)
  return {
    messageId: message_id,
    date: ctx.time,
    from: { address: mailFrom, name: mailFromName },
    to: [address],
    cc: [],
    bcc: [],
    subject: subject ?? '',
    html: content ?? '',
    text: campaignText(content ?? '', url),
    references: [],
    headers: {
      'List-Unsubscribe': `<${url}>`,
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      // Keeps replies of people on holiday away.
      Precedence: 'bulk',
    },
    attachments: [],
  }
}
