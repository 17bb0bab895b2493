// Deletes the activities of a deleted lead, person or organization (DOMAIN 23). Only activities
// without any other link are deleted, each with its own events. An activity that is also linked to
// a product stays.
import type { DeleteHook } from '../../kernel/history/delete-hooks.ts'
import { linkedOnlyTo } from './links.ts'
import { activities } from './resource.ts'

const deleteLinkedOnlyTo =
  (kind: 'leads' | 'persons' | 'organizations'): DeleteHook =>
  async (ctx, id) => {
    for (const activityId of await linkedOnlyTo(ctx, kind, id)) await activities.remove(ctx, activityId)
  }

export const deleteHooks = {
  leads: deleteLinkedOnlyTo('leads'),
  persons: deleteLinkedOnlyTo('persons'),
  organizations: deleteLinkedOnlyTo('organizations'),
}
