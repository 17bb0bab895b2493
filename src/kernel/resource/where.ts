// Reads the `where` of a query or of a saved view into the tree that query/filter.ts turns into
// SQL. Its fields are the filters of the list, and conditions on related records.
import { type RawBuilder, sql } from 'kysely'
import { operations } from '../../contract/operations.gen.ts'
import type { Context } from '../context.ts'
import { canCall } from '../context.ts'
import { invalid, Problem } from '../errors.ts'
import {
  compile,
  type FilterSource,
  type Leaf,
  type QueryValues,
  searchCandidates,
  type Tree,
  timeField,
  valueField,
} from '../query/filter.ts'
import { countUpTo, type FoundRows, withCondition } from '../query/id-pages.ts'
import { pruneJoins } from '../query/joins.ts'
import type { Rows } from '../query/page.ts'
import { searchFold } from '../values/names.ts'
import type { AnyDefinition } from './any-definition.ts'
import type { RelatedRecord } from './definition.ts'
import { maxRead } from './read-limit.ts'

export type Where = Readonly<Record<string, unknown>>

declare module '../context.ts' {
  interface SliceFunctions {
    /** Returns a view of records of an entity. Throws 422 when the caller sees no such view. */
    viewOfList: (ctx: Context, entity: string, id: number) => Promise<{ name: string; where: Where }>
  }
}

/** The largest number of conditions in one `where`, with those of related records. */
const maxConditions = 100

/** The filters of a resource, with those of every list (`ListParameter` of contract/types.ts). */
export const filterSources = ({ table, filter }: AnyDefinition): Record<string, FilterSource> => ({
  id: valueField(`${table}.id`),
  created_at: timeField(`${table}.created_at`),
  updated_at: timeField(`${table}.updated_at`),
  ...filter,
})

const groups = { and: 'all', or: 'any', not: 'none' } as const
const isGroup = (name: string): name is keyof typeof groups => Object.hasOwn(groups, name)

/** The operators of a condition, as query parameters name them. */
const operatorOf: Readonly<Record<string, string>> = { in: '', is_empty: 'null' }

const isObject = (value: unknown): value is Where =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the tree of a `where` that is valid by its schema. Throws 422 for too many tests. */
export function treeOf(ctx: Context, d: AnyDefinition, where: Where): Promise<Tree> {
  const number = conditionsIn(where)
  if (number > maxConditions)
    throw invalid({ where: [`Must not have more than ${maxConditions} conditions; it has ${number}.`] })
  return groupOf(ctx, d, where, 'where')
}

/** Returns the trees of the `where` and of the view of a query. A record must meet all of them. */
export async function treesOf(ctx: Context, d: AnyDefinition, { where, view }: QueryValues): Promise<Tree[]> {
  return [
    ...(where === undefined ? [] : [await treeOf(ctx, d, where as Where)]),
    ...(view === undefined ? [] : [await treeOfView(ctx, d, view as number)]),
  ]
}

/**
 * Returns the tree of a view, with what the caller sees. Throws 422 with the name of the view when
 * a field of its conditions has gone since they were saved.
 */
async function treeOfView(ctx: Context, d: AnyDefinition, id: number): Promise<Tree> {
  const entity = operations[d.operations.list].path.split('/').at(-1) ?? d.noun
  const { name, where } = await ctx.services.slices.viewOfList(ctx, entity, id)
  try {
    return await treeOf(ctx, d, where)
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'validation_failed') throw error
    const found = Object.entries(error.more.errors ?? {}).map(
      ([field, sentences]) => `${field}: ${sentences.join(' ')}`,
    )
    throw invalid({ 'query.view': found.map((each) => `The view ${name} no longer works. ${each}`) })
  }
}

/** Returns the number of conditions: of values that are not objects, and of lists of values. */
const conditionsIn = (value: unknown): number =>
  isObject(value)
    ? Object.values(value).reduce<number>((sum, each) => sum + conditionsIn(each), 0)
    : Array.isArray(value) && value.every(isObject)
      ? value.reduce<number>((sum, each) => sum + conditionsIn(each), 0)
      : 1

async function groupOf(ctx: Context, d: AnyDefinition, where: Where, path: string): Promise<Tree> {
  const sources = filterSources(d)
  const all: Tree[] = []
  for (const [name, sent] of Object.entries(where)) {
    const at = `${path}.${name}`
    const related = d.related?.[name]
    const source = sources[name]
    if (isGroup(name)) {
      const parts: Tree[] = []
      for (const [index, each] of (sent as Where[]).entries()) parts.push(await groupOf(ctx, d, each, `${at}.${index}`))
      all.push({ [groups[name]]: parts } as Tree)
    } else if (related) all.push(await relatedTo(ctx, related, sent as Where))
    else if (name === 'custom_attributes') all.push(...(await customLeaves(ctx, source, sent as Where, at)))
    else if (source) {
      const field = typeof source === 'function' ? await source(ctx, {}) : source
      for (const [operator, value] of Object.entries(isObject(sent) ? sent : { in: sent })) {
        if (/^(contains|starts_with)$/.test(operator) && searchFold(String(value)) === '')
          throw invalid({ [`${at}.${operator}`]: ['Must have a letter or a digit.'] })
        all.push({ field, operator: operatorOf[operator] ?? operator, value })
      }
    } else throw invalid({ [at]: ['Unknown field.'] })
  }
  return { all }
}

/**
 * Returns the condition that the caller sees the related record, and that it meets a `where`. Of
 * several linked records, one must meet it.
 */
async function relatedTo(ctx: Context, { entity, column, link }: RelatedRecord, where: Where): Promise<Tree> {
  const resource = ctx.services.resources.get(entity)
  if (!resource) throw new Error(`No resource ${entity}.`)
  if (!canCall(ctx, resource.listOperation)) return { any: [] }
  const rows = (await resource.query(ctx, { where })).clearSelect().clearOrderBy()
  const ids = pruneJoins(rows.select(sql<number>`${sql.ref(`${resource.table}.id`)}`.as('id')))
  const owners = link
    ? sql`(select ${sql.ref(`link.${link.owner}`)} from ${sql.table(link.table)} as link where ${sql.ref(`link.${link.related}`)} in ${ids})`
    : ids
  return { condition: sql`${sql.ref(column)} in ${owners}` }
}

/** Returns the leaves of custom attributes, read as the list reads its query parameters. */
async function customLeaves(
  ctx: Context,
  source: FilterSource | undefined,
  sent: Where,
  path: string,
): Promise<Leaf[]> {
  if (typeof source !== 'function') return []
  const leaves: Leaf[] = []
  for (const [code, condition] of Object.entries(sent))
    for (const [operator, value] of Object.entries(isObject(condition) ? condition : { in: condition })) {
      const name = operatorOf[operator] ?? operator
      const text = [value].flat().map((each) => String(each).replaceAll(',', '\\,'))
      const key = name === '' ? code : `${code}][${name}`
      // The code of an attribute has no bracket, which would begin an operator.
      if (code.includes(']')) throw invalid({ [`${path}.${code}`]: ['Unknown attribute.'] })
      try {
        const field = await source(ctx, { custom_attributes: { [key]: text.join() }, isWhere: true })
        leaves.push({ field, operator: '', value: [1] })
      } catch (error) {
        if (!(error instanceof Problem) || error.code !== 'validation_failed') throw error
        throw invalid({ [`${path}.${code}`]: Object.values(error.more.errors ?? {}).flat() })
      }
    }
  return leaves
}

/**
 * How a question reads at most `maxRead` records: its list, `q` by the search index, or a condition
 * that all records must meet, as a subquery of the ids that an index finds.
 */
export type Served = 'list' | 'search' | { ids: RawBuilder<unknown> }

/**
 * Returns what serves a query with the `trees` of a `where` or a view, which may also be a filter.
 * Throws 422 `query_too_costly` when nothing does. Indexes count the records, not more than the
 * limit.
 */
export async function servedBy(
  ctx: Context,
  d: AnyDefinition,
  query: QueryValues,
  trees: readonly Tree[],
  filters: readonly Leaf[],
): Promise<Served> {
  const all = { rows: () => ctx.db.selectFrom(d.table) as Rows<unknown>, text: `${d.table} stored`, values: [] }
  const isWithin = async (rows: FoundRows): Promise<boolean> => (await countUpTo(ctx, rows, maxRead)).isExact
  if (await isWithin(all)) return 'list'
  const byWords = d.search.filter((field) => !('whole' in field))
  const found = searchCandidates(ctx, query, byWords)
  if (found && (await isWithin({ rows: () => ctx.db.selectFrom(sql`(${found})`.as('found')), text: null, values: [] })))
    return 'search'
  for (const leaf of servedLeaves(d.table, { all: [...trees, ...filters] })) {
    const some = withCondition(ctx, all, compile(ctx, leaf))
    if (await isWithin(some))
      return { ids: sql`${some.rows().select(sql<number>`${sql.ref(`${d.table}.id`)}`.as('id'))}` }
  }
  const view = query.view === undefined ? [] : [`view ${query.view}`]
  const q = query.q === undefined ? [] : ['q']
  const names = [...Object.keys((query.where ?? {}) as Where), ...view, ...q].join(', ')
  throw new Problem(
    'query_too_costly',
    `By ${names || 'no condition'}, no index leaves at most ${maxRead.toLocaleString('en')} ${d.table} to read.`,
  )
}

/** Returns the leaves that every record must meet and whose records an index finds. */
function servedLeaves(table: string, tree: Tree): Leaf[] {
  if ('all' in tree) return tree.all.flatMap((each) => servedLeaves(table, each))
  if (!('field' in tree) || tree.operator === 'contains' || tree.operator === 'not') return []
  const { field } = tree
  const isServed = 'column' in field ? field.column.startsWith(`${table}.`) : 'isIndexed' in field
  return isServed ? [tree] : []
}
