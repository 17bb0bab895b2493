// Defines the record types that attributes can refer to, called lookup types. Their
// tables, labels and owner columns are repeated here, because the import order forbids imports from
// the resources that define those tables.
import { type SqlBool, sql } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import { type OperationFact, operations } from '../../contract/operations.gen.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { Handler } from '../../kernel/handler.ts'
import { conditions, valueField } from '../../kernel/query/filter.ts'
import { page, type Rows } from '../../kernel/query/page.ts'
import { visible } from '../../kernel/query/visibility.ts'

interface Lookup {
  noun: string
  table: keyof Tables
  label: string
  /** The column of the case-folded label, for search and sort. */
  key: string
  /** The owner column. Only tables with visibility rules have an owner column. */
  owner?: string
  only?: () => ReturnType<typeof sql<SqlBool>>
  lists: keyof typeof operations
}

const named = { label: 'name', key: 'name_key' }

export const lookups = {
  leads: { noun: 'lead', table: 'leads', label: 'title', key: 'title_key', owner: 'user_id', lists: 'listLeads' },
  lead_sources: { noun: 'source', table: 'lead_sources', ...named, lists: 'listSources' },
  lead_types: { noun: 'type', table: 'lead_types', ...named, lists: 'listTypes' },
  lead_pipelines: { noun: 'pipeline', table: 'lead_pipelines', ...named, lists: 'listPipelines' },
  lead_pipeline_stages: { noun: 'stage', table: 'lead_pipeline_stages', ...named, lists: 'listPipelines' },
  users: {
    noun: 'active user',
    table: 'users',
    ...named,
    only: () => sql<SqlBool>`users.is_active = ${1}`,
    lists: 'listColleagues',
  },
  organizations: {
    noun: 'organization',
    table: 'organizations',
    ...named,
    owner: 'user_id',
    lists: 'listOrganizations',
  },
  persons: { noun: 'person', table: 'persons', ...named, owner: 'user_id', lists: 'listPersons' },
  warehouses: { noun: 'warehouse', table: 'warehouses', ...named, lists: 'listWarehouses' },
  locations: { noun: 'location', table: 'warehouse_locations', ...named, lists: 'listLocations' },
  products: { noun: 'product', table: 'products', ...named, lists: 'listProducts' },
  quotes: {
    noun: 'quote',
    table: 'quotes',
    label: 'subject',
    key: 'subject_key',
    owner: 'user_id',
    lists: 'listQuotes',
  },
} as const satisfies Record<string, Lookup>

export type LookupType = keyof typeof lookups

/**
 * Lookup types by entity name. The entity name is the last segment of the entity's path in the
 * contract; delete hooks use the same names.
 */
export const lookupTypeOf: ReadonlyMap<string, LookupType> = new Map([
  ...(Object.keys(lookups) as LookupType[]).map((type): [string, LookupType] => [type, type]),
  ['sources', 'lead_sources'],
  ['types', 'lead_types'],
  ['pipelines', 'lead_pipelines'],
  ['stages', 'lead_pipeline_stages'],
])

/** Returns the entity of a lookup type, such as `sources` for `lead_sources`. */
export const entityOfLookup = (lookup: LookupType): string =>
  [...lookupTypeOf].find(([entity, type]) => type === lookup && entity !== lookup)?.[0] ?? lookup

const column = ({ table }: Lookup, name: string): string => `${table}.${name}`

/** Selects id and label of all records of a lookup type, without a visibility check. */
function labelRows(ctx: Context, lookup: Lookup): Rows<{ id: number; name: string }> {
  // The table is known only at run time, so the cast names an arbitrary table for the query
  // builder.
  const rows = ctx.db.selectFrom(lookup.table as 'leads') as unknown as Rows<unknown>
  return rows.select([`${column(lookup, 'id')} as id`, `${column(lookup, lookup.label)} as name`]) as Rows<{
    id: number
    name: string
  }>
}

/** Selects the visible records that may be chosen as a new value. */
function choosableRows(ctx: Context, lookup: Lookup): Rows<{ id: number; name: string }> {
  const rows = labelRows(ctx, lookup)
  const seen = lookup.owner === undefined ? rows : rows.where(visible(ctx, column(lookup, lookup.owner)))
  return lookup.only === undefined ? seen : seen.where(lookup.only())
}

/**
 * Returns the subset of `ids` whose records exist, are visible, and may be chosen as a new value.
 */
export async function findChoosable(
  ctx: Context,
  type: LookupType,
  ids: readonly number[],
): Promise<ReadonlySet<number>> {
  const lookup: Lookup = lookups[type]
  if (ids.length === 0) return new Set()
  const rows = await choosableRows(ctx, lookup)
    .where(column(lookup, 'id'), 'in', [...new Set(ids)])
    .execute()
  return new Set(rows.map(({ id }) => id))
}

/** Returns whether public web forms never list the records: users, and records with an owner. */
export const isOwned = (type: LookupType): boolean => type === 'users' || 'owner' in lookups[type]

/** Returns up to `most` visible records that may be chosen as a new value, sorted by label. */
export function listChoosable(ctx: Context, type: LookupType, most: number): Promise<{ id: number; name: string }[]> {
  const lookup: Lookup = lookups[type]
  return choosableRows(ctx, lookup)
    .orderBy(column(lookup, lookup.key))
    .orderBy(column(lookup, 'id'))
    .limit(most)
    .execute()
}

/**
 * Returns the labels of the records, by id. Labels ignore visibility, as references do.
 */
export async function findLabels(ctx: Context, type: LookupType, ids: readonly number[]): Promise<Map<number, string>> {
  const lookup: Lookup = lookups[type]
  if (ids.length === 0) return new Map()
  const rows = await labelRows(ctx, lookup)
    .where(column(lookup, 'id'), 'in', [...new Set(ids)])
    .execute()
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** Returns SQL for the case-folded label of the record with this id, as a sort key. */
export function labelSortKey(type: LookupType, id: ReturnType<typeof sql>): ReturnType<typeof sql<string | null>> {
  const lookup: Lookup = lookups[type]
  return sql<
    string | null
  >`(select looked.${sql.ref(lookup.key)} from ${sql.table(lookup.table)} as looked where looked.id = ${id})`
}

export const lookupAttributeValues: Handler<'lookupAttributeValues'> = async (ctx, { params, query }) => {
  const lookup: Lookup = lookups[params.lookup_type]
  const needed: OperationFact = operations[lookup.lists]
  let rows = choosableRows(ctx, lookup)
  if (!canCall(ctx, needed)) rows = rows.where(sql<SqlBool>`1 = 0`)
  const fields = { id: valueField(column(lookup, 'id')) }
  for (const condition of conditions(ctx, query, fields, [{ key: column(lookup, lookup.key) }]))
    rows = rows.where(condition)
  const sort = { name: column(lookup, lookup.key) }
  const shown = await page(ctx, rows, { ...query, sort: ['name'] }, sort, column(lookup, 'id'))
  return { data: shown.rows.map(({ id, name }) => ({ id, name })), links: shown.links, meta: shown.meta }
}
