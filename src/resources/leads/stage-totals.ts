// How many leads stand at each stage, and what they are worth, out of the totals that the database keeps (db/migrations/0021), for
// questions that these know the answer to: of some owners, stages and statuses.
import { type SqlBool, sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'

export interface StageTotal {
  stage: number
  count: number
  /** As `sumOf` tells it. */
  sum: string
}

const columns = { user_id: 'owner_id', lead_pipeline_stage_id: 'stage_id', status: 'status' } as const
/** What chooses no leads; the stages of a board are asked for apart. */
const idle = new Set(['pipeline_id', 'pipeline_stage_id', 'sort', 'page', 'per_page', 'count', 'include', 'fields'])

/** The filters as conditions on the totals; null when they ask for more than is kept. */
function asked(query: object): [column: string, values: number[]][] | null {
  const found: [string, number[]][] = []
  for (const [name, sent] of Object.entries(query)) {
    if (sent === undefined || idle.has(name)) continue
    if (!Object.hasOwn(columns, name)) return null
    const values = [sent].flat() as number[]
    if (values.length === 0) return null
    found.push([columns[name as keyof typeof columns], values])
  }
  return found
}

/** Whether the query asks for some leads only. */
export const filtersLeads = (query: object): boolean => asked(query)?.length !== 0

/** Of each of the stages that has any. Null when the filters ask for more than is kept. */
export async function loadStageTotals(
  ctx: Context,
  query: object,
  stages: readonly number[],
): Promise<StageTotal[] | null> {
  const filters = asked(query)
  if (filters === null) return null
  const rows = ctx.db
    .selectFrom('lead_totals')
    .select(['stage_id as stage', (eb) => eb.fn.sum<number>('lead_totals.count').as('count')])
    .select(sql<string>`cast(sum(units) as text) || '|' || cast(sum(parts) as text)`.as('sum'))
    .where(visible(ctx, 'lead_totals.owner_id'))
    .where('stage_id', 'in', [...stages])
    .groupBy('stage_id')
  return filters
    .reduce(
      (rows, [column, values]) =>
        rows.where(sql<SqlBool>`${sql.ref(`lead_totals.${column}`)} in (${sql.join(values)})`),
      rows,
    )
    .execute()
}
