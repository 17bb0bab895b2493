// Limits the total size of uploads that are not attached to a record, for each user and for all
// users together. The clean-up deletes such uploads after a day.
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'

/**
 * Smaller uploads count with this size in bytes, so that the limits also restrict the number of
 * small files.
 */
const minCountedBytes = 16 * 1024
const mib = 1024 * 1024

/**
 * Throws 413 when an upload of `size` bytes exceeds a limit. Must run in the transaction that adds
 * the upload, so that concurrent uploads count, too.
 */
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
      `Your unattached uploads may have ${uploadUserLimitMb} MiB in total. Attach some to records or delete them; unattached uploads are deleted after a day.`,
    )
  const all = rows.reduce((sum, { bytes }) => sum + Number(bytes), 0)
  if (all + counted > uploadLimitMb * mib)
    throw new Problem(
      'payload_too_large',
      `The unattached uploads of all users may have ${uploadLimitMb} MiB in total. Attach or delete some, or try again tomorrow; unattached uploads are deleted after a day.`,
    )
}
