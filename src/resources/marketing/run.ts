// Starts campaign runs. The daily run starts the campaigns whose event is on that
// day, and the campaigns without an event. A user can also start a single campaign. queue.ts queues
// the e-mails, and sending.ts sends them.
import { enqueue } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { isOfListener, transaction, write } from '../../kernel/write/write.ts'
import { type AudienceColumns, audienceProblem, presentAudience } from './audience.ts'
import { campaigns } from './campaigns.ts'
import { editorProblem } from './editor.ts'
import { occurrenceOf } from './occurrence.ts'
import { type CampaignRun, queueAll, queueMails } from './queue.ts'
import { scheduleSending } from './sending.ts'

const keyOf = (run: CampaignRun): string => `campaigns.queue:${run.campaign_id}:${run.occurrence}`

/**
 * Milliseconds before the queue job starts when a command runs the campaigns. The command queues
 * the e-mails itself in this time.
 */
const headStartMs = 60_000

async function start(ctx: Context, run: CampaignRun, runAt = ctx.time): Promise<void> {
  const id = run.campaign_id
  const show = async (ctx: Context): Promise<Snapshot> => ({ ...(await campaigns.get(ctx, id)) })
  const about = { entity: 'campaigns', input: { occurrence: run.occurrence }, id, before: await show(ctx) }
  await write(ctx, 'marketing.campaign.run', about, async (ctx) => {
    await ctx.db
      .updateTable('marketing_campaigns')
      .set({ last_run_at: now(ctx) })
      .where('id', '=', id)
      .execute()
    await campaigns.touch(ctx, id)
    await enqueue(ctx, queueMails, run, { key: keyOf(run), sequence: keyOf(run), runAt })
    return { id, entity: await show(ctx) }
  })
}

type Ruled = AudienceColumns & { changed_by_id: number | null }

/** Returns a sentence that explains why the campaign cannot run, or null. */
const problemOf = async (ctx: Context, row: Ruled): Promise<string | null> =>
  (await audienceProblem(ctx, presentAudience(row))) ?? editorProblem(ctx, row.changed_by_id)

/**
 * Starts every active campaign of the days in one transaction, and returns the runs. A campaign is
 * skipped when its audience or its editor has a problem, or when a listener vetoes its run or
 * fails. A second call on the same day queues no e-mail twice, because an address gets one e-mail
 * per occurrence.
 */
export const processDay = (ctx: Context, dates: readonly string[], runAt?: Date): Promise<CampaignRun[]> =>
  transaction(ctx, async (ctx) => {
    const rows = await ctx.db
      .selectFrom('marketing_campaigns')
      .leftJoin('marketing_events', 'marketing_events.id', 'marketing_campaigns.marketing_event_id')
      .select(['marketing_campaigns.id', 'marketing_events.date'])
      .select(['audience_type', 'audience_filter', 'audience_tag_id', 'audience_import_id', 'changed_by_id'])
      .where('marketing_campaigns.is_active', '=', 1)
      .where('marketing_campaigns.email_template_id', 'is not', null)
      .where((eb) => eb.or([eb('marketing_events.date', 'is', null), eb('marketing_events.date', 'in', [...dates])]))
      .orderBy('marketing_campaigns.id')
      .execute()
    const runs: CampaignRun[] = []
    for (const row of rows) {
      const problem = await problemOf(ctx, row)
      if (problem !== null) {
        ctx.services.log.warn({ campaign: row.id }, `A campaign did not run. ${problem}`)
        continue
      }
      const run = { campaign_id: row.id, occurrence: occurrenceOf(row.date) }
      try {
        await start(ctx, run, runAt)
        runs.push(run)
      } catch (cause) {
        if (!isOfListener(cause)) throw cause
        ctx.services.log.warn({ campaign: row.id, err: cause }, 'A listener vetoed a campaign run, or failed.')
      }
    }
    await scheduleSending(ctx)
    return runs
  })

interface Counts {
  runs: number
  queued: number
  suppressed: number
}

/**
 * Starts the campaigns of the day and queues their e-mails. Returns the number of runs, of queued
 * e-mails, and of addresses that are left out (`suppressed`).
 */
export async function processNow(ctx: Context, date: string): Promise<Counts> {
  const { db } = ctx
  const { before } = await db
    .selectFrom('campaign_sends')
    .select(({ fn }) => fn.max('id').as('before'))
    .executeTakeFirstOrThrow()
  const runs = await processDay(ctx, [date], new Date(ctx.time.getTime() + headStartMs))
  const counts: Counts = { runs: runs.length, queued: 0, suppressed: 0 }
  for (const run of runs) {
    await queueAll(ctx, run)
    // The e-mails are counted in the database, because a worker of the server may have queued some
    // of them.
    const rows = await db
      .selectFrom('campaign_sends')
      .select(({ fn }) => ['state', fn.countAll<number>().as('count')])
      .where('campaign_id', '=', run.campaign_id)
      .where('occurrence', '=', run.occurrence)
      .where('id', '>', Number(before ?? 0))
      .groupBy('state')
      .execute()
    for (const { state, count } of rows) counts[state === 'suppressed' ? state : 'queued'] += Number(count)
  }
  return counts
}

export const runCampaign: Handler<'runCampaign'> = (ctx, { params: { id } }) =>
  transaction(ctx, async (ctx) => {
    const campaign = await campaigns.get(ctx, id)
    if (!campaign.is_active) throw new Problem('state_conflict', 'The campaign is not active.')
    if (campaign.email_template_id === null) throw new Problem('state_conflict', 'The campaign has no template.')
    const row = await ctx.db
      .selectFrom('marketing_campaigns')
      .select(['audience_type', 'audience_filter', 'audience_tag_id', 'audience_import_id', 'changed_by_id'])
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    const problem = await problemOf(ctx, row)
    if (problem !== null) throw new Problem('state_conflict', problem)
    await start(ctx, { campaign_id: id, occurrence: occurrenceOf(campaign.marketing_event?.date) })
    return { data: await campaigns.get(ctx, id), message: 'Campaign queued.' }
  })
