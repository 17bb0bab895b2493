// What becomes of activities when a record they are about is deleted: those about nothing else go with it, with their own
// events (DOMAIN 23). Products are not here: activities about a product outlive it.
import type { DeleteHook } from '../../kernel/history/delete-hooks.ts'
import { aboutOnly } from './links.ts'
import { activities } from './resource.ts'

const releaseFrom =
  (kind: 'leads' | 'persons' | 'organizations'): DeleteHook =>
  async (ctx, id) => {
    for (const activityId of await aboutOnly(ctx, kind, id)) await activities.remove(ctx, activityId)
  }

export const releases = {
  leads: releaseFrom('leads'),
  persons: releaseFrom('persons'),
  organizations: releaseFrom('organizations'),
}
