// When a lead, person or organization is deleted, activities linked only to it are deleted too,
// with their own events (DOMAIN 23). Activities linked to a product stay.
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
