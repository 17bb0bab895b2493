// Starts the workflows whose time has come. A workflow looks at the records whose date lies between
// its last look and now, so missed hours are made up for. The transaction that starts a run stores
// its occasion, so each date of a record starts it once, whichever process looks.
import { type RawBuilder, sql } from 'kysely'
import { DateTime } from 'luxon'
import type { EventBase } from '../../contract/types.ts'
import { defineJob } from '../../jobs/queue.ts'
import type { Schedule } from '../../jobs/schedules.ts'
import { type Context, now } from '../../kernel/context.ts'
import { daysAfter } from '../../kernel/runtime/clock.ts'
import { yieldToEventLoop } from '../../kernel/runtime/cooperative.ts'
import { today } from '../../kernel/values/format.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { emitOnly, transaction } from '../../kernel/write/write.ts'
import { workflowResources } from './action-subject.ts'
import type { Entity } from './comparable-fields.ts'
import { type Timing, type TimingField, timingField } from './timing.ts'
import { plan } from './triggers.ts'

const atOnce = 50

export const startTimedRuns = defineJob<{ due: string }>({
  kind: 'workflows.time',
  async run(ctx, _payload, { signal }) {
    for (const workflow of await timedWorkflows(ctx))
      if (!(await look(ctx, workflow, signal))) return { runAgainAt: ctx.time }
    await forget(ctx)
    return undefined
  },
})

const timedWorkflows = ({ db }: Context) =>
  db
    .selectFrom('workflows')
    .select(['id', 'name', 'event', 'entity_type', 'timing', 'due_after', 'due_until'])
    .where('is_active', '=', 1)
    .where('timing', 'is not', null)
    .orderBy('sort_order')
    .orderBy('id')
    .execute()

type Workflow = Awaited<ReturnType<typeof timedWorkflows>>[number]
type Found = { id: number; value: string }

/** Returns false when the signal ended it; the next look then begins where this one did. */
async function look(ctx: Context, workflow: Workflow, signal: AbortSignal): Promise<boolean> {
  const timing = JSON.parse(workflow.timing ?? 'null') as Timing
  const field = await timingField(ctx, workflow.entity_type, timing.field)
  const span = field && spanOf(ctx, workflow, timing, field)
  if (!field || !span) {
    ctx.services.log.warn({ workflow: workflow.id }, 'A workflow did not run: its date field or its days do not exist.')
    return true
  }
  for (let last: Found | null = null; ; await yieldToEventLoop()) {
    if (signal.aborted) return false
    const found: Found[] = await pageOf(ctx, workflow.entity_type, field, span, last)
    if (found.length > 0) await startRuns(ctx, workflow, timing, found)
    if (found.length < atOnce) break
    last = found.at(-1) ?? null
  }
  const looked = ctx.db
    .updateTable('workflows')
    .set({ due_until: now(ctx) })
    .where('id', '=', workflow.id)
  await looked.where('is_active', '=', 1).execute()
  return true
}

/**
 * The first and the last value of the field that are due. It overlaps the last look by a day, for
 * dates that were set meanwhile. Null for a span outside of the years that can be stored.
 */
function spanOf(ctx: Context, { due_after, due_until }: Workflow, { days }: Timing, { kind }: TimingField) {
  const zone = ctx.services.config.timezone
  const lookedAt = daysAfter(new Date(due_until ?? now(ctx)), -1)
  const after = due_after !== null && due_after > lookedAt ? due_after : lookedAt
  const value = (moment: string): DateTime =>
    kind === 'time'
      ? DateTime.fromISO(moment, { zone: 'utc' }).minus({ days })
      : DateTime.fromISO(today(new Date(moment), zone), { zone: 'utc' }).minus({ days })
  const [first, last] = [value(after), value(now(ctx))]
  if (first.year < 1 || last.year > 9999) return null
  const write = (moment: DateTime): string =>
    kind === 'time' ? moment.toFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'") : moment.toFormat('yyyy-MM-dd')
  return { first: write(first), last: write(last) }
}

async function pageOf(
  { db }: Context,
  entity: Entity,
  { column, where }: TimingField,
  { first, last }: { first: string; last: string },
  after: Found | null,
): Promise<Found[]> {
  const id: RawBuilder<number> = sql.ref(`${entity}.id`)
  const { rows } = await sql<Found>`select ${id} as id, ${column} as value from ${sql.table(entity)}
    where ${column} >= ${first} and ${column} <= ${last} ${where ? sql`and ${where}` : sql``}
    ${after ? sql`and (${column} > ${after.value} or (${column} = ${after.value} and ${id} > ${after.id}))` : sql``}
    order by ${column}, ${id} limit ${sql.lit(atOnce)}`.execute(db)
  return rows
}

/** Starts the runs of the records whose occasion is new. */
const startRuns = (ctx: Context, workflow: Workflow, { field, days }: Timing, found: readonly Found[]): Promise<void> =>
  transaction(ctx, async (ctx) => {
    const rows = await ctx.db
      .insertInto('workflow_occasions')
      .values(
        found.map(({ id, value }) => ({
          workflow_id: workflow.id,
          entity_id: id,
          occasion: `${field} ${days} ${value}`,
          created_at: now(ctx),
        })),
      )
      .onConflict((conflict) => conflict.columns(['workflow_id', 'entity_id', 'occasion']).doNothing())
      .returning('entity_id')
      .execute()
    const entity = workflow.entity_type
    const ids = rows.map(({ entity_id }) => entity_id).sort((a, b) => a - b)
    const records = await workflowResources[entity].getMany(ctx, ids)
    for (const [id, record] of records)
      await emitOnly(ctx, workflow.event as EventBase, { entity, id, shown: record as Snapshot })
    if (records.size > 0) await plan(ctx, await askedOf(ctx, workflow, [...records.keys()]))
  })

/** Returns the new events of the records, with the workflow. */
async function askedOf({ db }: Context, workflow: Workflow, ids: readonly number[]) {
  const events = await db
    .selectFrom('events')
    .select(['entity_id', ({ fn }) => fn.max('id').as('id')])
    .where('entity_type', '=', workflow.entity_type)
    .where('entity_id', 'in', ids)
    .where('name', '=', workflow.event)
    .groupBy('entity_id')
    .execute()
  return events.flatMap(({ id, entity_id }) => {
    const event = { id: Number(id), name: workflow.event, entity_type: workflow.entity_type, workflow_run_id: null }
    return entity_id === null ? [] : [{ workflow, event: { ...event, entity_id } }]
  })
}

/** Deletes the occasions before the time from which the next look begins. */
async function forget(ctx: Context): Promise<void> {
  const earliest = (await timedWorkflows(ctx)).map(({ due_until }) => due_until ?? now(ctx)).sort()[0]
  const until = daysAfter(new Date(earliest ?? now(ctx)), -3)
  for (let gone = atOnce; gone === atOnce; await yieldToEventLoop()) {
    const old = ctx.db.selectFrom('workflow_occasions').select('id').where('created_at', '<', until)
    const ids = (await old.orderBy('created_at').limit(atOnce).execute()).map(({ id }) => id)
    if (ids.length > 0) await ctx.db.deleteFrom('workflow_occasions').where('id', 'in', ids).execute()
    gone = ids.length
  }
}

export const schedules: readonly Schedule[] = [{ name: 'workflows:time', at: 60, job: startTimedRuns }]
