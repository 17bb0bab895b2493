// Handlers of persons besides list, get, create, update and delete: mass operations, export, tags,
// and the list of an organization's persons.

import type { Handlers } from '../../kernel/handler.ts'
import { exportOf } from '../../kernel/resource/export.ts'
import { massUpdate } from '../../kernel/resource/mass.ts'
import { organizations } from '../organizations/resource.ts'
import { createTagHandlers } from '../tags/tag-handlers.ts'
import { personColumns } from './columns.ts'
import { privacyHandlers } from './erase/handlers.ts'
import { persons } from './resource.ts'

const tagged = createTagHandlers('persons', persons)

export const handlers = {
  ...privacyHandlers,
  // No function handles the body property `value`, because the contract allows only `changes` for
  // persons.
  massUpdatePersons: massUpdate(persons),
  exportPersons: exportOf(persons, personColumns),
  listPersonTags: tagged.list,
  attachPersonTag: tagged.attach,
  detachPersonTag: tagged.detach,
  listOrganizationPersons: async (ctx, { params, query }) => {
    await organizations.assertVisible(ctx, params.id)
    return persons.list(ctx, query, (rows) => rows.where('persons.organization_id', '=', params.id))
  },
} satisfies Partial<Handlers>
