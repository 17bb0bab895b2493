// Selects the leads that reports count: visible to the caller, filtered by owner and
// pipeline. Also assigns leads to sections of time, and computes metrics that compare two periods.
// The queries read only the index of their period, which has all columns of reports (migration
// 0018). `withoutIndex` keeps SQLite from another index, for which it would read each lead.
import { type RawBuilder, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { visibleOwner } from '../../kernel/query/visibility.ts'
import { divided, fromBig, sumOf } from '../../kernel/values/money.ts'
import { leadStatus } from '../leads/change-stage.ts'

export interface ReportFilters {
  pipeline_id?: number | undefined
  user_id?: number | undefined
}

/** The column of leads as an expression for which SQLite uses no index of its own. */
export const withoutIndex = (column: string): RawBuilder<number> => sql<number>`(${sql.ref(`leads.${column}`)} + 0)`

export const filteredLeads = (ctx: Context, { pipeline_id, user_id }: ReportFilters) =>
  ctx.db
    .selectFrom('leads')
    .where(visibleOwner(ctx, withoutIndex('user_id')))
    .$if(pipeline_id !== undefined, (rows) => rows.where(withoutIndex('lead_pipeline_id'), '=', pipeline_id ?? 0))
    .$if(user_id !== undefined, (rows) => rows.where(withoutIndex('user_id'), '=', user_id ?? 0))

/**
 * Selects the leads won between two instants. Leads won exactly at one of the instants are
 * included.
 */
export const wonLeads = (ctx: Context, filters: ReportFilters, [from, to]: readonly [string, string]) =>
  filteredLeads(ctx, filters)
    .where(withoutIndex('status'), '=', leadStatus.won)
    .where('leads.closed_at', '>=', from)
    .where('leads.closed_at', '<=', to)

/** The leads of a section of time. The sum has the format `units|parts` of `sumOf`. */
interface SectionSum {
  section: number
  count: number
  sum: string
}

/**
 * Counts and sums leads by section of time, with one SELECT for each section: grouping takes three
 * times as long as reading the index. `begins` are the first instants of the sections, in ascending
 * order, and `to` is the last instant. `section` is the index in `begins`.
 */
export async function sumsBySection(
  leads: ReturnType<typeof filteredLeads>,
  column: 'leads.created_at' | 'leads.closed_at',
  begins: readonly string[],
  to: string,
): Promise<SectionSum[]> {
  const [first, ...more] = begins.map((begin, section) => {
    const next = begins[section + 1]
    return leads
      .where(column, '>=', begin)
      .where(column, next === undefined ? '<=' : '<', next ?? to)
      .select((eb) => [
        sql<number>`${sql.lit(section)}`.as('section'),
        eb.fn.countAll<number>().as('count'),
        sumOf('leads.lead_value').as('sum'),
      ])
  })
  const found = first ? await more.reduce((all, each) => all.unionAll(each), first).execute() : []
  return found.sort((one, other) => one.section - other.section)
}

/**
 * An average, kept as a sum (`of`) and a count (`among`) so that it stays exact until it is
 * rounded.
 */
export interface Average {
  of: bigint
  among: bigint
}

/**
 * Returns a metric that compares two amounts in ten-thousandths. `change_percent` is the change in
 * percent, rounded to 4 decimals.
 */
export const figure = (previous: bigint, current: bigint): Schema<'ReportFigure'> =>
  averageFigure({ of: previous, among: 1n }, { of: current, among: 1n })

/**
 * Returns a metric that compares two averages. `change_percent` is the change between the exact
 * averages, not between the rounded values. It is null when the previous average is zero.
 */
export function averageFigure(previous: Average, current: Average): Schema<'ReportFigure'> {
  const rounded = ({ of, among }: Average): number => (among === 0n ? 0 : fromBig(divided(of, among)))
  const [before, now] = [previous.of * current.among, current.of * previous.among]
  const change = (): number =>
    // An average of no records counts as zero, so the change is a decrease of 100 %.
    current.among === 0n ? -100 : fromBig(divided((now - before) * 1_000_000n, before))
  const change_percent = previous.of === 0n ? null : change()
  return { previous: rounded(previous), current: rounded(current), change_percent }
}

/** Returns a count in ten-thousandths, the unit of the amounts. */
export const scaledCount = (count: number | bigint): bigint => BigInt(count) * 10_000n
