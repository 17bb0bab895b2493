// Counts and sums the records of a report: those visible to the caller, filtered by owner, group
// and the references of a lead, in sections of time. Also computes metrics that compare two
// periods. Won and lost leads come from the ledger lead_outcomes, whose rows may be negative.
// The queries read only the index of their period, which has all columns of reports (migrations
// 0018, 0027). `withoutIndex` keeps SQLite from another index, for which it would read each lead.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { divided, fromBig, sumOf } from '../../kernel/values/money.ts'
import { leadStatus } from '../leads/change-stage.ts'

export type Filter = Schema<'ReportFilter'>
export type OutcomeKind = 'won' | 'lost' | 'passed' | 'dropped'

/** The records that a report counts, and when they count. */
export interface Counted {
  table: 'leads' | 'lead_outcomes' | 'activities' | 'quotes' | 'persons' | 'organizations'
  /** The column with the time of a record. */
  time: 'created_at' | 'at' | 'expected_close_date'
  amount?: 'lead_value' | 'amount' | 'grand_total'
  kinds?: readonly OutcomeKind[]
  isOpen?: true
}

export const countedRecords = {
  leads: { table: 'leads', time: 'created_at', amount: 'lead_value' },
  open: { table: 'leads', time: 'created_at', amount: 'lead_value', isOpen: true },
  expected: { table: 'leads', time: 'expected_close_date', amount: 'lead_value', isOpen: true },
  activities: { table: 'activities', time: 'created_at' },
  quotes: { table: 'quotes', time: 'created_at', amount: 'grand_total' },
  persons: { table: 'persons', time: 'created_at' },
  organizations: { table: 'organizations', time: 'created_at' },
} as const satisfies Record<string, Counted>

/** Returns the source of outcomes of some kinds. */
export const outcomes = (...kinds: OutcomeKind[]): Counted => ({
  table: 'lead_outcomes',
  time: 'at',
  amount: 'amount',
  kinds,
})

/**
 * The columns by which records are filtered and grouped. Leads and their outcomes share the names.
 */
export const referenceColumns = {
  user: 'user_id',
  source: 'lead_source_id',
  type: 'lead_type_id',
  pipeline: 'lead_pipeline_id',
  stage: 'lead_pipeline_stage_id',
} as const

/** Returns a column as an expression for which SQLite uses no index of its own. */
export const withoutIndex = (column: string): RawBuilder<number> => sql<number>`(${sql.ref(column)} + 0)`

const isIn = (value: RawBuilder<unknown>, ids: readonly number[]): RawBuilder<SqlBool> =>
  sql<SqlBool>`${value} in (${ids.length === 0 ? sql.lit(null) : sql.join([...ids])})`

/** Returns the condition that the owner of a record is in one of the groups: at the win, or now. */
function isOfGroups({ table }: Counted, groups: readonly number[]): RawBuilder<SqlBool> {
  if (table !== 'lead_outcomes')
    return sql<SqlBool>`${sql.ref(`${table}.user_id`)} in (select user_id from user_groups where ${isIn(sql`group_id`, groups)})`
  return sql<SqlBool>`exists (select 1 from lead_outcome_groups as own
    where own.outcome_id = ${rowOfWin} and ${isIn(sql`own.group_id`, groups)})`
}

/** The row with the groups and products of an outcome; a row that takes it back has none. */
export const rowOfWin = sql<number>`coalesce(lead_outcomes.reverses_id, lead_outcomes.id)`

/** Selects the records of a source that the caller may see and the filter selects. */
export function filtered(ctx: Context, source: Counted, filter: Filter) {
  const { table, kinds, isOpen } = source
  const { group_id: groups, user_id: users, ...others } = filter
  // `table` names one of several tables. The cast to leads is safe, because only columns that the
  // table has are used below.
  let rows = ctx.db.selectFrom(table as 'leads').where(visible(ctx, `${table}.user_id`))
  if (kinds) rows = rows.where(sql.ref(`${table}.kind`), 'in', [...kinds])
  if (isOpen) rows = rows.where(withoutIndex('leads.status'), '=', leadStatus.open)
  if (users) rows = rows.where(isIn(sql.ref(`${table}.user_id`), users))
  if (groups) rows = rows.where(isOfGroups(source, groups))
  for (const [column, ids] of Object.entries(others))
    if (ids) rows = rows.where(isIn(withoutIndex(`${table}.${column}`), ids))
  return rows
}

/** Selects the records of a source from one time to another, which are instants or days. */
export const within = (ctx: Context, source: Counted, filter: Filter, [from, to]: readonly [string, string]) => {
  const time = sql.ref<string>(`${source.table}.${source.time}`)
  return filtered(ctx, source, filter).where(time, '>=', from).where(time, '<=', to)
}

/** The records of a section of time. The sum has the format `units|parts` of `sumOf`. */
export interface SectionSum {
  section: number
  count: number
  /** The number of won leads, or of passed stages. */
  reached: number
  seconds: number
  sum: string
}

/** Sections of time: their first instants in ascending order, and the last instant. */
interface Sections {
  begins: readonly string[]
  to: string
}

/** Returns the figures of a group of records of a source. */
export function figuresOf({ table, amount }: Counted) {
  const isOutcome = table === 'lead_outcomes'
  const reached = sql<number>`coalesce(sum(case when kind in ('won', 'passed') then sign else 0 end), 0)`
  return [
    (isOutcome ? sql<number>`coalesce(sum(sign), 0)` : sql<number>`count(*)`).as('count'),
    (isOutcome ? reached : sql<number>`0`).as('reached'),
    (isOutcome ? sql<number>`coalesce(sum(seconds), 0)` : sql<number>`0`).as('seconds'),
    (amount ? sumOf(`${table}.${amount}`) : sql<string>`'0|0'`).as('sum'),
  ] as const
}

/**
 * Counts and sums records by section of time. `section` is the index in `begins`. All records are
 * read with one SELECT for each section, because grouping takes three times as long as reading the
 * index of the period. The records of some owners are grouped, so that each is read once, and so
 * are those of more sections than a SELECT may have parts.
 */
export async function sumsBySection(
  ctx: Context,
  source: Counted,
  filter: Filter,
  sections: Sections,
): Promise<SectionSum[]> {
  const isOfOwners = filter.user_id !== undefined || (ctx.user?.visibleOwners ?? null) !== null
  const by = isOfOwners || sections.begins.length > maxParts ? grouped : separate
  const rows = await by(filtered(ctx, source, filter), source, sections).execute()
  const found = new Map(rows.map((row) => [Number(row.section), row]))
  return sections.begins.map((_, section) => {
    const { count = 0, reached = 0, seconds = 0, sum = '0|0' } = found.get(section) ?? {}
    return { section, count: Number(count), reached: Number(reached), seconds: Number(seconds), sum }
  })
}

const maxParts = 40

type Filtered = ReturnType<typeof filtered>

function separate(rows: Filtered, source: Counted, { begins, to }: Sections) {
  const time = sql.ref<string>(`${source.table}.${source.time}`)
  const of = (from: string, section: number) => {
    const next = begins[section + 1]
    return rows
      .where(time, '>=', from)
      .where(time, next === undefined ? '<=' : '<', next ?? to)
      .select([sql<number>`${sql.lit(section)}`.as('section'), ...figuresOf(source)])
  }
  const [first = to, ...more] = begins
  return more.reduce((all, from, index) => all.unionAll(of(from, index + 1)), of(first, 0))
}

function grouped(rows: Filtered, source: Counted, { begins, to }: Sections) {
  const time = sql.ref<string>(`${source.table}.${source.time}`)
  // A search by halves: a chain of comparisons takes twice the time for 24 months.
  const among = (first: number, end: number): RawBuilder<number> => {
    if (end - first <= 1) return sql<number>`${sql.lit(first)}`
    const middle = (first + end) >> 1
    return sql<number>`case when ${time} < ${begins[middle]} then ${among(first, middle)} else ${among(middle, end)} end`
  }
  return rows
    .where(time, '>=', begins[0] ?? to)
    .where(time, '<=', to)
    .select([among(0, begins.length).as('section'), ...figuresOf(source)])
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
