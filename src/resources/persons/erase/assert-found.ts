// Finds persons for export and erasure, also deleted ones.
import type { Context } from '../../../kernel/context.ts'
import { notFound } from '../../../kernel/errors.ts'
import { lastArchive, wasArchiveSeen } from '../../../kernel/history/archive.ts'
import { wasSeen } from '../../../kernel/query/event-visibility.ts'
import { persons } from '../resource.ts'

/**
 * Throws 404 unless the caller sees the person, or saw it before its deletion. A person that was
 * deleted and erased is not found, and neither is one that was merged: its data is the winner's.
 */
export async function assertFound(ctx: Context, id: number): Promise<void> {
  if (await persons.exists(ctx, id)) return persons.assertVisible(ctx, id)
  const merged = ctx.db.selectFrom('person_merges').select('id').where('merged_id', '=', id)
  if ((await merged.executeTakeFirst()) !== undefined) throw notFound('person', id)
  const { records } = persons.sight
  const archive = await lastArchive(ctx, 'persons', id)
  if (archive && records && (await wasArchiveSeen(ctx, records, archive.id))) return
  const receipt = ctx.db.selectFrom('person_erasures').select('id').where('person_id', '=', id)
  const isErased = (await receipt.executeTakeFirst()) !== undefined
  if (!isErased && records && (await wasSeen(ctx, 'persons', records, id))) return
  throw notFound('person', id)
}
