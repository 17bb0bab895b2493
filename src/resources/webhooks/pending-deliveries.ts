// What becomes of all that waits for a webhook: brought forward when its receiver is back, given up when it is switched off. Thousands
// may wait, so it is done in steps, with a transaction each, between which others have their turn.
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
/** The ninth and tenth try keep their time, whatever is brought forward: they are for who needs a day to mend something. */
const keepsItsTime = 8

/** The receiver is back: what waits for a later try need not wait, and may be tried beside that of others again. */
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
      const later = rows.filter((row) => row.tries < keepsItsTime && (row.next_attempt_at ?? '') > now(ctx))
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

/** It is switched off: nothing that waits will be sent. */
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
      // Their jobs find that there is nothing to do.
      await expedite(ctx, rows.map(jobKey))
      return true
    }),
})

const idOf = ({ id }: Waiting): number => id
const jobKey = ({ id }: Waiting): string => deliveryJobKey(id)

/** Some of what waits at a time, each looked at once. Ends early when `step` answers false. */
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
      const goesOn = rows.length > 0 && (await step(ctx, rows))
      return goesOn ? rows.at(-1) : undefined
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
