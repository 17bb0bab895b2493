// Delete hooks: when one slice deletes a record, other slices can delete their records in the same
// transaction, without an import between the slices. For example, deleting an
// organization deletes the activities that refer only to this organization. Event listeners cannot
// do this: `before` is synchronous and `after` runs after the commit.
import type { Context } from '../context.ts'

/** Runs in the transaction that deletes a record, before the row of the record is deleted. */
export type DeleteHook = (ctx: Context, id: number) => Promise<void>

/** The hooks of each entity (`leads`, `persons` …), in the order in which they run. */
export type DeleteHooks = ReadonlyMap<string, readonly DeleteHook[]>

export function collectDeleteHooks(slices: readonly Readonly<Record<string, DeleteHook>>[]): DeleteHooks {
  const found = new Map<string, DeleteHook[]>()
  for (const slice of slices) {
    for (const [entity, hook] of Object.entries(slice)) found.set(entity, [...(found.get(entity) ?? []), hook])
  }
  return found
}

/**
 * Runs the delete hooks of a record, after `beforeDelete` of its definition. The hooks run without
 * If-Match, because that header names the version of this record, not of the records that the hooks
 * change.
 */
export async function runDeleteHooks(ctx: Context, entity: string, id: number): Promise<void> {
  for (const hook of ctx.services.deleteHooks.get(entity) ?? []) await hook({ ...ctx, ifMatch: null }, id)
}
