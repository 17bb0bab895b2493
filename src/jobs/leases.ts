// Claims, finishes, postpones and buries job rows. Each claim gets a lease, and only the claim with
// the current lease can change the row. Two runs therefore never end the same job.
import { randomUUID } from 'node:crypto'
import type { Selectable } from 'kysely'
import type { DB } from '../../db/tables.gen.ts'
import { type Context, now } from '../kernel/context.ts'
import { stamp } from '../kernel/runtime/clock.ts'
import { isProcessGone } from '../kernel/runtime/process-identity.ts'
import { type InTransaction, transaction } from '../kernel/write/write.ts'
import { unfinishedStates } from './queue.ts'

export type JobRow = Selectable<DB['jobs']>

export const leaseMs = 60_000

interface ReleaseOptions {
  /**
   * The ids of jobs that this worker still runs. The lease of such a job may have expired while the
   * machine slept.
   */
  running?: ReadonlySet<number>
  /** Whether to also release unexpired leases of processes that have ended. */
  isThorough?: boolean
}

/**
 * Sets running jobs with an expired lease to waiting. Counts a crash for each job. Takes back the
 * attempt that `claim` counted, because a crash is not a failed attempt.
 */
export async function releaseExpired(
  ctx: Context,
  { running = new Set(), isThorough = false }: ReleaseOptions = {},
): Promise<void> {
  const held = ctx.db.selectFrom('jobs').select(['id', 'locked_by', 'locked_until']).where('state', '=', 'running')
  const rows = await (isThorough ? held : held.where('locked_until', '<', now(ctx))).execute()
  for (const { id, locked_by: owner, locked_until: until } of rows) {
    if (running.has(id) || ((until ?? '') >= now(ctx) && !isProcessGone(owner ?? ''))) continue
    await ctx.db
      .updateTable('jobs')
      .set(({ eb }) => ({
        state: 'waiting',
        attempts: eb('attempts', '-', 1),
        crashes: eb('crashes', '+', 1),
        locked_by: null,
        locked_until: null,
        last_error: 'The worker ended while it ran.',
        updated_at: now(ctx),
      }))
      .where('id', '=', id)
      .where('state', '=', 'running')
      .where('locked_by', '=', owner)
      .where('locked_until', '=', until)
      .execute()
  }
}

/** The lanes of running jobs (`JobKind.lanes`). */
export interface Lanes {
  /** Returns the lane of a job and its limit; null for a job without a lane. */
  of(row: Pick<JobRow, 'kind' | 'sequence'>): { name: string; atOnce: number } | null
  /** The number of running jobs in each lane. */
  running: ReadonlyMap<string, number>
  /** The beginnings of the sequences that have as many running jobs as they may have. */
  full: readonly string[]
}

const noLanes: Lanes = { of: () => null, running: new Map(), full: [] }

/**
 * Claims up to `most` due jobs for the owner `own`, oldest first. `free` is the number of free
 * slots of each kind. Jobs with an id in `running` and jobs of full lanes are skipped. `attempts`
 * of a returned job includes the coming attempt.
 */
export async function claim(
  ctx: Context,
  own: string,
  free: ReadonlyMap<string, number>,
  most: number,
  running: ReadonlySet<number> = new Set(),
  lanes: Lanes = noLanes,
): Promise<JobRow[]> {
  const kinds = [...free].filter(([, slots]) => slots > 0).map(([kind]) => kind)
  if (kinds.length === 0) return []
  const due = (db: Context['db']) =>
    db
      .selectFrom('jobs')
      .selectAll()
      .where('state', '=', 'waiting')
      .where('run_at', '<=', now(ctx))
      .where('kind', 'in', kinds)
      .where((eb) =>
        eb.and(lanes.full.map((lane) => eb.or([eb('sequence', 'is', null), eb('sequence', 'not like', `${lane}%`)]))),
      )
      .orderBy('run_at')
      .orderBy('id')
      .limit(most)
  // Most polls find nothing due, and a query without a transaction is cheaper.
  if ((await due(ctx.db).execute()).length === 0) return []
  return transaction(ctx, async (ctx) => {
    const slots = new Map(free)
    const taken = new Map(lanes.running)
    const found = await ctx.services.store.dialect.skippingLocked(due(ctx.db)).execute()
    const rows = found.filter((row) => {
      // The lease of a job that still runs here may have expired, so the job can look due.
      if (running.has(row.id)) return false
      const left = slots.get(row.kind) ?? 0
      const lane = lanes.of(row)
      const inLane = lane === null ? 0 : (taken.get(lane.name) ?? 0)
      if (left <= 0 || (lane !== null && inLane >= lane.atOnce)) return false
      slots.set(row.kind, left - 1)
      if (lane !== null) taken.set(lane.name, inLane + 1)
      return true
    })
    if (rows.length === 0) return []
    // Each claim has a unique owner id, because the same worker may claim the same job again.
    const locked = { locked_by: `${own}:${randomUUID()}`, locked_until: leaseEnd(ctx) }
    const claimed = await ctx.db
      .updateTable('jobs')
      .set((eb) => ({ ...locked, state: 'running', attempts: eb('attempts', '+', 1), updated_at: now(ctx) }))
      .where(
        'id',
        'in',
        rows.map(({ id }) => id),
      )
      .where('state', '=', 'waiting')
      .returning('id')
      .execute()
    const ids = new Set(claimed.map(({ id }) => id))
    return rows
      .filter(({ id }) => ids.has(id))
      .map((row) => ({ ...row, ...locked, state: 'running', attempts: row.attempts + 1 }))
  })
}

const leaseEnd = (ctx: Context): string => stamp(new Date(ctx.time.getTime() + leaseMs))

/** Extends the lease of the job. Returns false when the claim is lost. */
export async function renew(ctx: Context, { id, locked_by }: JobRow): Promise<boolean> {
  const { numUpdatedRows } = await ctx.db
    .updateTable('jobs')
    .set({ locked_until: leaseEnd(ctx) })
    .where('id', '=', id)
    .where('locked_by', '=', locked_by)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Returns whether the claim still has the lease of the job. */
export async function holdsLease({ db }: Context, { id, locked_by }: JobRow): Promise<boolean> {
  const held = db.selectFrom('jobs').select('id').where('id', '=', id).where('locked_by', '=', locked_by)
  return (await held.executeTakeFirst()) !== undefined
}

/** Deletes the row of a finished job and unblocks the next job of the sequence. */
export const finish = (ctx: Context, job: JobRow): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const { numDeletedRows } = await ctx.db
      .deleteFrom('jobs')
      .where('id', '=', job.id)
      .where('locked_by', '=', job.locked_by)
      .executeTakeFirst()
    if (numDeletedRows > 0n) await unblock(ctx, job.sequence)
  })

/**
 * Sets the job to waiting until `until`. Resets the number of crashes, because this run ended
 * without a crash.
 */
export async function postpone(
  ctx: Context,
  job: JobRow,
  until: Date,
  changes: Partial<Pick<JobRow, 'attempts' | 'last_error'>>,
): Promise<void> {
  await ctx.db
    .updateTable('jobs')
    .set({
      ...changes,
      state: 'waiting',
      crashes: 0,
      run_at: stamp(until),
      locked_by: null,
      locked_until: null,
      updated_at: now(ctx),
    })
    .where('id', '=', job.id)
    .where('locked_by', '=', job.locked_by)
    .execute()
}

/**
 * Buries the job: it runs again only if a user retries it. `also` runs in the same transaction if
 * the claim still has the lease of the job.
 */
export const bury = (ctx: Context, job: JobRow, error: string, also?: (ctx: Context) => Promise<void>): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const { numUpdatedRows } = await ctx.db
      .updateTable('jobs')
      // Frees the key for a new job. A user who retries the buried job decides whether its work is
      // still needed.
      .set({
        state: 'buried',
        dedupe_key: null,
        locked_by: null,
        locked_until: null,
        last_error: error,
        updated_at: now(ctx),
      })
      .where('id', '=', job.id)
      .where('locked_by', '=', job.locked_by)
      .executeTakeFirst()
    if (numUpdatedRows === 0n) return
    await also?.(ctx)
    await unblock(ctx, job.sequence)
  })

/**
 * Returns whether another job of the sequence is unfinished. A revived job then waits behind that
 * job.
 */
export async function isSequenceBusy(
  { db }: Context,
  { id, sequence }: Pick<JobRow, 'id' | 'sequence'>,
): Promise<boolean> {
  if (sequence === null) return false
  const other = db
    .selectFrom('jobs')
    .select('id')
    .where('sequence', '=', sequence)
    .where('state', 'in', unfinishedStates)
  return (await other.where('id', '<>', id).limit(1).executeTakeFirst()) !== undefined
}

/**
 * Takes a running job out of its sequence, so that later jobs of the sequence do not wait for this
 * job.
 */
export async function leaveSequence(ctx: InTransaction, id: number): Promise<void> {
  const jobs = ctx.db.selectFrom('jobs').select('sequence').where('id', '=', id)
  const sequence = (await jobs.executeTakeFirst())?.sequence ?? null
  if (sequence === null) return
  await ctx.db.updateTable('jobs').set({ sequence: null }).where('id', '=', id).execute()
  await unblock(ctx, sequence)
}

/**
 * Lets the first blocked job of the sequence run, unless another job of the sequence waits or runs.
 */
export async function unblock(ctx: InTransaction, sequence: string | null): Promise<void> {
  if (sequence === null) return
  const inState = (...states: JobRow['state'][]) =>
    ctx.db.selectFrom('jobs').select('id').where('sequence', '=', sequence).where('state', 'in', states).limit(1)
  if (await inState('waiting', 'running').executeTakeFirst()) return
  const first = await inState('blocked').orderBy('id').executeTakeFirst()
  if (!first) return
  await ctx.db
    .updateTable('jobs')
    .set({ state: 'waiting', updated_at: now(ctx) })
    .where('id', '=', first.id)
    .execute()
  ctx.unit.wakes = true
}
