// Removes what is left over (DOMAIN 16): uploads that nobody attached within a day, files of records that are gone for good, and
// bytes that no row refers to. Bytes wait in a trash folder before they are deleted.
import { sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { restoreDays } from '../../kernel/history/archive.ts'
import { daysMs, stamp } from '../../kernel/runtime/clock.ts'
import { longTransaction, transaction } from '../../kernel/write/write.ts'
import { removeFile } from './handlers.ts'
import { type FileRow, rowsOf } from './rows.ts'

/** Bytes that were written a moment ago may be waiting for their row in another process. */
const settleMs = 60 * 60 * 1000
const atOnce = 100
/** A run moves this share of the files at most, or so many of a few. More point to a database that is not that of the files. */
const maxShare = 0.1
const minLimit = 10
/** How long bytes stay in the trash before they are deleted. */
export const trashDays = 7

export interface Cleaned {
  /** Rows that were removed. */
  files: number
  /** How many files' bytes were moved to the trash. */
  bytes: number
  /** How many files' bytes no row refers to and stayed, because they were too many. */
  left: number
  /** How many were deleted from the trash, and how many came back from it because a row refers to them. */
  deleted: number
  broughtBack: number
}

/**
 * Removes what nobody needs, each file with its events. Bytes go to the trash first. Bytes whose rows this run did not remove itself
 * are left alone if they are more than a tenth of all; `all` moves them too.
 */
export async function cleanFiles(ctx: Context, { all = false } = {}): Promise<Cleaned> {
  const { files: bytes, log } = ctx.services
  const broughtBack = await bringBack(ctx)
  const removed = await removeRows(ctx)
  const { known, others } = await unusedBytes(ctx, new Set(removed))
  const limit = Math.max(minLimit, Math.floor((await bytes.count()) * maxShare))
  const isTooMuch = !all && others.length > limit
  if (isTooMuch)
    log.error(
      { unreferenced: others.length, limit },
      'The clean-up left files alone: more than a tenth of them belong to no record. Check that the database is the right one; then run: accord files clean --all',
    )
  let moved = 0
  const chosen = isTooMuch ? known : [...known, ...others]
  for (let from = 0; from < chosen.length; from += atOnce)
    moved += await sweepFiles(ctx, chosen.slice(from, from + atOnce), (sha256) => bytes.moveToTrash(sha256, ctx.time))
  // While the database may be the wrong one the trash may be needed.
  const deleted = isTooMuch ? 0 : await bytes.emptyTrash(new Date(ctx.time.getTime() - daysMs(trashDays)))
  return { files: removed.length, bytes: moved, left: isTooMuch ? others.length : 0, deleted, broughtBack }
}

/** Answers the hashes of the bytes. */
async function removeRows(ctx: Context): Promise<string[]> {
  const removed: string[] = []
  for (const row of [...(await forgotten(ctx)), ...(await orphaned(ctx))]) {
    await transaction(ctx, async (ctx) => {
      // Somebody may have attached it meanwhile.
      const [now] = await rowsOf(ctx, [row.id])
      if (now?.owner_type !== row.owner_type) return
      await removeFile(ctx, row)
      removed.push(row.sha256)
    })
  }
  return removed
}

/** Bytes that no row refers to: those whose rows this run has removed, and all others. */
async function unusedBytes(
  { db, time, services }: Context,
  removed: ReadonlySet<string>,
): Promise<{ known: string[]; others: string[] }> {
  const [known, others]: [string[], string[]] = [[], []]
  const sort = async (batch: readonly string[]): Promise<void> => {
    for (const each of await unusedOf(db, batch)) (removed.has(each) ? known : others).push(each)
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

/** A restored row may refer to bytes in the trash. */
async function bringBack({ db, services }: Context): Promise<number> {
  const all = await services.files.inTrash()
  let count = 0
  for (let from = 0; from < all.length; from += atOnce) {
    const batch = all.slice(from, from + atOnce)
    const unused = new Set(await unusedOf(db, batch))
    for (const sha256 of batch.filter((each) => !unused.has(each))) {
      await services.files.takeFromTrash(sha256)
      count++
    }
  }
  return count
}

async function unusedOf(db: Context['db'], sha256s: readonly string[]): Promise<string[]> {
  if (sha256s.length === 0) return []
  const rows = await db.selectFrom('files').select('sha256').where('sha256', 'in', sha256s).distinct().execute()
  const used = new Set(rows.map(({ sha256 }) => sha256))
  return sha256s.filter((each) => !used.has(each))
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
export async function sweepFiles(
  ctx: Context,
  sha256s: readonly string[],
  remove: (sha256: string) => Promise<void> = ctx.services.files.remove,
): Promise<number> {
  if (sha256s.length === 0) return 0
  const own = { ...ctx, db: ctx.services.store.db, unit: null, dryRun: false, keyed: null }
  return longTransaction(own, async ({ db }) => {
    const unused = await unusedOf(db, sha256s)
    for (const each of unused) await remove(each)
    return unused.length
  })
}
