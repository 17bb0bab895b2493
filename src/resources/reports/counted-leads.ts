// What the reports count (DOMAIN 22.2): rows the caller may see, by owner and pipeline, and the place of an instant between
// others, which is how days of a time zone become a `group by`.
import { type RawBuilder, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { divided, fromBig } from '../../kernel/values/money.ts'

export interface ReportFilters {
  pipeline_id?: number | undefined
  user_id?: number | undefined
}

export const won = 2
export const lost = 3
export const open = 1

export const filteredLeads = (ctx: Context, { pipeline_id, user_id }: ReportFilters) =>
  ctx.db
    .selectFrom('leads')
    .where(visible(ctx, 'leads.user_id'))
    .$if(pipeline_id !== undefined, (rows) => rows.where('leads.lead_pipeline_id', '=', pipeline_id ?? 0))
    .$if(user_id !== undefined, (rows) => rows.where('leads.user_id', '=', user_id ?? 0))

/** Leads that were won, by when they were. */
export const wonLeads = (ctx: Context, asked: ReportFilters, [from, to]: readonly [string, string]) =>
  filteredLeads(ctx, asked)
    .where('leads.status', '=', won)
    .where('leads.closed_at', '>=', from)
    .where('leads.closed_at', '<=', to)

/** Which of the sections that begin at these instants a column falls into, from 0. */
export function sectionOf(column: string, begins: readonly string[]): RawBuilder<number> {
  const [, ...later] = begins
  if (later.length === 0) return sql<number>`0`
  const arms = later.map((begin, index) => sql`when ${sql.ref(column)} < ${begin} then ${sql.lit(index)}`)
  return sql<number>`case ${sql.join(arms, sql` `)} else ${sql.lit(later.length)} end`
}

/** An amount shared among a number, both exact. */
export interface Average {
  of: bigint
  among: bigint
}

/** A figure of scaled integers; its progress is rounded to 4 decimals. */
export const figure = (previous: bigint, current: bigint): Schema<'ReportFigure'> =>
  averageFigure({ of: previous, among: 1n }, { of: current, among: 1n })

/** The same of averages: what changed is told of the averages themselves, not of what is left of them after rounding. */
export function averageFigure(previous: Average, current: Average): Schema<'ReportFigure'> {
  const rounded = ({ of, among }: Average): number => (among === 0n ? 0 : fromBig(divided(of, among)))
  const [before, now] = [previous.of * current.among, current.of * previous.among]
  const change = (): number =>
    // nobody to share among leaves nothing
    current.among === 0n ? -100 : fromBig(divided((now - before) * 1_000_000n, before))
  const progress = previous.of === 0n ? null : change()
  return { previous: rounded(previous), current: rounded(current), progress }
}

/** A number of things as a scaled integer. */
export const scaledCount = (count: number | bigint): bigint => BigInt(count) * 10_000n
