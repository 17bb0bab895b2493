// Carries out a workflow run: evaluates the conditions, then performs the actions in
// order. An action and its log entry share a transaction, so a crash neither repeats nor skips an
// action. An action on many records has several transactions, one per batch of records.
import type { Schema } from '../../contract/types.ts'
import { parseEvent } from '../../jobs/event-consumers.ts'
import { defineJob, type RunAgain } from '../../jobs/queue.ts'
import { type Context, now } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { cleanUpUploads, prepareUploads, type Uploads } from '../../kernel/files/multipart.ts'
import { yieldToEventLoop } from '../../kernel/runtime/cooperative.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { transaction } from '../../kernel/write/write.ts'
import { actionRefused, loadActionSubject } from './action-subject.ts'
import { type Action, actionOf } from './actions.ts'
import { comparableFields, type Entity } from './comparable-fields.ts'
import { conditionOf, refuseDeadExclusions, UnanswerableCondition } from './conditions.ts'
import { effects } from './effects.ts'
import { evaluate } from './evaluate.ts'
import {
  type ActingContext,
  actAsChanger,
  explainRefusal,
  hiddenReason,
  requireAction,
  requireReading,
} from './rights.ts'
import { loadSnapshot, triggerOfEvent } from './snapshots.ts'

/**
 * An action copied from the workflow when the run began, with its state. A later change of the
 * workflow does not affect the run.
 */
export type RunAction = Omit<Schema<'WorkflowRunAction'>, 'id'> & Action

type Run = NonNullable<Awaited<ReturnType<typeof load>>>

export const runWorkflow = defineJob<{ run_id: number }>({
  kind: 'workflows.run',
  concurrency: 2,
  retryAfterSeconds: [10, 60, 600, 3600],
  run: (ctx, { run_id: id }, { signal }) => run({ ...ctx, origin: 'workflow', workflowRun: id }, id, signal),
  onBuried: (ctx, { run_id: id }) => giveUp(ctx, id),
  revive: (ctx, { run_id: id }) => resume(ctx, id),
})

const load = ({ db }: Context, id: number) =>
  db
    .selectFrom('workflow_runs as run')
    .innerJoin('workflows', 'workflows.id', 'run.workflow_id')
    .selectAll('run')
    .select(['workflows.conditions', 'workflows.condition_type', 'workflows.is_active', 'workflows.event as trigger'])
    .select(['workflows.actions as planned', 'workflows.changed_by_id'])
    .where('run.id', '=', id)
    .executeTakeFirst()

async function run(ctx: Context, id: number, signal: AbortSignal): Promise<RunAgain | undefined> {
  // The run is undefined when its workflow has been deleted, because a workflow is deleted with its
  // runs.
  const pending = await load(ctx, id)
  if (pending?.state === 'pending') await begin(ctx, pending)
  for (;;) {
    const current = await load(ctx, id)
    if (current?.state !== 'matched') return undefined
    // A worker that is shutting down leaves the remaining actions to the next worker.
    if (signal.aborted) return { runAgainAt: ctx.time }
    await step(ctx, current)
    await yieldToEventLoop()
  }
}

/** Evaluates the conditions and stores whether the actions will run. */
async function begin(ctx: Context, run: Run): Promise<void> {
  const decided = await decide(ctx, run)
  const isOver = decided.state !== 'matched'
  await transaction(ctx, ({ db }) =>
    db
      .updateTable('workflow_runs')
      .set({ ...decided, started_at: now(ctx), finished_at: isOver ? now(ctx) : null, updated_at: now(ctx) })
      .where('id', '=', run.id)
      .where('state', '=', 'pending')
      .execute(),
  )
}

/** The columns of a run that say whether its actions will run. */
interface Decision {
  state: 'skipped' | 'failed' | 'matched'
  reason: string | null
  matched_conditions?: string
  actions?: string
}

async function decide(ctx: Context, run: Run): Promise<Decision> {
  if (run.is_active !== 1)
    return { state: 'skipped', reason: 'The workflow was switched off before it processed this event.' }
  // The workflow now has another trigger event, so its actions do not apply to this event.
  if (run.trigger !== triggerOfEvent(run.event))
    return {
      state: 'skipped',
      reason: 'The event of the workflow was changed before it processed this event.',
    }
  const event = await ctx.db.selectFrom('events').selectAll().where('id', '=', run.event_id).executeTakeFirst()
  if (!event) return { state: 'failed', reason: 'The event is no longer stored.' }
  const conditions = (JSON.parse(run.conditions) as Parameters<typeof conditionOf>[0][]).map(conditionOf)
  const entity = run.entity_type as Entity
  try {
    const acting = await actAsChanger(ctx, run.changed_by_id)
    requireReading(acting, entity)
    const unseen = await hiddenReason(acting, entity, run.entity_id, run.event_id)
    if (unseen !== null) return { state: 'skipped', reason: unseen }
    const stored = parseEvent(event)
    const subjects = await comparableFields(acting, entity)
    await refuseDeadExclusions(acting, conditions, subjects)
    const { matches, held } = evaluate(
      { condition_type: run.condition_type, conditions },
      await loadSnapshot(acting, stored),
      {
        before: stored.before,
        subjects,
        // {{today}} is the day of the event, even if the worker is late.
        at: new Date(event.created_at),
        zone: ctx.services.config.timezone,
      },
    )
    const matched = JSON.stringify(held.map((index) => conditions[index]))
    if (!matches)
      return {
        state: 'skipped',
        reason: 'The record does not meet the conditions.',
        matched_conditions: matched,
      }
    const entries = (JSON.parse(run.planned) as Parameters<typeof actionOf>[0][]).map(
      (action): RunAction => ({ ...actionOf(action), state: 'pending', error: null, result: null }),
    )
    return { state: 'matched', reason: null, matched_conditions: matched, actions: JSON.stringify(entries) }
  } catch (error) {
    if (error instanceof UnanswerableCondition || isRefusal(error)) return { state: 'failed', reason: error.message }
    throw error
  }
}

/**
 * Performs the next pending action. A refusal ends the run. After any other error the job retries
 * the action.
 */
async function step(ctx: Context, run: Run): Promise<void> {
  const entries = JSON.parse(run.actions) as RunAction[]
  const index = entries.findIndex(({ state }) => state === 'pending')
  const entry = entries[index]
  if (!entry) return conclude(ctx, run, entries)
  const action = actionOf(entry)
  const effect = effects[action.id]
  const last = await lastSnapshot(ctx, run)
  let acting: ActingContext | null = null
  let uploads: Uploads | null = null
  let isDone = false
  try {
    acting = await requirePermitted(ctx, run, action)
    uploads = (await effect.uploads?.(acting, await about(acting, run, last))) ?? null
    const withUploads: Context = uploads === null ? ctx : { ...ctx, uploads }
    await prepareUploads(withUploads)
    await transaction(withUploads, async (plain) => {
      // Checks the rights again within the transaction, so that a change of the rights cannot
      // commit between the check and the action.
      const ctx = await requirePermitted(plain, run, action)
      const cause = { eventId: run.event_id, runId: run.id, index, userId: ctx.user.id }
      const occasion = await about(ctx, run, last)
      const result = await effect.act(ctx, occasion, action, cause, entry.result)
      const isPart = (await effect.isPart?.(ctx, occasion, result)) ?? false
      await conclude(ctx, run, entries.with(index, { ...entry, state: isPart ? 'pending' : 'succeeded', result }))
    })
    isDone = true
  } catch (error) {
    if (!isRefusal(error)) throw error
    await fail(ctx, run, entries, index, sentenceOf(explainRefusal(acting, error)))
  } finally {
    if (uploads !== null) await cleanUpUploads({ ...ctx, uploads }, !isDone)
  }
}

/**
 * Returns the context of an action with the rights of the workflow's user. Throws a Problem when
 * these rights do not suffice.
 */
async function requirePermitted<C extends Context>(ctx: C, run: Run, { id }: Action): Promise<ActingContext<C>> {
  const entity = run.entity_type as Entity
  const acting = await actAsChanger(ctx, run.changed_by_id)
  requireReading(acting, entity)
  requireAction(acting, id, entity)
  const unseen = await hiddenReason(acting, entity, run.entity_id, run.event_id)
  if (unseen !== null) throw actionRefused(unseen)
  return acting
}

const about = (ctx: Context, run: Run, last: Snapshot) =>
  loadActionSubject(ctx, run.entity_type as Entity, run.entity_id, last, run.event.endsWith('.delete.after'))

/**
 * Returns whether the error is a refusal, which ends the run; the run stores its message. After any
 * other error the job retries.
 */
const isRefusal = (error: unknown): error is Problem => error instanceof Problem && error.status < 500

/**
 * Returns the record after the event, or before the event if the event deleted the record. Used
 * when the record no longer exists.
 */
async function lastSnapshot({ db }: Context, { event_id }: Run): Promise<Snapshot> {
  const row = await db.selectFrom('events').selectAll().where('id', '=', event_id).executeTakeFirst()
  const event = row && parseEvent(row)
  return event?.after ?? event?.before ?? {}
}

async function fail(
  ctx: Context,
  run: Run,
  entries: readonly RunAction[],
  index: number,
  error: string,
): Promise<void> {
  const after = entries.map((entry, at): RunAction => {
    if (at < index) return entry
    return at === index ? { ...entry, state: 'failed', error } : { ...entry, state: 'not_run' }
  })
  await transaction(ctx, (ctx) => conclude(ctx, run, after, `Action ${index + 1} failed: ${error}`))
}

/** Stores the states and results of the actions. Ends the run when no action is pending. */
async function conclude(
  ctx: Context,
  run: Run,
  entries: readonly RunAction[],
  reason: string | null = null,
): Promise<void> {
  const isOver = entries.every(({ state }) => state !== 'pending')
  const { numUpdatedRows } = await ctx.db
    .updateTable('workflow_runs')
    .set({
      actions: JSON.stringify(entries),
      updated_at: now(ctx),
      ...(isOver && { state: reason === null ? 'succeeded' : 'failed', reason, finished_at: now(ctx) }),
    })
    .where('id', '=', run.id)
    .where('state', '=', run.state)
    .where((eb) => eb(eb.cast('actions', 'text'), '=', run.actions))
    .executeTakeFirstOrThrow()
  // Another worker has changed the run meanwhile. The error rolls back the transaction, so that the
  // action is not performed twice.
  if (Number(numUpdatedRows) !== 1) throw new Error(`Another worker has continued the run ${run.id} of a workflow.`)
}

const serverErrorReason = 'It failed several times because of a server error; see the server log.'

async function giveUp(ctx: Context, id: number): Promise<void> {
  const run = await load(ctx, id)
  if (run?.state !== 'pending' && run?.state !== 'matched') return
  const entries = JSON.parse(run.actions) as RunAction[]
  const index = entries.findIndex(({ state }) => state === 'pending')
  if (index >= 0) return fail(ctx, run, entries, index, serverErrorReason)
  await conclude(ctx, run, entries, serverErrorReason)
}

/** Restarts a failed run at the failed action. Actions that succeeded are not repeated. */
async function resume(ctx: Context, id: number): Promise<undefined> {
  const run = await load(ctx, id)
  if (run?.state !== 'failed') throw new Problem('state_conflict', 'The run of the workflow has not failed.')
  const entries = (JSON.parse(run.actions) as RunAction[]).map(
    (entry): RunAction => (entry.state === 'succeeded' ? entry : { ...entry, state: 'pending', error: null }),
  )
  await ctx.db
    .updateTable('workflow_runs')
    .set({
      state: entries.length === 0 ? 'pending' : 'matched',
      reason: null,
      actions: JSON.stringify(entries),
      finished_at: null,
      updated_at: now(ctx),
    })
    .where('id', '=', id)
    .execute()
}

/** Returns the message of a Problem as one line, for example "lead_value: Must be at least 0." */
const sentenceOf = ({ message, more }: Problem): string =>
  Object.entries(more.errors ?? {})
    .map(([field, [sentence = '']]) => `${field}: ${sentence}`)
    .join(' ') || message
