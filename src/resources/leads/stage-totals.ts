// Returns the number and total value of leads per stage. Reads the table lead_totals, which
// triggers maintain (db/migrations/0006). The table supports only filters by owner, stage and
// status.
import { type SqlBool, sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { leadTotals } from '../pipelines/lead-totals.ts'

export interface StageTotal {
  stage: number
  count: number
  /** The sum of the lead values as text, in the format `units|parts` of `sumOf`. */
  sum: string
}

/**
 * The columns of lead_totals to compare after the database was copied. Triggers fill the table in
 * the copy.
 */
export const comparedTotals = {
  name: 'lead_totals',
  columns: ['owner_id', 'stage_id', 'status', 'count', 'units', 'parts'],
  key: ['owner_id', 'stage_id', 'status'],
  json: [],
}

const columns = { user_id: 'owner_id', lead_pipeline_stage_id: 'stage_id', status: 'status' } as const
/**
 * Query parameters that do not restrict the leads. The stages of a board do not count as a filter,
 * because `loadStageTotals` gets them as an argument.
 */
const nonFilters = new Set([
  'pipeline_id',
  'pipeline_stage_id',
  'sort',
  'page',
  'per_page',
  'count',
  'include',
  'fields',
])

/**
 * Returns the filters of the query as columns of lead_totals with their accepted values. Returns
 * null when the table does not support one of the filters.
 */
function totalFilters(query: object): [column: string, values: number[]][] | null {
  const found: [string, number[]][] = []
  for (const [name, sent] of Object.entries(query)) {
    if (sent === undefined || nonFilters.has(name)) continue
    if (!Object.hasOwn(columns, name)) return null
    const values = [sent].flat() as number[]
    if (values.length === 0) return null
    found.push([columns[name as keyof typeof columns], values])
  }
  return found
}

/**
 * Returns the totals of the stages with matching leads. Returns null when lead_totals does not
 * support a filter of the query.
 */
export async function loadStageTotals(
  ctx: Context,
  query: object,
  stages: readonly number[],
): Promise<StageTotal[] | null> {
  const filters = totalFilters(query)
  if (filters === null) return null
  const rows = leadTotals(ctx).where('stage_id', 'in', [...stages])
  return filters
    .reduce(
      (rows, [column, values]) =>
        rows.where(sql<SqlBool>`${sql.ref(`lead_totals.${column}`)} in (${sql.join(values)})`),
      rows,
    )
    .execute()
}
