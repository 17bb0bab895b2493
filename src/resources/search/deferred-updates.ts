// Updates the search documents of many records by jobs. A write of a record that many others quote,
// such as the new name of an organization with thousands of persons, would otherwise hold up other
// requests. Until the jobs have run, a search finds these records by the former values.
import { maxQuoting, type SearchIndex } from '../../../db/search/search-index.ts'
import type { Db, RecordRef } from '../../../db/store.ts'
import { defineJob, waitingJob } from '../../jobs/queue.ts'
import type { Context } from '../../kernel/context.ts'
import { chunks } from '../../kernel/history/archive.ts'
import type { Clock } from '../../kernel/runtime/clock.ts'
import { transaction } from '../../kernel/write/write.ts'

/** The number of documents that one job updates in one transaction. */
const atOnce = 100

export const searchUpdate = defineJob<{ entity: string; ids: number[] }>({
  kind: 'search.update',
  run: (ctx, { entity, ids }) =>
    transaction(ctx, async ({ unit }) => void unit.stale.push(...ids.map((id) => ({ entity, id })))),
})

/** Returns the index with updates that leave many quoting records to jobs. */
export const withDeferredUpdates = (index: SearchIndex, clock: Clock): SearchIndex => ({
  ...index,
  update: (db, records) => index.update(db, records, (db, quoting) => enqueueUpdates(db, quoting, clock.now())),
})

/** Updates the documents of records in the transaction, or by jobs if there are many. */
export async function updateDocuments({ db, unit, time }: Context, records: readonly RecordRef[]): Promise<void> {
  if (unit && records.length <= maxQuoting) unit.stale.push(...records)
  else {
    await enqueueUpdates(db, records, time)
    if (unit) unit.wakes = true
  }
}

/** Enqueues jobs in the transaction of `db`, which may be that of several writes. */
async function enqueueUpdates(db: Db, records: readonly RecordRef[], at: Date): Promise<void> {
  const byEntity = new Map<string, number[]>()
  for (const { entity, id } of records) {
    const ids = byEntity.get(entity)
    if (ids) ids.push(id)
    else byEntity.set(entity, [id])
  }
  const jobs: ReturnType<typeof waitingJob>[] = []
  for (const [entity, ids] of byEntity)
    for (let from = 0; from < ids.length; from += atOnce)
      jobs.push(waitingJob(searchUpdate.kind, { entity, ids: ids.slice(from, from + atOnce) }, { runAt: at, at }))
  for (const part of chunks(jobs)) await db.insertInto('jobs').values(part).execute()
}
