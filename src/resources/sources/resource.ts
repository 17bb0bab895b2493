// Sources of leads.
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { defineVocabulary } from './vocabulary.ts'

export const sources = defineResource({
  ...defineVocabulary({
    noun: 'source',
    table: 'lead_sources',
    entity: 'sources',
    column: 'lead_source_id',
    externalIds: { table: 'source_external_ids', column: 'source_id' },
  }),
  operations: {
    list: 'listSources',
    get: 'getSource',
    create: 'createSource',
    update: 'updateSource',
    delete: 'deleteSource',
  },
})
