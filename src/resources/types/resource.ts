// Types of leads, such as new business (DOMAIN 15.2).
import type { Schema } from '../../contract/types.ts'
import { text } from '../../kernel/query/filter.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { uniqueName } from '../../kernel/resource/references.ts'
import { leadsCount, refuseLastOrUsed } from '../sources/usage.ts'

export const types = defineResource({
  noun: 'type',
  table: 'lead_types',
  operations: { list: 'listTypes', get: 'getType', create: 'createType', update: 'updateType', delete: 'deleteType' },
  rows: (ctx, db) =>
    db
      .selectFrom('lead_types')
      .selectAll('lead_types')
      .select(leadsCount(ctx, 'lead_type_id', 'lead_types.id')),
  sort: { id: 'lead_types.id', name: 'lead_types.name_key', created_at: 'lead_types.created_at' },
  filter: () => ({ name: text('lead_types.name_key') }),
  search: [{ key: 'lead_types.name_key' }],
  toRow: ({ name }, writing) => uniqueName(writing, { table: 'lead_types', entity: 'types', noun: 'type' }, name),
  toReply: (row): Schema<'LeadType'> => ({
    id: row.id,
    name: row.name,
    leads_count: Number(row.leads_count),
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  beforeDelete: (ctx, row) => refuseLastOrUsed(ctx, 'lead_types', 'lead_type_id', row),
})
