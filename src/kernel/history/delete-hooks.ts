// Delete hooks (DOMAIN 23), for slices that may not import each other: deleting an organization
// deletes activities about nothing else, but contacts may not know activities. Listeners cannot do
// it, because `before` is synchronous and `after` runs after the commit.
import type { Context } from '../context.ts'

/** Runs in the transaction that deletes a record, before its row is deleted. */
export type DeleteHook = (ctx: Context, id: number) => Promise<void>

/** The hooks of each entity (`leads`, `persons` …), in the order they run. */
export type Releases = ReadonlyMap<string, readonly DeleteHook[]>

/** Merges the hooks of several slices. */
export function collectDeleteHooks(slices: readonly Readonly<Record<string, DeleteHook>>[]): Releases {
  const found = new Map<string, DeleteHook[]>()
  for (const slice of slices) {
    for (const [entity, release] of Object.entries(slice)) found.set(entity, [...(found.get(entity) ?? []), release])
  }
  return found
}

/**
 * Runs the hooks of a record, after `beforeDelete` of its definition. If-Match refers to this
 * record, not to those that the hooks change, so the hooks run without it.
 */
export async function runDeleteHooks(ctx: Context, entity: string, id: number): Promise<void> {
  for (const release of ctx.services.releases.get(entity) ?? []) await release({ ...ctx, ifMatch: null }, id)
}
