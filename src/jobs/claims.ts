// The rows of jobs and the leases on them: claiming, finishing, failing, burying. A row is changed only by whoever holds its
// lease, so two workers never end the same run.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Selectable } from 'kysely'
import type { DB } from '../../db/tables.gen.ts'
import { stamp } from '../kernel/clock.ts'
import { type Context, now } from '../kernel/context.ts'
import { transaction } from '../kernel/write.ts'

export type JobRow = Selectable<DB['jobs']>

export const leaseMs = 60_000

/** A name for one worker or scheduler, by which others on this machine can tell whether its process is alive. */
export const ownName = (): string => `${hostname()}:${process.pid}:${randomUUID()}`

/** Whether the owner of a lease was a process of this machine that is gone. Of other machines nothing is known. */
export function isDead(owner: string, own: string): boolean {
  const [host, pid = ''] = owner.split(':')
  if (host !== hostname() || owner === own) return false
  // A process that has our number and another name was there before us, or is us before a restart in a container.
  if (Number(pid) === process.pid) return true
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Jobs whose worker is gone wait again; with `own`, also those of dead processes whose lease still runs. */
export async function release(ctx: Context, own?: string): Promise<void> {
  const held = ctx.db.selectFrom('jobs').select(['id', 'locked_by', 'locked_until']).where('state', '=', 'running')
  const rows = await (own === undefined ? held.where('locked_until', '<', now(ctx)) : held).execute()
  const left = rows.filter(
    ({ locked_by, locked_until }) =>
      (locked_until ?? '') < now(ctx) || (own !== undefined && isDead(locked_by ?? '', own)),
  )
  if (left.length === 0) return
  await ctx.db
    .updateTable('jobs')
    .set({ state: 'waiting', locked_by: null, locked_until: null, last_error: 'The worker ended while it ran.' })
    .where(
      'id',
      'in',
      left.map(({ id }) => id),
    )
    .where('state', '=', 'running')
    .execute()
}

/** Up to `most` jobs of the kinds that are due, oldest first, now held by `own`. Their attempts count this one. */
export async function claim(
  ctx: Context,
  own: string,
  free: ReadonlyMap<string, number>,
  most: number,
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
    const rows = (await due(ctx.db).execute()).filter(({ kind }) => {
      const left = slots.get(kind) ?? 0
      slots.set(kind, left - 1)
      return left > 0
    })
    if (rows.length === 0) return []
    const locked = { locked_by: own, locked_until: leaseEnd(ctx) }
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

/** It waits for another run; `error` says why when the try failed, and without one the try does not count. */
export async function postpone(ctx: Context, job: JobRow, until: Date, error?: string): Promise<void> {
  await ctx.db
    .updateTable('jobs')
    .set({
      state: 'waiting',
      run_at: stamp(until),
      locked_by: null,
      locked_until: null,
      updated_at: now(ctx),
      ...(error === undefined ? { attempts: job.attempts - 1 } : { last_error: error }),
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

/** The first that is blocked may run, unless another of the sequence waits or runs. */
export async function unblock(ctx: Context & { unit: { wakes: boolean } }, sequence: string | null): Promise<void> {
  if (sequence === null) return
  const first = await ctx.db
    .selectFrom('jobs')
    .select(['id', 'state'])
    .where('sequence', '=', sequence)
    .where('state', '<>', 'buried')
    .orderBy('id')
    .executeTakeFirst()
  if (first?.state !== 'blocked') return
  await ctx.db
    .updateTable('jobs')
    .set({ state: 'waiting', updated_at: now(ctx) })
    .where('id', '=', first.id)
    .execute()
  ctx.unit.wakes = true
}
