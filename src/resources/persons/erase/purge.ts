// Removes the copies that the storage keeps after an erasure: freed space of the database, old
// pages of the write-ahead log, entries of deleted texts in the search index, and bytes of files.
import { defineJob } from '../../../jobs/queue.ts'
import { now } from '../../../kernel/context.ts'

interface Purge {
  erasure_id: number
  tables: string[]
  sha256s: string[]
}

export const purgeErased = defineJob<Purge>({
  kind: 'persons.purge',
  async run(ctx, { erasure_id: id, tables, sha256s }) {
    await ctx.services.sweepFiles(ctx, sha256s)
    await ctx.services.store.purge(tables)
    await ctx.db
      .updateTable('person_erasures')
      .set({ purged_at: now(ctx), updated_at: now(ctx) })
      .where('id', '=', id)
      .execute()
  },
})
