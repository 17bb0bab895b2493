// What webhooks do in the background: deliver, and what a try means for the delivery and for the webhook (DOMAIN 18.5).
import { defineJob, type Later } from '../../jobs/queue.ts'
import { daysAfter, stamp } from '../../kernel/clock.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { transaction, write } from '../../kernel/write.ts'
import { attemptsOf, type DeliverPayload, type Delivery, deliverKind, hasten } from './deliveries.ts'
import { occasionOf, storedEvent } from './occasions.ts'
import { recipeOf } from './request.ts'
import { webhooks } from './resource.ts'
import { type Attempt, isTaken, send } from './send.ts'
import { subscriptions } from './subscriptions.ts'

/** Seconds from one try to the next, varied by a tenth; the first try is at once. */
export const ladder = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]
/** The last tries keep their time, whatever is brought forward: they are for who needs a day to mend something. */
const keepsItsTime = ladder.length - 1
const failingDays = 5

/** Tries at a receiver are counted in the delivery, where people look for them; the job only fails when the server does. */
export const deliver = defineJob<DeliverPayload>({
  ...deliverKind,
  atOnce: 8,
  retryAfter: [60, 300, 1800, 7200],
  async run(ctx, { delivery_id: id, earlier_tries: earlier }, { signal }) {
    const row = await pending(ctx, id)
    if (!row) return
    const told = await tell(ctx, row, signal)
    return told.attempt === null
      ? transaction(ctx, (ctx) => giveUp(ctx, row, told.reason))
      : settle(ctx, row, told.attempt, earlier)
  },
  async buried(ctx, { delivery_id: id }) {
    const row = await pending(ctx, id)
    if (row) await giveUp(ctx, row, 'It failed several times for a reason of the server, whose log says more.')
  },
})

const pending = ({ db }: Context, id: number): Promise<Delivery | undefined> =>
  db.selectFrom('webhook_deliveries').selectAll().where('id', '=', id).where('state', '=', 'pending').executeTakeFirst()

/** One try, or why none is made any more. */
async function tell(
  ctx: Context,
  row: Delivery,
  signal: AbortSignal,
): Promise<{ attempt: Attempt } | { attempt: null; reason: string }> {
  const webhook = await ctx.db
    .selectFrom('webhooks')
    .selectAll()
    .where('id', '=', row.webhook_id)
    .executeTakeFirstOrThrow()
  if (webhook.is_active === 0) return { attempt: null, reason: 'The webhook is switched off.' }
  const event = row.event_id === null ? null : await storedEvent(ctx, row.event_id)
  if (!event) return { attempt: null, reason: 'The event is no longer kept.' }
  const recipe = recipeOf(webhook)
  return { attempt: await send(ctx, webhook, recipe, await occasionOf(ctx, row.message_id, event, recipe), signal) }
}

/** Writes down that no try was made, and why. */
async function giveUp(ctx: Context, row: Delivery, reason: string): Promise<void> {
  const attempt: Attempt = { at: now(ctx), status: null, duration_ms: 0, error: reason, response_excerpt: null }
  await ctx.db
    .updateTable('webhook_deliveries')
    .set({
      attempts: JSON.stringify([...attemptsOf(row), attempt]),
      state: 'failed',
      next_attempt_at: null,
      finished_at: now(ctx),
      updated_at: now(ctx),
    })
    .where('id', '=', row.id)
    .execute()
}

/** Writes down a try, and says when the next one is. */
async function settle(ctx: Context, { id, webhook_id }: Delivery, attempt: Attempt, earlier: number) {
  const at = ctx.services.clock.now()
  const { again, reason } = await transaction(ctx, async (ctx) => {
    const row = await ctx.db.selectFrom('webhook_deliveries').selectAll().where('id', '=', id).executeTakeFirst()
    // Gone with its webhook while the receiver answered.
    if (!row) return { again: null, reason: null }
    const attempts = [...attemptsOf(row), attempt]
    const isOver = isTaken(attempt) || attempt.status === 410 || row.state !== 'pending'
    const again = isOver ? null : nextTry(at, attempts.length - earlier)
    await ctx.db
      .updateTable('webhook_deliveries')
      .set({
        attempts: JSON.stringify(attempts),
        state: isTaken(attempt) ? 'succeeded' : again ? 'pending' : 'failed',
        next_attempt_at: again && stamp(again),
        finished_at: again ? null : stamp(at),
        updated_at: stamp(at),
      })
      .where('id', '=', id)
      .execute()
    return { again, reason: await judge(ctx, webhook_id, attempt, stamp(at)) }
  })
  const isOff = reason !== null && (await switchOff(ctx, webhook_id, reason))
  return again && !isOff ? ({ again } satisfies Later) : undefined
}

function nextTry(at: Date, tries: number): Date | null {
  const seconds = ladder[tries - 1]
  return seconds === undefined ? null : new Date(at.getTime() + seconds * 1000 * (0.9 + Math.random() * 0.2))
}

/** What a try says of the webhook, which is a new version of it when it differs. Answers why to switch it off, or null. */
async function judge(ctx: Context, id: number, attempt: Attempt, at: string): Promise<string | null> {
  const { failing_since: since, last_status: last } = await ctx.db
    .selectFrom('webhooks')
    .select(['failing_since', 'last_status'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const failingSince = isTaken(attempt) ? null : (since ?? at)
  if (failingSince !== since || attempt.status !== last) {
    await ctx.db
      .updateTable('webhooks')
      .set({ last_status: attempt.status, failing_since: failingSince })
      .where('id', '=', id)
      .execute()
    await webhooks.touch(ctx, id)
  }
  if (failingSince === null) {
    if (since !== null) await bringForward(ctx, id)
    return null
  }
  if (attempt.status === 410) return 'The receiver answered 410: it wants no more.'
  return failingSince <= daysAfter(new Date(at), -failingDays)
    ? `Nothing could be delivered for ${failingDays} days. The last time: ${attempt.error}`
    : null
}

/** The receiver is back: what waits for a later try need not wait. */
async function bringForward(ctx: Context, webhookId: number): Promise<void> {
  const rows = await ctx.db
    .selectFrom('webhook_deliveries')
    .select(['id', 'attempts'])
    .where('webhook_id', '=', webhookId)
    .where('state', '=', 'pending')
    .where('next_attempt_at', '>', now(ctx))
    .execute()
  await hasten(
    ctx,
    rows.filter((row) => attemptsOf(row).length < keepsItsTime).map(({ id }) => id),
  )
}

/**
 * Nothing is sent to it any more until somebody switches it on; what waits is given up. A change like one of a user, so that a
 * listener may refuse it: then false.
 */
async function switchOff(ctx: Context, id: number, reason: string): Promise<boolean> {
  try {
    await transaction(ctx, async (ctx) => {
      const before = await webhooks.get(ctx, id)
      if (!before.is_active) return
      const about = { entity: 'webhooks', input: { is_active: false }, id, before: { ...before } }
      await write(ctx, 'settings.webhook.update', about, async (ctx) => {
        await ctx.db
          .updateTable('webhooks')
          .set({ is_active: 0, disabled_reason: reason })
          .where('id', '=', id)
          .execute()
        await webhooks.touch(ctx, id)
        return { id, entity: { ...(await webhooks.get(ctx, id)) } }
      })
      const waiting = await ctx.db
        .updateTable('webhook_deliveries')
        .set({ state: 'failed', next_attempt_at: null, finished_at: now(ctx), updated_at: now(ctx) })
        .where('webhook_id', '=', id)
        .where('state', '=', 'pending')
        .returning('id')
        .execute()
      // Their jobs find that there is nothing to do.
      await hasten(
        ctx,
        waiting.map((row) => row.id),
      )
    })
    return true
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    ctx.services.log.warn({ webhook: id, reason: error.message }, 'A webhook could not be switched off.')
    return false
  }
}

export const jobs = [deliver]
export const readers = [subscriptions]
