// What is left over is removed (DOMAIN 16): uploads nobody attached within a day, files of records that are gone for good, and
// bytes no row refers to.
import { sql } from 'kysely'
import { restoreDays } from '../../kernel/archive.ts'
import { daysMs, stamp } from '../../kernel/clock.ts'
import type { Context } from '../../kernel/context.ts'
import { longTransaction, transaction } from '../../kernel/write.ts'
import { removeFile } from './handlers.ts'
import { type FileRow, rowsOf } from './rows.ts'

/** Bytes that were written a moment ago may be waiting for their row in another process. */
const settleMs = 60 * 60 * 1000
const atOnce = 100

/** Removes all of it, each file with its events. Returns how many there were. */
export async function cleanFiles(ctx: Context): Promise<{ files: number; bytes: number }> {
  let files = 0
  for (const row of [...(await forgotten(ctx)), ...(await orphaned(ctx))]) {
    await transaction(ctx, async (ctx) => {
      // Somebody may have attached it meanwhile.
      const [now] = await rowsOf(ctx, [row.id])
      if (now?.owner_type !== row.owner_type) return
      await removeFile(ctx, row)
      files++
    })
  }
  let bytes = 0
  let batch: string[] = []
  for await (const sha256 of ctx.services.files.keptBefore(new Date(ctx.time.getTime() - settleMs))) {
    batch.push(sha256)
    if (batch.length < atOnce) continue
    bytes += await sweepFiles(ctx, batch)
    batch = []
  }
  return { files, bytes: bytes + (await sweepFiles(ctx, batch)) }
}

const before = (ctx: Context, days: number): string => stamp(new Date(ctx.time.getTime() - daysMs(days)))

const forgotten = (ctx: Context): Promise<FileRow[]> =>
  ctx.db
    .selectFrom('files')
    .selectAll()
    .where('owner_type', 'is', null)
    .where('created_at', '<', before(ctx, 1))
    .orderBy('id')
    .execute()

/** Files of records that were deleted and cannot come back: until then they wait for them. */
async function orphaned(ctx: Context): Promise<FileRow[]> {
  const types = await ctx.db.selectFrom('files').select('owner_type').distinct().execute()
  const found: FileRow[] = []
  for (const { owner_type: type } of types) {
    const resource = type === null ? undefined : ctx.services.resources.get(type)
    if (!resource) continue
    const owner = sql`select 1 from ${sql.table(resource.table)} as owner where owner.id = files.owner_id`
    const archive = sql`select 1 from archives where entity_type = ${type} and entity_id = files.owner_id
      and archives.created_at >= ${before(ctx, restoreDays)}`
    const rows = ctx.db.selectFrom('files').selectAll().where('owner_type', '=', type)
    const gone = rows.where(sql<boolean>`not exists (${owner})`).where(sql<boolean>`not exists (${archive})`)
    found.push(...(await gone.orderBy('id').execute()))
  }
  return found
}

/**
 * Removes those of the bytes that no file refers to. In a transaction, so that no row can come meanwhile, and in one of its own: what
 * others delete beside it may come back when the common commit fails, and bytes would not.
 */
export async function sweepFiles(ctx: Context, sha256s: readonly string[]): Promise<number> {
  if (sha256s.length === 0) return 0
  const { services } = ctx
  const own = { ...ctx, db: services.store.db, unit: null, dryRun: false, beforeCommit: null }
  return longTransaction(own, async ({ db }) => {
    const rows = await db.selectFrom('files').select('sha256').where('sha256', 'in', sha256s).distinct().execute()
    const used = new Set(rows.map(({ sha256 }) => sha256))
    const unused = sha256s.filter((each) => !used.has(each))
    for (const each of unused) await services.files.remove(each)
    return unused.length
  })
}
