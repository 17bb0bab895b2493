// The jobs that send deliveries, and the effect of each attempt on the delivery and on the webhook.
import type { Selectable } from 'kysely'
import type { DB } from '../../../db/tables.gen.ts'
import { leaveSequence } from '../../jobs/leases.ts'
import { defineJob, type JobRun, type RunAgain } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { daysAfter, stamp } from '../../kernel/runtime/clock.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import {
  attemptsOf,
  type DeliverPayload,
  type Delivery,
  deliveryJobKinds,
  restartDelivery,
  webhookOfSequence,
} from './deliveries.ts'
import { messageOf, storedEvent } from './message.ts'
import { enqueueBringForward, enqueueGiveUp, jobs as sweeps } from './pending-deliveries.ts'
import { requestTemplateOf } from './request.ts'
import { webhooks } from './resource.ts'
import { contextsOfViewers } from './rights.ts'
import { type Attempt, attemptDelivery, type DeliveryAttempt, isAccepted } from './send.ts'
import { subscriptions } from './subscriptions.ts'

/**
 * The pauses between two attempts, in seconds; each pause varies by up to 10 %. The first attempt
 * is immediate.
 */
export const ladder = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]
const failingDays = 5
/**
 * The number of failed attempts after which later events of the same record no longer wait for the
 * delivery.
 */
const triesInOrder = 5
/**
 * The number of days without a failed attempt after which a new failure resets `failing_since`. It
 * is longer than every pause in `ladder`.
 */
const quietDays = 2

type Webhook = Selectable<DB['webhooks']>

/**
 * Defines a job that makes one attempt of a delivery. The delivery row counts the attempts and sets
 * the next attempt. The job itself fails only because of an error of this server, never because of
 * the receiver.
 */
const defineDelivery = (kind: string, atOnce: number, atOnceOfOne?: number) =>
  defineJob<DeliverPayload>({
    kind,
    concurrency: atOnce,
    ...(atOnceOfOne !== undefined && { lanes: { of: webhookOfSequence, atOnce: atOnceOfOne } }),
    retryAfterSeconds: [60, 300, 1800, 7200],
    async run(ctx, { delivery_id: id }, job) {
      const row = await pending(ctx, id)
      if (!row) return
      const webhook = await webhookOf(ctx, row.webhook_id)
      const stop = (reason: string): Promise<void> =>
        transaction(ctx, async (ctx) => ((await job.holdsLease(ctx)) ? giveUp(ctx, row, reason) : undefined))
      if (webhook.is_active === 0) return stop('The webhook is switched off.')
      if (kind === deliveryJobKinds.healthy && webhook.failing_since !== null) {
        await ctx.db.updateTable('jobs').set({ kind: deliveryJobKinds.failing }).where('id', '=', job.id).execute()
        return { runAgainAt: ctx.time }
      }
      const event = row.event_id === null ? null : await storedEvent(ctx, row.event_id)
      if (!event) return stop('The event is no longer stored.')
      const viewers = await contextsOfViewers(ctx, row, webhook.changed_by_id)
      if (typeof viewers === 'string') return stop(viewers)
      const template = requestTemplateOf(webhook, ctx.services.encryption)
      const message = await messageOf(viewers, row.message_id, event, template)
      return settle(ctx, row, await attemptDelivery(ctx, webhook, template, message, job.signal), job)
    },
    async onBuried(ctx, { delivery_id: id }, cause) {
      const row = await pending(ctx, id)
      if (row) await giveUp(ctx, row, cause)
    },
    async revive(ctx, { delivery_id: id }) {
      const row = await ctx.db.selectFrom('webhook_deliveries').selectAll().where('id', '=', id).executeTakeFirst()
      if (!row) throw new Problem('state_conflict', 'The delivery has been deleted.')
      if (row.state !== 'failed') throw new Problem('state_conflict', 'The delivery has not failed.')
      if ((await webhookOf(ctx, row.webhook_id)).is_active === 0)
        throw new Problem('state_conflict', 'The webhook is switched off.')
      await restartDelivery(ctx, id)
      return undefined
    },
  })

// A receiver that begins to hang counts as healthy until its first attempt has timed out, so it may
// take only some of the places.
export const deliver = defineDelivery(deliveryJobKinds.healthy, 16, 6)
export const deliverToFailing = defineDelivery(deliveryJobKinds.failing, 3)

const pending = ({ db }: Context, id: number): Promise<Delivery | undefined> =>
  db.selectFrom('webhook_deliveries').selectAll().where('id', '=', id).where('state', '=', 'pending').executeTakeFirst()

const webhookOf = ({ db }: Context, id: number): Promise<Webhook> =>
  db.selectFrom('webhooks').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

/** Sets the delivery to failed without an attempt, and records `reason` in its list of attempts. */
const giveUp = (ctx: Context, row: Delivery, reason: string): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const attempt: Attempt = { at: now(ctx), status: null, duration_ms: 0, error: reason, response_excerpt: null }
    const { numUpdatedRows } = await ctx.db
      .updateTable('webhook_deliveries')
      .set({
        attempts: JSON.stringify([...attemptsOf(row), attempt]),
        state: 'failed',
        next_attempt_at: null,
        finished_at: now(ctx),
        updated_at: now(ctx),
      })
      .where('id', '=', row.id)
      .where('state', '=', 'pending')
      .executeTakeFirst()
    if (numUpdatedRows > 0n) ctx.unit.onCommit.push(() => ctx.services.metrics.delivered('given_up'))
  })

/**
 * Records an attempt and returns when the job runs again. When another worker has taken over the
 * job, this function only adds the attempt to the list, because the result of the other worker
 * counts.
 */
async function settle(ctx: Context, { id, webhook_id }: Delivery, { attempt, isUnsent }: DeliveryAttempt, job: JobRun) {
  const at = ctx.services.clock.now()
  ctx.services.metrics.delivered(isAccepted(attempt) ? 'succeeded' : 'failed')
  const { again, reason } = await transaction(ctx, async (ctx) => {
    const row = await ctx.db.selectFrom('webhook_deliveries').selectAll().where('id', '=', id).executeTakeFirst()
    // The webhook was deleted during the request, and its deliveries with it.
    if (!row) return { again: null, reason: null }
    const attempts = JSON.stringify([...attemptsOf(row), attempt])
    if (!(await job.holdsLease(ctx))) {
      await ctx.db.updateTable('webhook_deliveries').set({ attempts }).where('id', '=', id).execute()
      return { again: null, reason: null }
    }
    const tries = row.tries + 1
    const isOver = isAccepted(attempt) || attempt.status === 410 || row.state !== 'pending'
    const again = isOver ? null : nextTry(at, tries)
    await ctx.db
      .updateTable('webhook_deliveries')
      .set({
        attempts,
        tries,
        state: isAccepted(attempt) ? 'succeeded' : again ? 'pending' : 'failed',
        next_attempt_at: again && stamp(again),
        finished_at: again ? null : stamp(at),
        updated_at: stamp(at),
      })
      .where('id', '=', id)
      .execute()
    if (again && tries >= triesInOrder) await leaveSequence(ctx, job.id)
    return { again, reason: isUnsent ? null : await judge(ctx, webhook_id, attempt, at) }
  })
  const isOff = reason !== null && (await switchOff(ctx, webhook_id, reason))
  return again && !isOff ? ({ runAgainAt: again } satisfies RunAgain) : undefined
}

function nextTry(at: Date, tries: number): Date | null {
  const seconds = ladder[tries - 1]
  return seconds === undefined ? null : new Date(at.getTime() + seconds * 1000 * (0.9 + Math.random() * 0.2))
}

/**
 * Updates the webhook after an attempt; its version increases when the status or the failing state
 * changes. Returns the reason to switch the webhook off, or null.
 */
async function judge(ctx: Context, id: number, attempt: Attempt, at: Date): Promise<string | null> {
  const { failing_since, last_failed_at, last_status } = await webhookOf(ctx, id)
  // Time without attempts does not count as failing, so `failing_since` restarts after a long
  // pause.
  const isKnown = last_failed_at !== null && last_failed_at >= daysAfter(at, -quietDays)
  const failingSince = isAccepted(attempt) ? null : isKnown ? (failing_since ?? stamp(at)) : stamp(at)
  if (failingSince !== failing_since || attempt.status !== last_status) {
    await ctx.db
      .updateTable('webhooks')
      .set({ last_status: attempt.status, failing_since: failingSince })
      .where('id', '=', id)
      .execute()
    await webhooks.touch(ctx, id)
  }
  if (failingSince === null) {
    if (failing_since !== null) await enqueueBringForward(ctx, id)
    return null
  }
  await ctx.db
    .updateTable('webhooks')
    .set({ last_failed_at: stamp(at) })
    .where('id', '=', id)
    .execute()
  if (attempt.status === 410) return 'The receiver answered 410 Gone.'
  return failingSince <= daysAfter(at, -failingDays)
    ? `No delivery succeeded for ${failingDays} days. Last error: ${attempt.error}`
    : null
}

/**
 * Switches the webhook off and gives up its pending deliveries. The change emits the events of an
 * ordinary update. Returns false when a listener vetoes it.
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
      await enqueueGiveUp(ctx, id)
    })
    return true
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    ctx.services.log.warn({ webhook: id, err: error }, 'A webhook could not be switched off.')
    return false
  }
}

export const jobs = [deliver, deliverToFailing, ...sweeps]
export const eventConsumers = [subscriptions]
