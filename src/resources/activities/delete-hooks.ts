// Deletes activities together with their lead, person or organization. An activity that
// is linked to any other record, such as a product, stays.
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
