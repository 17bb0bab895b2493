// Remembers the records of an import, for lists, campaigns and the undo: those of its rows, and the
// organizations, persons and tags that the rows created.
import { type RawBuilder, sql } from 'kysely'
import { chunks } from '../../../kernel/history/archive.ts'
import type { InTransaction } from '../../../kernel/write/write.ts'
import type { ImportRow } from '../settings.ts'
import { requestOf } from './import-run.ts'

/** The types that an import creates. The types of `ImportType` are also changed and deleted. */
export const importedTypes = ['persons', 'organizations', 'products', 'leads', 'tags'] as const

/**
 * Adds the records of a batch: those that the events of the transaction name, and those of its rows
 * (`ids`) without an event, which have not changed. The first batch with a record decides what the
 * import did to it.
 */
export async function rememberRecords(ctx: InTransaction, row: ImportRow, ids: readonly number[]): Promise<void> {
  const { firstEventId } = ctx.unit
  if (firstEventId !== undefined) {
    const verb = sql`case ${sql.join(verbs(ctx), sql` `)} else 2 end`
    const did = sql`case when min(${verb}) = 1 then 'created' when max(${verb}) = 3 then 'deleted' else 'updated' end`
    await sql`insert into import_records (import_id, entity_type, record_id, did)
      select cast(${row.id} as integer), entity_type, entity_id, ${did} from events
      where id >= ${firstEventId} and request_id = ${requestOf(row.id)} and origin = 'import'
        and entity_type in (${sql.join(importedTypes)})
      group by entity_type, entity_id order by min(id)
      on conflict (import_id, entity_type, record_id) do update set did = excluded.did
        where import_records.did = 'matched'`.execute(ctx.db)
  }
  for (const part of chunks([...new Set(ids)]))
    await ctx.db
      .insertInto('import_records')
      .values(part.map((id) => ({ import_id: row.id, entity_type: row.type, record_id: id, did: 'matched' })))
      .onConflict((conflict) => conflict.doNothing())
      .execute()
}

/** Returns the branches of a case: 1 for the events of creations, 3 for those of deletions. */
const verbs = ({ services }: InTransaction): RawBuilder<unknown>[] =>
  importedTypes.flatMap((type) => {
    const { create, delete: remove } = services.resources.get(type)?.events ?? {}
    return [sql`when name = ${`${create}.after`} then 1`, sql`when name = ${`${remove}.after`} then 3`]
  })
