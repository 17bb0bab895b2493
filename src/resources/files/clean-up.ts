// Deletes files that are no longer needed: uploads not attached within a day, files of
// records that cannot be restored any more, and stored bytes without a file row. Such bytes are
// first moved to a trash folder.
import { sql } from 'kysely'
import { type Context, now } from '../../kernel/context.ts'
import { daysMs, stamp } from '../../kernel/runtime/clock.ts'
import { transaction } from '../../kernel/write/write.ts'
import { removeFile } from './handlers.ts'
import { type FileRow, fileRows } from './rows.ts'

/**
 * The minimum age of stored bytes in milliseconds before the clean-up moves them to the trash. The
 * row of newer bytes may not be committed yet.
 */
const settleMs = 60 * 60 * 1000
const atOnce = 100
/**
 * If more than this share of all stored files has no row, probably the wrong database is open, and
 * these files stay in place. Files whose row the run itself deleted do not count. Up to `minLimit`
 * files are always moved.
 */
const maxShare = 0.1
const minLimit = 10
export const trashDays = 7

export interface CleanResult {
  /** The number of deleted file rows. */
  files: number
  /** The number of files whose bytes were moved to the trash. */
  bytes: number
  /** The number of files without a row that were not moved, because there were too many. */
  left: number
  /** The number of files deleted from the trash. */
  deleted: number
  /** The number of files taken out of the trash because a restored file row refers to them. */
  broughtBack: number
}

/**
 * Runs the clean-up and writes the events of each deleted file. `all` disables the limit
 * `maxShare`.
 */
export async function cleanFiles(ctx: Context, { all = false } = {}): Promise<CleanResult> {
  const { files: bytes, log } = ctx.services
  const broughtBack = await restoreFromTrash(ctx)
  const removed = await deleteRows(ctx)
  const { known, others } = await unusedBytes(ctx, new Set(removed))
  const limit = Math.max(minLimit, Math.floor((await bytes.count()) * maxShare))
  const isTooMuch = !all && others.length > limit
  if (isTooMuch)
    log.error(
      { unreferenced: others.length, limit },
      'The clean-up skipped files: more than a tenth of them belong to no record. Check that the right database is open, then run: accord files clean --all',
    )
  let moved = 0
  const chosen = isTooMuch ? known : [...known, ...others]
  for (let from = 0; from < chosen.length; from += atOnce)
    moved += await trashUnused(ctx, chosen.slice(from, from + atOnce))
  // If the wrong database is open, the right database may still need files in the trash.
  const deleted = isTooMuch ? 0 : await bytes.emptyTrash(new Date(ctx.time.getTime() - daysMs(trashDays)))
  return { files: removed.length, bytes: moved, left: isTooMuch ? others.length : 0, deleted, broughtBack }
}

/**
 * Deletes the rows of expired uploads and orphaned files. Returns the SHA-256 hashes of these
 * files.
 */
async function deleteRows(ctx: Context): Promise<string[]> {
  const removed: string[] = []
  for (const row of [...(await expiredUploads(ctx)), ...(await orphanedFiles(ctx))]) {
    const isRemoved = await transaction(ctx, async (ctx) => {
      // The file may have been attached after the query above selected it.
      const [now] = await fileRows(ctx, [row.id])
      if (now?.owner_type !== row.owner_type) return false
      await removeFile(ctx, row)
      return true
    })
    if (isRemoved) removed.push(row.sha256)
  }
  return removed
}

/**
 * Returns the SHA-256 hashes of stored bytes without a file row. `known` are the hashes whose row
 * this run deleted, and `others` are all other hashes.
 */
async function unusedBytes(
  { db, time, services }: Context,
  removed: ReadonlySet<string>,
): Promise<{ known: string[]; others: string[] }> {
  const [known, others]: [string[], string[]] = [[], []]
  const sort = async (batch: readonly string[]): Promise<void> => {
    for (const each of await filterUnused(db, batch)) (removed.has(each) ? known : others).push(each)
  }
  let batch: string[] = []
  for await (const sha256 of services.files.keptBefore(new Date(time.getTime() - settleMs))) {
    batch.push(sha256)
    if (batch.length < atOnce) continue
    await sort(batch)
    batch = []
  }
  await sort(batch)
  return { known, others }
}

/**
 * Restores bytes from the trash if a file row refers to them. Returns the number of restored files.
 */
async function restoreFromTrash({ db, services }: Context): Promise<number> {
  const all = (await services.files.inTrash()).map(({ sha256 }) => sha256)
  let count = 0
  for (let from = 0; from < all.length; from += atOnce) {
    const batch = all.slice(from, from + atOnce)
    const unused = new Set(await filterUnused(db, batch))
    for (const sha256 of batch.filter((each) => !unused.has(each))) {
      await services.files.takeFromTrash(sha256)
      count++
    }
  }
  return count
}

async function filterUnused(db: Context['db'], sha256s: readonly string[]): Promise<string[]> {
  if (sha256s.length === 0) return []
  const rows = await db.selectFrom('files').select('sha256').where('sha256', 'in', sha256s).distinct().execute()
  const used = new Set(rows.map(({ sha256 }) => sha256))
  return sha256s.filter((each) => !used.has(each))
}

const timestampBefore = (ctx: Context, days: number): string => stamp(new Date(ctx.time.getTime() - daysMs(days)))

const expiredUploads = (ctx: Context): Promise<FileRow[]> =>
  ctx.db
    .selectFrom('files')
    .selectAll()
    .where('owner_type', 'is', null)
    .where('created_at', '<', timestampBefore(ctx, 1))
    .orderBy('id')
    .execute()

/** Returns the files of deleted records that can no longer be restored. */
async function orphanedFiles(ctx: Context): Promise<FileRow[]> {
  const types = await ctx.db.selectFrom('files').select('owner_type').distinct().execute()
  const found: FileRow[] = []
  for (const { owner_type: type } of types) {
    const resource = type === null ? undefined : ctx.services.resources.get(type)
    if (!resource) continue
    const owner = sql`select 1 from ${sql.table(resource.table)} as owner where owner.id = files.owner_id`
    const archive = sql`select 1 from archives where entity_type = ${type} and entity_id = files.owner_id
      and archives.expires_at >= ${now(ctx)}`
    const rows = ctx.db.selectFrom('files').selectAll().where('owner_type', '=', type)
    const gone = rows.where(sql<boolean>`not exists (${owner})`).where(sql<boolean>`not exists (${archive})`)
    found.push(...(await gone.orderBy('id').execute()))
  }
  return found
}

/**
 * Removes stored bytes that have no file row, and returns their number. Bytes in a bucket are moved
 * to its trash. Runs in a separate transaction without concurrent writers, so that no row can be
 * added meanwhile. A rollback of the caller's transaction could not restore the bytes.
 */
export async function sweepFiles(ctx: Context, sha256s: readonly string[]): Promise<number> {
  const { remove } = ctx.services.files
  if (remove === null || sha256s.length === 0) return trashUnused(ctx, sha256s)
  const own = { ...ctx, db: ctx.services.store.db, unit: null, dryRun: false, keyed: null }
  const sweep = async ({ db }: Context): Promise<number> => {
    const unused = await filterUnused(db, sha256s)
    await Promise.all(unused.map(remove))
    return unused.length
  }
  return transaction(own, sweep, { isLong: true, isAlone: true })
}

/**
 * Moves stored bytes that have no file row to the trash. Concurrent writers are harmless: `find`
 * also reads the trash, and the next clean-up restores bytes that got a row.
 */
async function trashUnused({ services, time }: Context, sha256s: readonly string[]): Promise<number> {
  const unused = await filterUnused(services.store.db, sha256s)
  // Waits for all moves before throwing the first error, so that no move continues unobserved.
  const moves = await Promise.allSettled(unused.map((sha256) => services.files.moveToTrash(sha256, time)))
  for (const move of moves) if (move.status === 'rejected') throw move.reason
  return unused.length
}
