// Types of leads, such as new business.
import { defineResource } from '../../kernel/resource/define-resource.ts'
import { defineVocabulary } from '../sources/vocabulary.ts'

export const types = defineResource({
  ...defineVocabulary({
    noun: 'type',
    table: 'lead_types',
    entity: 'types',
    column: 'lead_type_id',
    externalIds: { table: 'type_external_ids', column: 'type_id' },
  }),
  operations: { list: 'listTypes', get: 'getType', create: 'createType', update: 'updateType', delete: 'deleteType' },
})
