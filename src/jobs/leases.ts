// The rows of jobs and the leases on them: claiming, finishing, failing, burying. A row is changed only by the claim that holds its
// lease, so two workers never end the same run, nor two runs of one worker.
import { randomUUID } from 'node:crypto'
import type { Selectable } from 'kysely'
import type { DB } from '../../db/tables.gen.ts'
import { type Context, now } from '../kernel/context.ts'
import { stamp } from '../kernel/runtime/clock.ts'
import { isProcessGone } from '../kernel/runtime/process-identity.ts'
import { transaction } from '../kernel/write/write.ts'
import { unfinishedStates } from './queue.ts'

export type JobRow = Selectable<DB['jobs']>

export const leaseMs = 60_000

interface ReleaseOptions {
  /** What this worker still runs, whose lease has ended while the machine slept. */
  running?: ReadonlySet<number>
  /** Also what dead processes hold while its lease still runs. */
  isThorough?: boolean
}

/** Jobs whose worker is gone wait again. That is no failed try; how often it happened is counted by itself. */
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

/** Up to `most` jobs of the kinds that are due, oldest first, now held by `own`, without `running`. Their attempts count this one. */
export async function claim(
  ctx: Context,
  own: string,
  free: ReadonlyMap<string, number>,
  most: number,
  running: ReadonlySet<number> = new Set(),
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
      .orderBy('run_at')
      .orderBy('id')
      .limit(most)
  // Nothing is due most of the time: that is found out without a transaction.
  if ((await due(ctx.db).execute()).length === 0) return []
  return transaction(ctx, async (ctx) => {
    const slots = new Map(free)
    const rows = (await due(ctx.db).execute()).filter(({ id, kind }) => {
      // Somebody else had it and gave it back before this worker saw that its own run of it had lost the lease.
      if (running.has(id)) return false
      const left = slots.get(kind) ?? 0
      slots.set(kind, left - 1)
      return left > 0
    })
    if (rows.length === 0) return []
    // The claim has a name of its own: the same worker may claim the same job again.
    const locked = { locked_by: `${own}:${randomUUID()}`, locked_until: leaseEnd(ctx) }
    await ctx.db
      .updateTable('jobs')
      .set((eb) => ({ ...locked, state: 'running', attempts: eb('attempts', '+', 1), updated_at: now(ctx) }))
      .where(
        'id',
        'in',
        rows.map(({ id }) => id),
      )
      .execute()
    return rows.map((row) => ({ ...row, ...locked, state: 'running', attempts: row.attempts + 1 }))
  })
}

const leaseEnd = (ctx: Context): string => stamp(new Date(ctx.time.getTime() + leaseMs))

/** False when somebody else has the job by now. */
export async function renew(ctx: Context, { id, locked_by }: JobRow): Promise<boolean> {
  const { numUpdatedRows } = await ctx.db
    .updateTable('jobs')
    .set({ locked_until: leaseEnd(ctx) })
    .where('id', '=', id)
    .where('locked_by', '=', locked_by)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/** Whether the claim still stands. */
export async function holdsLease({ db }: Context, { id, locked_by }: JobRow): Promise<boolean> {
  const held = db.selectFrom('jobs').select('id').where('id', '=', id).where('locked_by', '=', locked_by)
  return (await held.executeTakeFirst()) !== undefined
}

/** The job is done: its row goes, and the next of its sequence may run. */
export const finish = (ctx: Context, job: JobRow): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const { numDeletedRows } = await ctx.db
      .deleteFrom('jobs')
      .where('id', '=', job.id)
      .where('locked_by', '=', job.locked_by)
      .executeTakeFirst()
    if (numDeletedRows > 0n) await unblock(ctx, job.sequence)
  })

/** It waits for another run. Whatever it came to, it did not crash. */
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

/** It is given up. `also` runs in the same transaction, when the job was still ours. */
export const bury = (ctx: Context, job: JobRow, error: string, also?: (ctx: Context) => Promise<void>): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const { numUpdatedRows } = await ctx.db
      .updateTable('jobs')
      // Its key is free for another: whoever retries this one decides that it is wanted.
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

/** Whether another of its sequence is to be done or being done; one that begins anew waits for it. */
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

/** Said by a job that runs: those behind it in its sequence no longer wait for it. */
export async function leaveSequence(ctx: Context & { unit: { wakes: boolean } }, id: number): Promise<void> {
  const jobs = ctx.db.selectFrom('jobs').select('sequence').where('id', '=', id)
  const sequence = (await jobs.executeTakeFirst())?.sequence ?? null
  if (sequence === null) return
  await ctx.db.updateTable('jobs').set({ sequence: null }).where('id', '=', id).execute()
  await unblock(ctx, sequence)
}

/** The first that is blocked may run, unless another of the sequence waits or runs. */
export async function unblock(ctx: Context & { unit: { wakes: boolean } }, sequence: string | null): Promise<void> {
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
