// How much uploads may take that belong to no record: of one user, and of all. They go after a day, so this bounds what they fill.
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'

/** A file counts as at least so many bytes. That bounds the number of rows that have to be counted as well. */
const minCountedBytes = 16 * 1024
const mib = 1024 * 1024

/** Throws 413 when an upload of this size is too much. In the transaction that adds it, so that those at the same time are counted. */
export async function checkUploadQuota(ctx: Context, size: number): Promise<void> {
  const { uploadLimitMb, uploadUserLimitMb } = ctx.services.config
  const rows = await ctx.db
    .selectFrom('files')
    .select(({ fn, eb }) => [
      'user_id',
      fn
        .sum<number>(eb.case().when('size', '<', minCountedBytes).then(minCountedBytes).else(eb.ref('size')).end())
        .as('bytes'),
    ])
    .where('owner_type', 'is', null)
    .groupBy('user_id')
    .execute()
  const counted = Math.max(size, minCountedBytes)
  const own = rows.find(({ user_id }) => user_id === (ctx.user?.id ?? null))?.bytes ?? 0
  if (own + counted > uploadUserLimitMb * mib)
    throw new Problem(
      'payload_too_large',
      `Your uploads that belong to no record may take ${uploadUserLimitMb} MiB, and this one does not fit. Attach some to records, or delete them; what is not attached within a day is removed.`,
    )
  const all = rows.reduce((sum, { bytes }) => sum + Number(bytes), 0)
  if (all + counted > uploadLimitMb * mib)
    throw new Problem(
      'payload_too_large',
      `The uploads of all users that belong to no record may take ${uploadLimitMb} MiB, and this one does not fit. Attach or delete some, or try again tomorrow; what is not attached within a day is removed.`,
    )
}
