// Jobs over the pending deliveries of a webhook: bring them forward when the receiver is back, give
// them up when the webhook is switched off. Thousands may be pending, so each step has its own
// transaction and yields to other work.
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
/** Attempts from the ninth on keep their time: they are for receivers whose repair takes a day. */
const fixedTimeFromTries = 8

/** The receiver is back: waiting deliveries run now, in the slots of healthy receivers. */
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

/** The webhook is switched off: pending deliveries fail. */
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
      // Their jobs then find nothing to do and end.
      await expedite(ctx, rows.map(jobKey))
      return true
    }),
})

const idOf = ({ id }: Waiting): number => id
const jobKey = ({ id }: Waiting): string => deliveryJobKey(id)

/**
 * Runs `step` over the pending deliveries in batches, each delivery once. Ends early when `step`
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
