// Deletes a record: runs the rules and delete hooks, stores an archive for a restore, and emits the
// event.
import { archiveThenDelete } from '../history/archive.ts'
import { bumpReferrers, detachReferrers } from '../history/backreferences.ts'
import { runDeleteHooks } from '../history/delete-hooks.ts'
import { saveStoredReferences } from '../history/stored-references.ts'
import { leadOwnersOf } from '../query/visibility.ts'
import { transaction, write } from '../write/write.ts'
import type { AnyResource, ResourceParts } from './any-definition.ts'
import type { RecordReader } from './read-records.ts'
import { settleRules } from './replace-named.ts'

export function createRemover(
  { d, facts, below, stored }: ResourceParts,
  reader: RecordReader,
): Pick<AnyResource, 'remove'> {
  const { entity, events } = facts
  const { table } = d
  return {
    async remove(ctx, id, replacement) {
      await transaction(ctx, async (ctx) => {
        const row = await reader.findCurrent(ctx, id)
        const before = await reader.toReply(ctx, row)
        const leadOwners = await leadOwnersOf(ctx, table, id)
        const removal = async () => {
          const done = await write(ctx, events.delete, { entity, input: {}, id, before }, async (ctx) => {
            await settleRules(ctx, { entity, id, noun: d.noun }, replacement)
            await d.beforeDelete?.(ctx, row)
            await runDeleteHooks(ctx, entity, id)
            await bumpReferrers(ctx, { entity, table, id })
            if (d.refersTo !== undefined) await saveStoredReferences(ctx, { entity, id }, [])
            await detachReferrers(ctx, { table, id })
            await stored.delete(ctx, id)
            return { id, entity: null }
          })
          const { eventId } = done
          if (leadOwners && eventId !== null)
            await ctx.db
              .updateTable('events')
              .set({ lead_owners: JSON.stringify(leadOwners) })
              .where('id', '=', eventId)
              .execute()
          return done
        }
        await (below.restore !== undefined ? archiveThenDelete(ctx, { entity, table, id }, removal) : removal())
      })
    },
  }
}
