// Jobs that process all pending deliveries of a webhook. The first job brings deliveries forward
// when the receiver works again. The second job gives up deliveries when the webhook is switched
// off. Each batch of deliveries has a separate transaction, so that other work can run in between.
import { defineJob, enqueue, expedite, type JobKind, type JobRun, type RunAgain } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { yieldToEventLoop } from '../../kernel/runtime/cooperative.ts'
import { transaction } from '../../kernel/write/write.ts'
import { type Delivery, deliveryJobKey, deliveryJobKinds } from './deliveries.ts'

interface Sweep {
  webhook_id: number
}
type Waiting = Pick<Delivery, 'id' | 'tries' | 'next_attempt_at'>

const atOnce = 100
/**
 * A delivery with at least this many tries keeps its planned time, because its receiver may need a
 * day for the repair.
 */
const fixedTimeFromTries = 8

/**
 * Makes waiting deliveries due now when the receiver works again, and changes the kind of their
 * jobs to the kind for healthy receivers.
 */
const bringForward = defineJob<Sweep>({
  kind: 'webhooks.bring-forward',
  run: (ctx, { webhook_id: id }, job) =>
    inSteps(ctx, id, job, async (ctx, rows) => {
      const webhook = await ctx.db
        .selectFrom('webhooks')
        .select('failing_since')
        .where('id', '=', id)
        .executeTakeFirst()
      if (webhook?.failing_since !== null) return false
      await ctx.db
        .updateTable('jobs')
        .set({ kind: deliveryJobKinds.healthy })
        .where('dedupe_key', 'in', rows.map(jobKey))
        .where('kind', '=', deliveryJobKinds.failing)
        .where('state', 'in', ['waiting', 'blocked'])
        .execute()
      const later = rows.filter((row) => row.tries < fixedTimeFromTries && (row.next_attempt_at ?? '') > now(ctx))
      if (later.length === 0) return true
      await ctx.db
        .updateTable('webhook_deliveries')
        .set({ next_attempt_at: now(ctx) })
        .where('id', 'in', later.map(idOf))
        .execute()
      await expedite(ctx, later.map(jobKey))
      return true
    }),
})

/** Sets pending deliveries to failed when the webhook is switched off. */
const giveUp = defineJob<Sweep>({
  kind: 'webhooks.give-up',
  run: (ctx, { webhook_id: id }, job) =>
    inSteps(ctx, id, job, async (ctx, rows) => {
      const webhook = await ctx.db.selectFrom('webhooks').select('is_active').where('id', '=', id).executeTakeFirst()
      if (webhook?.is_active !== 0) return false
      await ctx.db
        .updateTable('webhook_deliveries')
        .set({ state: 'failed', next_attempt_at: null, finished_at: now(ctx), updated_at: now(ctx) })
        .where('id', 'in', rows.map(idOf))
        .execute()
      // The jobs run now, find no pending delivery, and end.
      await expedite(ctx, rows.map(jobKey))
      return true
    }),
})

const idOf = ({ id }: Waiting): number => id
const jobKey = ({ id }: Waiting): string => deliveryJobKey(id)

/**
 * Calls `step` with batches of the pending deliveries, each delivery once. Stops when `step`
 * returns false.
 */
async function inSteps(
  ctx: Context,
  webhookId: number,
  { signal }: JobRun,
  step: (ctx: Context, rows: readonly Waiting[]) => Promise<boolean>,
): Promise<RunAgain | undefined> {
  let place = 0
  for (;;) {
    if (signal.aborted) return { runAgainAt: ctx.time }
    const last = await transaction(ctx, async (ctx) => {
      const rows = await ctx.db
        .selectFrom('webhook_deliveries')
        .select(['id', 'tries', 'next_attempt_at'])
        .where('webhook_id', '=', webhookId)
        .where('state', '=', 'pending')
        .where('id', '>', place)
        .orderBy('id')
        .limit(atOnce)
        .execute()
      const continues = rows.length > 0 && (await step(ctx, rows))
      return continues ? rows.at(-1) : undefined
    })
    if (!last) return undefined
    place = last.id
    await yieldToEventLoop()
  }
}

const enqueueFor = async (ctx: Context, job: JobKind<Sweep>, id: number): Promise<void> =>
  void (await enqueue(ctx, job, { webhook_id: id }, { key: `${job.kind}:${id}` }))

export const enqueueBringForward = (ctx: Context, id: number): Promise<void> => enqueueFor(ctx, bringForward, id)
export const enqueueGiveUp = (ctx: Context, id: number): Promise<void> => enqueueFor(ctx, giveUp, id)

export const jobs = [bringForward, giveUp]
