// Deletes activities together with the lead, person or organization they are linked to (DOMAIN 23).
// It deletes only activities without any other link, each with its own events. Activities that are
// also linked to a product stay.
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
