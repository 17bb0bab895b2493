// The leads that reports count (DOMAIN 22.2): visible to the caller, filtered by owner and
// pipeline. `sectionOf` groups them by sections of time, whose limits are days of a time zone.
import { type RawBuilder, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { divided, fromBig } from '../../kernel/values/money.ts'
import { leadStatus } from '../leads/stages.ts'

export interface ReportFilters {
  pipeline_id?: number | undefined
  user_id?: number | undefined
}

export const filteredLeads = (ctx: Context, { pipeline_id, user_id }: ReportFilters) =>
  ctx.db
    .selectFrom('leads')
    .where(visible(ctx, 'leads.user_id'))
    .$if(pipeline_id !== undefined, (rows) => rows.where('leads.lead_pipeline_id', '=', pipeline_id ?? 0))
    .$if(user_id !== undefined, (rows) => rows.where('leads.user_id', '=', user_id ?? 0))

/** Selects the leads won between two instants, both included. */
export const wonLeads = (ctx: Context, filters: ReportFilters, [from, to]: readonly [string, string]) =>
  filteredLeads(ctx, filters)
    .where('leads.status', '=', leadStatus.won)
    .where('leads.closed_at', '>=', from)
    .where('leads.closed_at', '<=', to)

/**
 * Returns the SQL expression for the number (from 0) of the time section that contains the column's
 * value. `begins` are the beginnings of the sections.
 */
export function sectionOf(column: string, begins: readonly string[]): RawBuilder<number> {
  const [, ...later] = begins
  if (later.length === 0) return sql<number>`0`
  const arms = later.map((begin, index) => sql`when ${sql.ref(column)} < ${begin} then ${sql.lit(index)}`)
  return sql<number>`case ${sql.join(arms, sql` `)} else ${sql.lit(later.length)} end`
}

/** An average as a sum and a count, so that it is exact until it is rounded. */
export interface Average {
  of: bigint
  among: bigint
}

/** Returns a figure from two scaled integers. Its progress is rounded to 4 decimals. */
export const figure = (previous: bigint, current: bigint): Schema<'ReportFigure'> =>
  averageFigure({ of: previous, among: 1n }, { of: current, among: 1n })

/**
 * Returns a figure from two averages. The progress compares the exact averages, not the rounded
 * ones.
 */
export function averageFigure(previous: Average, current: Average): Schema<'ReportFigure'> {
  const rounded = ({ of, among }: Average): number => (among === 0n ? 0 : fromBig(divided(of, among)))
  const [before, now] = [previous.of * current.among, current.of * previous.among]
  const change = (): number =>
    // An average over no records counts as zero, which is a drop of 100 %.
    current.among === 0n ? -100 : fromBig(divided((now - before) * 1_000_000n, before))
  const progress = previous.of === 0n ? null : change()
  return { previous: rounded(previous), current: rounded(current), progress }
}

/** Returns a count in ten-thousandths. */
export const scaledCount = (count: number | bigint): bigint => BigInt(count) * 10_000n
