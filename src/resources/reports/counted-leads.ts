// Selects the leads that reports count: visible to the caller, filtered by owner and
// pipeline. Also assigns leads to sections of time, and computes metrics that compare two periods.
// The queries read only the index of their period, which has all columns of reports (migration
// 0018). `withoutIndex` keeps SQLite from another index, for which it would read each lead.
import { type RawBuilder, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'
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
    .where(visible(ctx, 'leads.user_id'))
    .$if(pipeline_id !== undefined, (rows) => rows.where(withoutIndex('lead_pipeline_id'), '=', pipeline_id ?? 0))
    .$if(user_id !== undefined, (rows) => rows.where('leads.user_id', '=', user_id ?? 0))

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

/** The sections of a report: their first instants in ascending order, and the last instant. */
interface Sections {
  column: 'leads.created_at' | 'leads.closed_at'
  begins: readonly string[]
  to: string
}

const sums = [sql<number>`count(*)`.as('count'), sumOf('leads.lead_value').as('sum')] as const

/**
 * Counts and sums leads by section of time. `section` is the index in `begins`. All leads are read
 * with one SELECT for each section, because grouping takes three times as long as reading the index
 * of the period. The leads of some owners are grouped, so that each is read once.
 */
export async function sumsBySection(
  leads: ReturnType<typeof filteredLeads>,
  sections: Sections,
  isOfOwners: boolean,
): Promise<SectionSum[]> {
  const rows = await (isOfOwners ? grouped(leads, sections) : separate(leads, sections)).execute()
  const found = new Map(rows.map((row) => [Number(row.section), row]))
  return sections.begins.map((_, section) => found.get(section) ?? { section, count: 0, sum: '0|0' })
}

/** Returns whether the report is about the leads of some owners, which an index of leads finds. */
export const isReportOfOwners = (ctx: Context, { user_id }: ReportFilters): boolean =>
  user_id !== undefined || (ctx.user?.visibleOwners ?? null) !== null

function separate(leads: ReturnType<typeof filteredLeads>, { column, begins, to }: Sections) {
  const of = (from: string, section: number) => {
    const next = begins[section + 1]
    return leads
      .where(column, '>=', from)
      .where(column, next === undefined ? '<=' : '<', next ?? to)
      .select([sql<number>`${sql.lit(section)}`.as('section'), ...sums])
  }
  const [first = to, ...more] = begins
  return more.reduce((all, from, index) => all.unionAll(of(from, index + 1)), of(first, 0))
}

function grouped(leads: ReturnType<typeof filteredLeads>, { column, begins, to }: Sections) {
  // A search by halves: a chain of comparisons takes twice the time for 24 months.
  const among = (first: number, end: number): RawBuilder<number> => {
    if (end - first <= 1) return sql<number>`${sql.lit(first)}`
    const middle = (first + end) >> 1
    return sql<number>`case when ${sql.ref(column)} < ${begins[middle]} then ${among(first, middle)} else ${among(middle, end)} end`
  }
  return leads
    .where(column, '>=', begins[0] ?? to)
    .where(column, '<=', to)
    .select([among(0, begins.length).as('section'), ...sums])
    .groupBy('section')
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
