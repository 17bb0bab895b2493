// The sources of leads (DOMAIN 15.2). This is the simplest resource, and a good template for new
// ones.
import type { Schema } from '../../contract/types.ts'
import { text } from '../../kernel/query/filter.ts'
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { uniqueName } from '../../kernel/resource/references.ts'
import { leadsCount, refuseLastOrUsed } from './usage.ts'

export const sources = defineResource({
  noun: 'source',
  table: 'lead_sources',
  operations: {
    list: 'listSources',
    get: 'getSource',
    create: 'createSource',
    update: 'updateSource',
    delete: 'deleteSource',
  },
  rows: (ctx, db) =>
    db
      .selectFrom('lead_sources')
      .selectAll('lead_sources')
      .select(leadsCount(ctx, 'lead_source_id', 'lead_sources.id')),
  sort: { id: 'lead_sources.id', name: 'lead_sources.name_key', created_at: 'lead_sources.created_at' },
  filter: () => ({ name: text('lead_sources.name_key') }),
  search: [{ key: 'lead_sources.name_key' }],
  toRow: ({ name }, writing) => uniqueName(writing, { table: 'lead_sources', entity: 'sources', noun: 'source' }, name),
  toReply: (row): Schema<'Source'> => ({
    id: row.id,
    name: row.name,
    leads_count: Number(row.leads_count),
    created_at: row.created_at,
    updated_at: row.updated_at,
    version: row.version,
  }),
  beforeDelete: (ctx, row) => refuseLastOrUsed(ctx, 'lead_sources', 'lead_source_id', row),
})
