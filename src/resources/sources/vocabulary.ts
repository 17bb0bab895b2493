// The shared definition of lead sources and lead types: rows with a unique name and a
// count of leads. A row cannot be deleted while leads use it, or if it is the last row.

import type { Db } from '../../../db/store.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import { textField } from '../../kernel/query/filter.ts'
import type { ExternalIdTable, Writing } from '../../kernel/resource/define-resource.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { uniqueName } from '../../kernel/resource/references.ts'
import { leadsCount, refuseLastOrUsed } from './usage.ts'

interface Vocabulary {
  noun: string
  table: 'lead_sources' | 'lead_types'
  /** The last segment of the list path, such as `sources`. */
  entity: 'sources' | 'types'
  column: 'lead_source_id' | 'lead_type_id'
  externalIds: ExternalIdTable
}

interface Row {
  id: number
  name: string
  leads_count: number
  created_at: string
  updated_at: string
  version: number
}

/** Returns the definition without `operations`. */
export const defineVocabulary = ({ noun, table, entity, column, externalIds }: Vocabulary) => ({
  noun,
  table,
  externalIds,
  namedBy: { keys: { name: nameKey }, isShown: true as const },
  rows: (ctx: SqlCaller, db: Db) =>
    db
      .selectFrom(table)
      .selectAll(table)
      .select(leadsCount(ctx, entity, `${table}.id`)),
  sort: { id: `${table}.id`, name: `${table}.name_key`, created_at: `${table}.created_at` },
  filter: { name: textField(`${table}.name_key`) },
  search: [{ key: `${table}.name_key` }],
  withoutColumn: {},
  toRow: async ({ name }: { name?: string }, writing: Writing<Row>) => ({
    columns: await uniqueName(writing, { table, entity, noun }, name),
  }),
  toReply: (row: Row): Schema<'Source'> & Schema<'LeadType'> => ({
    id: row.id,
    name: row.name,
    leads_count: Number(row.leads_count),
    external_ids: {},
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  beforeDelete: (ctx: Context, row: Row) => refuseLastOrUsed(ctx, table, column, row),
})
