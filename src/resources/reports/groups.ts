// Counts and sums the records of a report by a group, and names the groups. A group whose record
// was deleted keeps the name that it had at the win.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import {
  type Counted,
  type Filter,
  figuresOf,
  filtered,
  referenceColumns,
  rowOfWin,
  type SectionSum,
  within,
  withoutIndex,
} from './engine.ts'

type Key = string | number | null

export type RowGroup = Exclude<Schema<'ReportGroup'>, 'day' | 'week' | 'month'>

/** The most groups that a report reads, those with the most records first. */
export const maxGroups = 500

export interface GroupRow extends Omit<SectionSum, 'section'> {
  /** The id of the record, or the value; null for records without one. */
  key: string | null
  label: string
  /** The position of a stage among all stages. */
  place: number
  /** The probability of the stage, for the counted that are split by it. */
  probability: number
}

interface Selection {
  filter: Filter
  /** The first and last time; null for records of all times. */
  bounds: readonly [string, string] | null
  /** A further condition. */
  where?: RawBuilder<SqlBool>
  /** Whether to split each group by the probability of the stages. */
  isWeighted?: boolean
}

const named = {
  user: { table: 'users', nameAtWin: 'user_name', none: 'No owner' },
  group: { table: 'groups', nameAtWin: null, none: 'No group' },
  source: { table: 'lead_sources', nameAtWin: 'source_name', none: 'No source' },
  type: { table: 'lead_types', nameAtWin: 'type_name', none: 'No type' },
  pipeline: { table: 'lead_pipelines', nameAtWin: 'pipeline_name', none: 'No pipeline' },
  stage: { table: 'lead_pipeline_stages', nameAtWin: 'stage_name', none: 'No stage' },
} as const

type Named = keyof typeof named

/** The columns of the groups whose values are texts. */
const texts = { lost_reason: 'lost_reason', activity_type: 'type', quote_status: 'status' } as const

function keyOf({ table }: Counted, group: RowGroup): RawBuilder<Key> {
  if (group === 'group') return sql<number>`member.group_id`
  const column = group in texts ? texts[group as keyof typeof texts] : null
  return column ? sql.ref<string>(`${table}.${column}`) : withoutIndex(`${table}.${referenceColumns[group as 'user']}`)
}

/** Joins the groups of the owner of each record: at the win for outcomes, else those of now. */
function withMembers(rows: ReturnType<typeof filtered>, { table }: Counted) {
  const isOutcome = table === 'lead_outcomes'
  const on = isOutcome ? sql`member.outcome_id = ${rowOfWin}` : sql`member.user_id = ${sql.ref(`${table}.user_id`)}`
  // Both tables have the column `group_id`, which is the only one used below.
  const members = isOutcome ? 'lead_outcome_groups' : 'user_groups'
  return rows.leftJoin(`${members as 'user_groups'} as member`, (join) => join.on(on as RawBuilder<SqlBool>))
}

/** Returns the figures of each group, or of all records, without an order. */
export async function sumsByGroup(
  ctx: Context,
  source: Counted,
  group: RowGroup | RawBuilder<Key> | null,
  { filter, bounds, where, isWeighted = false }: Selection,
): Promise<GroupRow[]> {
  const isOutcome = source.table === 'lead_outcomes'
  const key = typeof group === 'string' ? keyOf(source, group) : (group ?? sql<null>`null`)
  const probability = isWeighted ? sql<number>`weight.probability` : sql<number>`0`
  const all = bounds ? within(ctx, source, filter, bounds) : filtered(ctx, source, filter)
  const rows = group === 'group' ? (withMembers(all, source) as unknown as typeof all) : all
  const found = await rows
    .$if(isWeighted, (each) =>
      each.innerJoin('lead_pipeline_stages as weight', (join) =>
        join.on('weight.id', '=', withoutIndex('leads.lead_pipeline_stage_id')),
      ),
    )
    .$if(where !== undefined, (each) => each.where(where as RawBuilder<SqlBool>))
    .select([key.as('key'), probability.as('probability'), ...figuresOf(source)])
    .select((isOutcome ? sql<number>`max(lead_outcomes.id)` : sql<number>`0`).as('last'))
    // By their positions: with parameters, PostgreSQL does not recognize an expression.
    .$if(group !== null, (each) => each.groupBy(sql`1`))
    .$if(isWeighted, (each) => each.groupBy(sql`2`))
    .orderBy(sql`count(*)`, 'desc')
    .$if(group !== null, (each) => each.orderBy(sql`1`))
    // A group has a row for each probability.
    .limit(isWeighted ? maxGroups * 10 : maxGroups)
    .execute()
  const labels = typeof group === 'string' && group in named ? await labelsOf(ctx, group as Named, found) : new Map()
  return found.map(({ key, probability, count, reached, seconds, sum }) => ({
    key: key === null ? null : String(key),
    label: labels.get(key)?.label ?? (key === null ? noneOf(group) : String(key)),
    place: labels.get(key)?.place ?? 0,
    probability: Number(probability),
    count: Number(count),
    reached: Number(reached),
    seconds: Number(seconds),
    sum,
  }))
}

const noneOf = (group: unknown): string =>
  typeof group === 'string' && group in named ? named[group as Named].none : group === 'lost_reason' ? 'No reason' : ''

interface Label {
  label: string
  place: number
}

/** Returns the names of groups, and the places of stages. */
async function labelsOf(
  ctx: Context,
  group: Named,
  found: readonly { key: Key; last: number }[],
): Promise<Map<Key, Label>> {
  const ids = found.flatMap(({ key }) => (typeof key === 'number' ? key : []))
  if (ids.length === 0) return new Map()
  if (group === 'stage') return withMissing(ctx, group, found, await stageLabels(ctx, ids))
  const rows = await ctx.db
    // All of these tables have an id and a name.
    .selectFrom(named[group].table as 'lead_sources')
    .select(['id', 'name'])
    .where('id', 'in', ids)
    .execute()
  return withMissing(ctx, group, found, new Map(rows.map(({ id, name }) => [id, { label: name, place: 0 }])))
}

/** Names stages by their pipeline too, if they are of several. */
async function stageLabels({ db }: Context, ids: readonly number[]): Promise<Map<Key, Label>> {
  const rows = await db
    .selectFrom('lead_pipeline_stages as stage')
    .innerJoin('lead_pipelines as pipeline', 'pipeline.id', 'stage.lead_pipeline_id')
    .select(['stage.id', 'stage.name', 'pipeline.name as pipeline'])
    .where('stage.id', 'in', [...ids])
    .orderBy('pipeline.id')
    .orderBy('stage.sort_order')
    .execute()
  const isOne = new Set(rows.map(({ pipeline }) => pipeline)).size === 1
  return new Map(
    rows.map(({ id, name, pipeline }, place) => [id, { label: isOne ? name : `${pipeline}: ${name}`, place }]),
  )
}

/** Adds the names that deleted records had at the win. */
async function withMissing(
  { db }: Context,
  group: Named,
  found: readonly { key: Key; last: number }[],
  labels: Map<Key, Label>,
): Promise<Map<Key, Label>> {
  const missing = found.filter(({ key, last }) => key !== null && Number(last) > 0 && !labels.has(key))
  if (missing.length === 0) return labels
  const ids = sql`(${sql.join(missing.map(({ last }) => last))})`
  const column = named[group].nameAtWin
  const names = column
    ? sql<Kept>`select ${sql.ref(referenceColumns[group as 'user'])} as id, ${sql.ref(column)} as name from lead_outcomes where id in ${ids}`
    : sql<Kept>`select group_id as id, max(name) as name from lead_outcome_groups
        where outcome_id in (select ${rowOfWin} from lead_outcomes where id in ${ids}) group by group_id`
  for (const { id, name } of (await names.execute(db)).rows)
    if (name !== null && !labels.has(id)) labels.set(id, { label: name, place: Number.MAX_SAFE_INTEGER })
  return labels
}

interface Kept {
  id: number
  name: string | null
}
