// POST /reports/query: one measure by one group for a period, compared with the calendar period
// before. The reply is JSON, CSV or a chart.
import { type RawBuilder, sql } from 'kysely'
import type { Data, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { ValidationErrors } from '../../kernel/errors.ts'
import { preferred } from '../../kernel/files/content-negotiation.ts'
import { download } from '../../kernel/files/download.ts'
import type { Handler } from '../../kernel/handler.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import { lines } from '../../kernel/resource/export.ts'
import { checkReferences } from '../../kernel/resource/references.ts'
import { today } from '../../kernel/values/format.ts'
import { divided, fromBig } from '../../kernel/values/money.ts'
import { groups } from '../groups/resource.ts'
import { pipelines } from '../pipelines/resource.ts'
import { sources } from '../sources/resource.ts'
import { types } from '../types/resource.ts'
import { users } from '../users/resource.ts'
import { queryChart } from './charts/query-chart.ts'
import { chartReply, svg } from './charts/reply.ts'
import { type Average, averageFigure, type Filter, sumsBySection } from './engine.ts'
import { type GroupRow, maxGroups, type RowGroup, sumsByGroup } from './groups.ts'
import { averageOf, type MeasureRule, measures } from './measures.ts'
import { calendarPeriod, namedDays, type Period, periodBounds, previousPeriod, splitPeriod } from './period.ts'

type Query = Schema<'ReportQuery'>
type Row = Schema<'ReportRow'>
type Figures = Pick<GroupRow, 'key' | 'label' | 'place'> & { value: Average }

const maxDays = 100
const times = { day: 'day', week: 'week', month: 'month' } as const
const isTime = (group: string | undefined): group is keyof typeof times => group !== undefined && group in times

/** Throws 422 for a combination that the contract does not define. */
function check(query: Query, { groups: known, source }: MeasureRule, period: Period | null): void {
  const errors = new ValidationErrors()
  const { group_by: group, filter = {}, from, to, period: name, compare, measure } = query
  if (group && !known.includes(group))
    errors.invalid('group_by', `The measure ${measure} can be divided by ${known.join(', ')}.`)
  if (source.table === 'activities' || source.table === 'quotes')
    for (const field of Object.keys(filter).filter((each) => each !== 'user_id' && each !== 'group_id'))
      errors.invalid(`filter.${field}`, `The measure ${measure} has only the filters user_id and group_id.`)
  if (name && (from || to)) errors.invalid('period', 'Send either `period` or `from` and `to`.')
  if ((from === undefined) !== (to === undefined))
    errors.invalid(from === undefined ? 'from' : 'to', 'Send both `from` and `to`.')
  if (source.isOpen && compare) errors.invalid('compare', `The measure ${measure} has no figures of an earlier period.`)
  if (isAlways(source) && (name || from)) errors.invalid('period', `The measure ${measure} is about all open leads.`)
  if (group === 'day' && period && period.days > maxDays)
    errors.invalid('group_by', `By day, a report covers at most ${maxDays} days.`)
  errors.throwIfAny()
}

const referred = {
  user_id: users,
  group_id: groups,
  lead_pipeline_id: pipelines,
  lead_source_id: sources,
  lead_type_id: types,
} as const

async function checkFilter(ctx: Context, filter: Filter = {}): Promise<void> {
  const errors = new ValidationErrors()
  // Every user may name each user.
  for (const [field, resource] of Object.entries(referred))
    await checkReferences(
      { ctx: resource === users ? withoutVisibility(ctx) : ctx, errors },
      `filter.${field}`,
      filter[field as keyof Filter],
      resource,
    )
  errors.throwIfAny()
}

/** Whether the records of a source have no period. */
const isAlways = ({ isOpen, time }: MeasureRule['source']): boolean => isOpen === true && time === 'created_at'

function periodOf({ period, from, to }: Query, { source }: MeasureRule, day: string, zone: string): Period | null {
  if (from !== undefined && to !== undefined) return calendarPeriod({ from, to }, zone)
  if (period === undefined && source.isOpen) return null
  return calendarPeriod(namedDays(period ?? 'this_month', day), zone)
}

/** Returns the figures of each row of a period, in order. */
async function figuresOf(ctx: Context, query: Query, measure: MeasureRule, period: Period | null): Promise<Figures[]> {
  const { group_by: group, filter = {} } = query
  const { source, isWeighted = false } = measure
  if (isTime(group) && period && !source.isOpen) {
    const buckets = splitPeriod(period, group)
    const [, to] = periodBounds(period)
    const sections = await sumsBySection(ctx, source, filter, { begins: buckets.map(({ from }) => from), to })
    return sections.map((row, place) => {
      const { label } = buckets[place] as { label: string }
      return { key: label, label, place, value: averageOf(measure, [row]) }
    })
  }
  if (group === 'month') return expectedMonths(ctx, query, measure, period)
  const bounds = period && (source.isOpen ? ([period.range.start, period.range.end] as const) : periodBounds(period))
  const rows = await sumsByGroup(ctx, source, (group as RowGroup | undefined) ?? null, { filter, bounds, isWeighted })
  return byKey(measure, rows)
}

/** Joins the rows of a key, which a weighted measure has for each probability. */
function byKey(measure: MeasureRule, rows: readonly GroupRow[]): Figures[] {
  const all = new Map<string | null, GroupRow[]>()
  for (const row of rows) all.set(row.key, [...(all.get(row.key) ?? []), row])
  return [...all.values()].map((rows) => {
    const { key, label, place } = rows[0] as GroupRow
    return { key, label, place, value: averageOf(measure, rows) }
  })
}

/** The expected leads by month: first those overdue, last those without a date. */
async function expectedMonths(
  ctx: Context,
  { filter = {} }: Query,
  measure: MeasureRule,
  period: Period | null,
): Promise<Figures[]> {
  const { services, time } = ctx
  const date = sql.ref('leads.expected_close_date')
  const day = today(time, services.config.timezone)
  const month = services.store.dialect.monthOf('leads.expected_close_date')
  const key: RawBuilder<string> = sql`case when ${date} is null then 'no_date' when ${date} < ${day} then 'overdue' else ${month} end`
  const where = period
    ? sql<boolean>`(${date} is null or ${date} < ${day} or ${date} between ${period.range.start} and ${period.range.end})`
    : undefined
  const selection = { filter, bounds: null, ...(where && { where }), isWeighted: measure.isWeighted ?? false }
  const found = byKey(measure, await sumsByGroup(ctx, measure.source, key, selection))
  const known = new Map(found.map((each) => [each.key, each]))
  const months = period
    ? splitPeriod(period, 'month').map(({ label }) => label)
    : found.flatMap(({ key }) => (key === null || key === 'overdue' || key === 'no_date' ? [] : key)).sort()
  const ends = { overdue: 'Overdue', no_date: 'No date' }
  return ['overdue', ...months.filter((label) => label >= day.slice(0, 7)), 'no_date'].map((key, place) => ({
    key,
    label: ends[key as keyof typeof ends] ?? key,
    place,
    value: known.get(key)?.value ?? averageOf(measure, []),
  }))
}

const shown = ({ of, among }: Average): number | null => (among === 0n ? null : fromBig(divided(of, among)))

function rowOf(key: string | null, label: string, now: Average, before: Average | null): Row {
  const change = before && averageFigure(before, now).change_percent
  return { key, label, value: shown(now), previous: before && shown(before), change_percent: change }
}

/** Joins the rows of two periods: days, weeks and months by their position, others by key. */
function joined(
  measure: MeasureRule,
  group: string,
  now: readonly Figures[],
  before: readonly Figures[] | null,
): Row[] {
  const nothing = averageOf(measure, [])
  if (isTime(group))
    return now.map(({ key, label, value }, place) => rowOf(key, label, value, before?.[place]?.value ?? null))
  const was = new Map(before?.map((each) => [each.key, each]))
  const present = new Set(now.map(({ key }) => key))
  const gone = (before ?? []).filter(({ key }) => !present.has(key)).map((each) => ({ ...each, value: nothing }))
  const all = [...now, ...gone].map((each) => ({
    place: each.place,
    row: rowOf(each.key, each.label, each.value, before && (was.get(each.key)?.value ?? nothing)),
  }))
  const order = ({ row: { value } }: { row: Row }): number => value ?? Number.NEGATIVE_INFINITY
  const byValue = (one: (typeof all)[0], other: (typeof all)[0]): number =>
    order(other) - order(one) || (one.row.label < other.row.label ? -1 : 1)
  return all
    .sort((one, other) => (group === 'stage' ? one.place - other.place : 0) || byValue(one, other))
    .map(({ row }) => row)
}

async function answer(ctx: Context, query: Query, period: Period | null): Promise<Data<'queryReport'>> {
  const measure = measures[query.measure]
  const { group_by: group, compare, ...ungrouped } = query
  const before = compare && period ? previousPeriod(period) : null
  const now = group ? await figuresOf(ctx, query, measure, period) : []
  const then = group && before ? await figuresOf(ctx, query, measure, before) : null
  // The total of a forecast by month includes the leads that are overdue or have no date.
  const isSumOfRows = group === 'month' && measure.source.isOpen === true
  const totalOf = async (period: Period | null, grouped: readonly Figures[]): Promise<Average> => {
    const rows = isSumOfRows ? grouped : await figuresOf(ctx, ungrouped, measure, period)
    return rows.reduce((sum, { value }) => ({ of: sum.of + value.of, among: value.among }), averageOf(measure, []))
  }
  const total = rowOf(null, 'Total', await totalOf(period, now), before && (await totalOf(before, then ?? [])))
  const daysOf = ({ range: { start, end } }: Period): Schema<'ReportDays'> => ({ from: start, to: end })
  return {
    measure: query.measure,
    unit: measure.unit,
    group_by: group ?? null,
    period: period && daysOf(period),
    compared: before && daysOf(before),
    rows: group ? joined(measure, group, now, then) : [],
    total,
    is_complete: isTime(group) || Math.max(now.length, then?.length ?? 0) < maxGroups,
  }
}

export const queryReport: Handler<'queryReport'> = async (ctx, { body }) => {
  const { timezone } = ctx.services.config
  const measure = measures[body.measure]
  check(body, measure, null)
  const period = periodOf(body, measure, today(ctx.time, timezone), timezone)
  check(body, measure, period)
  await checkFilter(ctx, body.filter)
  const data = await ctx.services.store.onReplica((db) => answer({ ...ctx, db }, body, period))
  const type = preferred(ctx, ['application/json', 'text/csv', svg])
  if (type === svg) {
    const { locale, currency } = ctx.services.config
    const tongue = { locale, currency }
    return chartReply(ctx, queryChart(data, measure.title, { tongue, today: today(ctx.time, timezone) }))
  }
  if (type === 'application/json') return { data }
  const rows = data.rows.length > 0 || data.group_by ? data.rows : [data.total]
  const table = lines([
    ['key', 'label', 'value', 'previous', 'change_percent'],
    ...rows.map(({ key, label, value, previous, change_percent }) => [key, label, value, previous, change_percent]),
  ])
  return download({ mediaType: 'text/csv; charset=utf-8', body: table, name: `${body.measure}.csv` })
}
