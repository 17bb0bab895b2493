// Removes records to which many other records refer. A job changes the other records in steps, each
// in a transaction of its own, and then completes the removal. After a crash, the next attempt
// continues, because a step finds the records that are left.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { signedInAs } from '../kernel/auth/tokens.ts'
import { assertCanCall, type Context, now, type Origin, systemContext } from '../kernel/context.ts'
import { Problem } from '../kernel/errors.ts'
import { settleRules } from '../kernel/resource/replace-named.ts'
import { savepoint, transaction } from '../kernel/write/write.ts'
import { BuryJob, defineJob, enqueue, type JobKind, type JobRun, type RunAgain, unfinishedStates } from './queue.ts'

/** The maximum number of other records that a removal changes in the transaction of its request. */
export const maxAtOnce = 200
/** The maximum number of other records that a job changes in one transaction. */
export const stepSize = 50

/** The limit of `pending` for all records. */
export const all = Number.MAX_SAFE_INTEGER

/** Changes one record that refers to the record to remove. */
export type RecordChange = (ctx: Context) => Promise<unknown>

export interface Removal<Request extends object> {
  kind: string
  /** The entity of the record, such as `tags`. */
  entity: string
  noun: string
  /** The operation that starts the removal. The job stops when its user may no longer call it. */
  operation: (request: Request) => Parameters<typeof assertCanCall>[1]
  /** Returns the number of records to change. */
  count: (ctx: Context, id: number, request: Request) => Promise<number>
  /** Returns the changes of up to `limit` records. A changed record is not found again. */
  pending: (ctx: Context, id: number, request: Request, limit: number) => Promise<RecordChange[]>
  /** Completes the removal when no record is left to change. */
  finish: (ctx: Context, id: number, request: Request) => Promise<unknown>
}

interface Payload<Request extends object> {
  id: number
  request: Request
  user_id: number | null
  origin: Origin
  done: number
  total: number
}

export interface RemovalJob<Request extends object> {
  job: JobKind<Payload<Request>>
  /**
   * Enqueues a job when more than `maxAtOnce` records must change, and returns its id. Returns null
   * when the caller can change them at once. Throws 409 while a job removes the record. Must be
   * called in the transaction of the removal.
   */
  start: (ctx: Context, id: number, request: Request) => Promise<number | null>
  /**
   * Like `start`, for the deletion of a whole record. A job starts only when no stored rule names
   * the record. `replacement` takes the place of the record in these rules.
   */
  startDeletion: (ctx: Context, id: number, request: Request, replacement?: number) => Promise<number | null>
}

export function defineRemoval<Request extends object>(removal: Removal<Request>): RemovalJob<Request> {
  const { kind, entity, noun } = removal
  async function start(ctx: Context, id: number, request: Request): Promise<number | null> {
    await refuseWhileRemoved(ctx, entity, id)
    if ((await removal.pending(ctx, id, request, maxAtOnce + 1)).length <= maxAtOnce) return null
    const total = await removal.count(ctx, id, request)
    const payload = { id, request, user_id: ctx.user?.id ?? null, origin: ctx.origin, done: 0, total }
    const sequence = sequenceOf(entity, id)
    return enqueue(ctx, { kind }, payload, { key: sequence, sequence })
  }
  return {
    job: defineJob<Payload<Request>>({ kind, run: (ctx, payload, job) => runSteps(ctx, removal, payload, job) }),
    start,
    async startDeletion(ctx, id, request, replacement) {
      const jobId = await start(ctx, id, request)
      if (jobId !== null) await settleRules(ctx, { entity, id, noun }, replacement)
      return jobId
    },
  }
}

const sequenceOf = (entity: string, id: number): string => `removal:${entity}:${id}`

/** Returns an SQL condition that is true while a job removes the record with the id in `column`. */
export const isBeingRemoved = (entity: string, column: string): RawBuilder<SqlBool> =>
  sql<SqlBool>`exists (select 1 from jobs
    where jobs.sequence = ${sql.lit(`removal:${entity}:`)} || cast(${sql.ref(column)} as text)
      and jobs.state in (${sql.join(unfinishedStates.map((state) => sql.lit(state)))}))`

/** Returns the request of the job that removes the record; undefined when there is none. */
export async function removalOf<Request extends object>(
  { db }: Context,
  entity: string,
  id: number,
): Promise<Request | undefined> {
  const row = await db
    .selectFrom('jobs')
    .select('payload')
    .where('sequence', '=', sequenceOf(entity, id))
    .where('state', 'in', unfinishedStates)
    .executeTakeFirst()
  return row && (JSON.parse(row.payload) as Payload<Request>).request
}

/** Throws 409 while a job removes the record. */
export async function refuseWhileRemoved(ctx: Context, entity: string, id: number): Promise<void> {
  if (await removalOf(ctx, entity, id)) throw new Problem('state_conflict', 'A job is about to remove this already.')
}

async function runSteps<Request extends object>(
  { services }: Context,
  removal: Removal<Request>,
  payload: Payload<Request>,
  run: JobRun,
): Promise<RunAgain | undefined> {
  let { done } = payload
  for (;;) {
    if (run.signal.aborted) return { runAgainAt: services.clock.now() }
    // One request id for all steps, by which the archive finds what the job has deleted.
    const ctx = { ...systemContext(services, payload.origin), requestId: `job-${run.id}` }
    const changed = await runStep(ctx, removal, { ...payload, done }, run)
    if (changed === null) return undefined
    done += changed
  }
}

/**
 * Runs one step. Returns the number of changed records, or null when the work of this run has
 * ended.
 */
async function runStep<Request extends object>(
  ctx: Context,
  removal: Removal<Request>,
  payload: Payload<Request>,
  run: JobRun,
): Promise<number | null> {
  const { id, request, done } = payload
  try {
    const changed = await transaction(
      ctx,
      async (ctx) => {
        if (!(await run.holdsLease(ctx))) return null
        const acting = await actingContext(ctx, removal, payload)
        const changes = await removal.pending(acting, id, request, stepSize)
        for (const change of changes) await savepoint(acting, () => change(acting))
        await storeProgress(ctx, run, { ...payload, done: done + changes.length })
        return changes.length
      },
      { isLong: true, inParts: true },
    )
    if (changed !== 0) return changed
    return await transaction(ctx, async (ctx) => {
      if (!(await run.holdsLease(ctx))) return null
      const acting = await actingContext(ctx, removal, payload)
      // A record may have been added since the last step, by a restore for example.
      if ((await removal.pending(acting, id, request, 1)).length > 0) return 0
      await removal.finish(acting, id, request)
      return null
    })
  } catch (error) {
    // A refusal, such as a veto of a listener, would be repeated by the next attempt.
    if (error instanceof Problem && error.status < 500) throw new BuryJob(sentenceOf(error))
    throw error
  }
}

const sentenceOf = ({ more, message }: Problem): string => Object.values(more.errors ?? {}).flat()[0] ?? message

/** Returns the context of the user who started the removal, with the user's current permissions. */
async function actingContext<C extends Context, Request extends object>(
  ctx: C,
  { operation }: Removal<Request>,
  { user_id: userId, request }: Payload<Request>,
): Promise<C> {
  if (userId === null) return ctx
  const user = await signedInAs(ctx.db, userId)
  if (!user) throw new BuryJob('The user who started this was deleted or is inactive.')
  const acting = { ...ctx, user }
  assertCanCall(acting, operation(request))
  return acting
}

/** Stores the progress of a job in its payload. Must run in the transaction of the step. */
export async function storeProgress(ctx: Context, { id }: Pick<JobRun, 'id'>, payload: object): Promise<void> {
  await ctx.db
    .updateTable('jobs')
    .set({ payload: JSON.stringify(payload), updated_at: now(ctx) })
    .where('id', '=', id)
    .execute()
}
