// Sends the queued e-mails of all campaigns one by one, at most ACCORD_CAMPAIGN_RATE per minute
// over all workers. The rate is counted in the ledger, so a restart does not reset it. A worker
// commits its claim of an e-mail before it calls the mail server, so an e-mail is sent at most
// once. A claimed e-mail without a result becomes `uncertain`, and only a user can send it again
// (resend.ts). The text is made after the claim, so a corrected campaign corrects what is queued.

import { randomUUID } from 'node:crypto'
import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import { defineJob, enqueue, expedite, releaseDedupeKey } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { stamp } from '../../kernel/runtime/clock.ts'
import { today } from '../../kernel/values/format.ts'
import { transaction } from '../../kernel/write/write.ts'
import { MailDeferred, MailRefused, type OutboundMessage } from '../../mail/outbound.ts'
import { withGracePeriod } from '../../mail/send-grace.ts'
import type { Texts } from '../../texts/texts.ts'
import { ownerOf, senderOf } from '../emails/sender.ts'
import { textsOfPerson } from '../persons/language.ts'
import { addressesIn, primaryAddressIn } from './addresses.ts'
import { campaignText, draftOf, type FilledCampaign, fillCampaign } from './content.ts'
import { placeholdersForEditor } from './editor.ts'
import { exclusionNotes, findExclusions } from './exclusions.ts'
import { undatedOccurrence } from './occurrence.ts'
import { unsubscribeUrl } from './unsubscribe.ts'

const kind = 'campaigns.send'
/**
 * Seconds to wait after the first, second, third and fourth temporary failure of an e-mail. The
 * fifth failure is final.
 */
const ladder = [60, 300, 1800, 7200]
/**
 * The maximum number of e-mails that one job sends. The job queue buries a job after several
 * crashes in a row, so one job must not send a long list of e-mails.
 */
const maxMails = 250
const minuteMs = 60_000

export type Send = Selectable<DB['campaign_sends']>

/**
 * Schedules the send job for the given time, or moves the waiting send job to that time if it is
 * earlier. At most one send job waits, and at most one runs. A running job has already released its
 * deduplication key, so it can schedule the next job.
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
      if (mail !== 'skipped') await hand(current, mail, late)
    }
    await scheduleSending(current())
  },
  // A buried job does not run again, so a new job must send the remaining e-mails.
  onBuried: (ctx) => scheduleSending(ctx),
  // A revived job reads the due e-mails from the ledger, so nothing needs to be restored.
  revive: async () => undefined,
})

/**
 * Marks claimed e-mails without a result as uncertain. Their worker died or lost its lease, and the
 * mail server may have accepted the e-mail. A worker that is still alive stores its result later
 * (see `hand`).
 */
async function recover(ctx: Context): Promise<void> {
  const left = await ctx.db
    .updateTable('campaign_sends')
    .set({ state: 'uncertain', error: 'The worker ended while it sent the e-mail.', updated_at: now(ctx) })
    .where('state', '=', 'sending')
    .returning('id')
    .execute()
  if (left.length === 0) return
  ctx.services.log.warn(
    { sends: left.map(({ id }) => id), count: left.length },
    'A worker ended while it sent e-mails of campaigns. They are uncertain and are not sent again automatically.',
  )
}

/** Returns the earliest time at which the rate limit allows the next e-mail. */
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
 * Selects the queued e-mail with the earliest `run_at` among the active campaigns. The query begins
 * with the active campaigns, because inactive campaigns may have many queued e-mails.
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
          // For the index, although every queued e-mail has a time.
          .where('waiting.run_at', 'is not', null)
          .orderBy('waiting.run_at')
          .orderBy('waiting.id')
          .limit(1),
      ),
    )
    .where('marketing_campaigns.is_active', '=', 1)
    .orderBy('campaign_sends.run_at')
    .orderBy('campaign_sends.id')
    .limit(1)

async function nextDue(ctx: Context): Promise<Date | null> {
  const row = await queued(ctx).select('campaign_sends.run_at').executeTakeFirst()
  return row?.run_at ? new Date(row.run_at) : null
}

/**
 * Returns whether the event day of the e-mail passed while its campaign was inactive.
 * An e-mail is not too late if its campaign stayed active, or if a user started the run after the
 * event day.
 */
function isTooLate(ctx: Context, { occurrence, created_at, active_since }: Send & { active_since: string | null }) {
  if (occurrence === undatedOccurrence) return false
  const dayOf = (time: string): string => today(new Date(time), ctx.services.config.timezone)
  return dayOf(created_at) <= occurrence && occurrence < dayOf(active_since ?? created_at)
}

/**
 * Claims and returns the next due e-mail. Returns null when no e-mail is due. Returns 'skipped'
 * when the next e-mail must not be sent.
 */
const take = (ctx: Context): Promise<Send | 'skipped' | null> =>
  transaction(ctx, async (ctx) => {
    const row = await queued(ctx)
      .selectAll('campaign_sends')
      .select('marketing_campaigns.active_since')
      .where('campaign_sends.run_at', '<=', now(ctx))
      .executeTakeFirst()
    if (!row) return null
    const exclusion = (await findExclusions(ctx, [row.address])).get(row.address)
    if (exclusion) return skip(ctx, row, { state: 'suppressed', error: exclusionNotes[exclusion] })
    if (row.person_id === null) return skip(ctx, row, { state: 'failed', error: 'The person was deleted.' })
    const person = await ctx.db
      .selectFrom('persons')
      .select('emails')
      .where('id', '=', row.person_id)
      .executeTakeFirst()
    if (!person || !addressesIn(person.emails).includes(row.address))
      return skip(ctx, row, { state: 'failed', error: 'The person no longer has this address.' })
    if (primaryAddressIn(person.emails) !== row.address)
      return skip(ctx, row, { state: 'failed', error: 'The person has another first address now.' })
    if (isTooLate(ctx, row))
      return skip(ctx, row, { state: 'failed', error: 'Too late: the day of the event has passed.' })
    const claim = { state: 'sending', run_at: null, claim: randomUUID() } as const
    const started = { ...claim, started_at: now(ctx), attempts: row.attempts + 1 }
    await ctx.db.updateTable('campaign_sends').set(started).where('id', '=', row.id).execute()
    const { active_since: _since, ...mail } = row
    return { ...mail, ...started }
  })

type Change = { state?: Send['state']; error?: string | null; sent_at?: string; run_at?: string; attempts?: number }

async function skip(ctx: Context, { id }: Send, change: Change): Promise<'skipped'> {
  await ctx.db
    .updateTable('campaign_sends')
    .set({ run_at: null, ...change, updated_at: now(ctx) })
    .where('id', '=', id)
    .execute()
  return 'skipped'
}

/**
 * Hands one e-mail to the mail server and stores the result. If another worker has claimed the
 * e-mail since, the result is discarded.
 */
async function hand(current: () => Context, mail: Send, late: AbortSignal): Promise<void> {
  const ctx = current()
  const settle = async (change: Change): Promise<void> => {
    const ctx = current()
    await ctx.db
      .updateTable('campaign_sends')
      // The row may have the state `uncertain`, because another worker considered this worker dead.
      // The result replaces that state.
      .set({ state: 'queued', error: null, ...change, updated_at: now(ctx) })
      .where('id', '=', mail.id)
      .where('claim', '=', mail.claim)
      .where('state', 'in', ['sending', 'uncertain'])
      .execute()
  }
  const texts = await textsOfPerson(ctx, mail.person_id)
  const filled = await fillNow(ctx, mail, texts)
  if (typeof filled === 'string') return settle({ state: 'failed', error: filled })
  try {
    await ctx.services.mailer.send(await messageOf(ctx, mail, filled, texts), late)
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
    log.warn({ sends: [id], count: 1 }, 'The mail server did not confirm an e-mail of a campaign. It is uncertain.')
    return { state: 'uncertain', error: `${cause.message} It may have arrived.` }
  }
  // Any other error means that the mail server did not get the e-mail, because the mailer reports
  // every error after the handover as MailDeferred.
  if (!isKnown) log.error({ err: cause, send: id }, 'An e-mail of a campaign failed unexpectedly.')
  // An attempt that a server shutdown aborted does not count.
  if (isStopped) return { run_at: now(ctx), attempts: attempts - 1 }
  const error = isKnown ? cause.message : 'It could not be sent.'
  const delay = ladder[attempts - 1]
  return delay === undefined
    ? { state: 'failed', error }
    : { error, run_at: stamp(new Date(ctx.time.getTime() + delay * 1000)) }
}

/** Makes the text of an e-mail. Returns a sentence when it must not or cannot be sent. */
async function fillNow(
  ctx: Context,
  { campaign_id, person_id, address }: Send,
  texts: Texts,
): Promise<FilledCampaign | string> {
  const draft = await draftOf(ctx, campaign_id)
  if (!draft) return 'The campaign or its template was deleted.'
  const facts = await placeholdersForEditor(ctx, draft.changed_by_id, person_id ?? 0, texts)
  if (typeof facts === 'string') return facts
  return fillCampaign(ctx, draft, facts, { url: unsubscribeUrl(ctx, address), texts })
}

async function messageOf(
  ctx: Context,
  { address, message_id, person_id }: Send,
  { subject, content }: FilledCampaign,
  texts: Texts,
): Promise<OutboundMessage> {
  const { mailFrom } = ctx.services.config
  const from = await senderOf(ctx, await ownerOf(ctx, { lead_id: null, person_id }))
  const url = unsubscribeUrl(ctx, address)
  return {
    messageId: message_id,
    date: ctx.time,
    from,
    sender: mailFrom,
    ...(from.isOwner && { replyTo: mailFrom }),
    to: [address],
    cc: [],
    bcc: [],
    subject,
    html: content,
    text: campaignText(content, url, texts),
    references: [],
    headers: {
      'List-Unsubscribe': `<${url}>`,
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      // Asks mail servers not to send automatic replies.
      Precedence: 'bulk',
    },
    attachments: [],
  }
}
