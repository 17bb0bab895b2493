// What else must go when a record is deleted (DOMAIN 23), for slices that may not import each other: deleting an organization
// deletes activities that are about nothing else, yet contacts may not know work. Listeners cannot do it: `before` is
// synchronous and `after` comes once the transaction is over. So the slice on the right exports its rule, app.ts hands all of
// them in with the services, and the slice on the left lets go in its own transaction.
import type { Context } from '../context.ts'

/** Lets go of one record; runs in the transaction that deletes it, before its row is gone. */
export type DeleteHook = (ctx: Context, id: number) => Promise<void>

/** By entity (`leads`, `persons` …), in the order they run. */
export type Releases = ReadonlyMap<string, readonly DeleteHook[]>

/** The rules of several slices as one registry. */
export function collectDeleteHooks(slices: readonly Readonly<Record<string, DeleteHook>>[]): Releases {
  const found = new Map<string, DeleteHook[]>()
  for (const slice of slices) {
    for (const [entity, release] of Object.entries(slice)) found.set(entity, [...(found.get(entity) ?? []), release])
  }
  return found
}

/**
 * Called for every record that a resource deletes, once its own `release` has had no objection. An If-Match was about the
 * record itself, so the others do not see it.
 */
export async function runDeleteHooks(ctx: Context, entity: string, id: number): Promise<void> {
  for (const release of ctx.services.releases.get(entity) ?? []) await release({ ...ctx, ifMatch: null }, id)
}
