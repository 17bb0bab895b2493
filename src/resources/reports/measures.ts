// The measures of POST /reports/query: the records that each counts, its unit, and the groups by
// which it can be divided. The contract describes them (schemas ReportMeasure, ReportGroup).
import type { Schema } from '../../contract/types.ts'
import { scaledSum } from '../../kernel/values/money.ts'
import { type Average, type Counted, countedRecords, outcomes, scaledCount } from './engine.ts'
import type { GroupRow } from './groups.ts'

type Group = Schema<'ReportGroup'>

export interface MeasureRule {
  source: Counted
  title: string
  unit: Schema<'ReportQueryData'>['unit']
  groups: readonly Group[]
  isWeighted?: true
}

const owner: Group[] = ['user', 'group']
const lead: Group[] = [...owner, 'source', 'type', 'pipeline']
const time: Group[] = ['day', 'week', 'month']
const created = { source: countedRecords.leads, groups: [...lead, 'stage', ...time] as Group[] }
const won = { source: outcomes('won'), groups: [...lead, ...time] }
const lost = { source: outcomes('lost'), groups: [...lead, 'lost_reason', ...time] as Group[] }
const stages = { source: outcomes('passed', 'dropped'), groups: [...lead, 'stage', ...time] as Group[] }
const open = { source: countedRecords.open, groups: [...lead, 'stage'] as Group[] }
const expected = { source: countedRecords.expected, groups: [...lead, 'stage', 'month'] as Group[] }
const quotes = { source: countedRecords.quotes, groups: [...owner, 'quote_status', ...time] as Group[] }

export const measures: Record<Schema<'ReportMeasure'>, MeasureRule> = {
  leads_count: { ...created, title: 'Leads', unit: 'count' },
  leads_value: { ...created, title: 'Value of leads', unit: 'money' },
  won_count: { ...won, title: 'Won leads', unit: 'count' },
  won_value: { ...won, title: 'Value of won leads', unit: 'money' },
  lost_count: { ...lost, title: 'Lost leads', unit: 'count' },
  lost_value: { ...lost, title: 'Value of lost leads', unit: 'money' },
  conversion: { ...won, source: outcomes('won', 'lost'), title: 'Won of closed leads', unit: 'percent' },
  days_to_win: { ...won, title: 'Days to win', unit: 'days' },
  stage_conversion: { ...stages, title: 'Leads that passed the stage', unit: 'percent' },
  days_in_stage: { ...stages, title: 'Days in the stage', unit: 'days' },
  open_count: { ...open, title: 'Open leads', unit: 'count' },
  open_value: { ...open, title: 'Value of open leads', unit: 'money' },
  expected_count: { ...expected, title: 'Expected leads', unit: 'count' },
  expected_value: { ...expected, title: 'Expected value', unit: 'money' },
  forecast_value: { ...expected, title: 'Expected value, weighted by probability', unit: 'money', isWeighted: true },
  activities_count: {
    source: countedRecords.activities,
    groups: [...owner, 'activity_type', ...time],
    title: 'Activities',
    unit: 'count',
  },
  quotes_count: { ...quotes, title: 'Quotes', unit: 'count' },
  quotes_value: { ...quotes, title: 'Value of quotes', unit: 'money' },
}

type Figures = Pick<GroupRow, 'count' | 'reached' | 'seconds' | 'sum'> & { probability?: number }

const secondsPerDay = 86_400

/** Returns the value of a measure, as a sum in ten-thousandths and the count that divides it. */
export function averageOf({ unit, isWeighted }: MeasureRule, rows: readonly Figures[]): Average {
  const total = (each: (row: Figures) => bigint): bigint => rows.reduce((sum, row) => sum + each(row), 0n)
  const count = total((row) => BigInt(row.count))
  if (unit === 'count') return { of: scaledCount(count), among: 1n }
  if (unit === 'percent') return { of: scaledCount(total((row) => BigInt(row.reached)) * 100n), among: count }
  if (unit === 'days')
    return { of: scaledCount(total((row) => BigInt(row.seconds))), among: count * BigInt(secondsPerDay) }
  const weight = (row: Figures): bigint => BigInt(isWeighted ? (row.probability ?? 0) : 100)
  return { of: total((row) => scaledSum(row.sum) * weight(row)), among: 100n }
}
