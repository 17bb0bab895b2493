// Undoes an import in pages, newest records first. The transaction of a page also stores the
// progress, so a crash neither repeats nor loses records.
import type { Schema } from '../../../contract/types.ts'
import { BuryJob, defineJob, enqueue, type RunAgain } from '../../../jobs/queue.ts'
import { signedInAs } from '../../../kernel/auth/tokens.ts'
import { assertCanCall, type Context, now, systemContext } from '../../../kernel/context.ts'
import { Problem } from '../../../kernel/errors.ts'
import { chunks } from '../../../kernel/history/archive.ts'
import { type InTransaction, transaction } from '../../../kernel/write/write.ts'
import { abilityOf } from '../abilities.ts'
import { canOpen } from '../owner.ts'
import { imports } from '../resource.ts'
import { findImport } from '../run/import-run.ts'
import { beginUndo, completeUndo, failUndo, storeState } from '../run/states.ts'
import type { ImportRow } from '../settings.ts'
import type { Remainder } from './former-values.ts'
import { undoRecord, undoRequestOf, writesOf } from './undo-record.ts'

const pageSize = 50
/** The maximum number of records that a dry run tries. */
const maxTried = 1000

/** The column `undo`: the reply, and the record before which the next page begins. */
type Progress = Schema<'ImportUndo'> & { before: number | null; done: number }

/** Starts the undo. A dry run undoes the newest records in the transaction of the caller. */
export const startUndo = (ctx: Context, id: number): Promise<Schema<'Import'>> =>
  transaction(ctx, async (ctx) => {
    const shown = await beginUndo(ctx, id, async (row) => {
      await checkUndo(ctx, row)
      return progressOf(ctx, row)
    })
    if (!ctx.dryRun) {
      await enqueue(ctx, undoImport, { import_id: id, user_id: ctx.user?.id ?? null })
      return shown
    }
    const trying = { ...ctx, ifMatch: null, origin: 'import', requestId: undoRequestOf(id) } as const
    for (let tried = 0; tried < maxTried; tried += pageSize) if (!(await undoPage(trying, id))) break
    return imports.get({ ...ctx, ifMatch: null }, id)
  })

/** Returns the progress of an undo that has failed, or of a new one. */
const progressOf = (ctx: Context, { undo }: ImportRow): Progress =>
  undo === null
    ? {
        progress: 0,
        deleted: 0,
        reverted: 0,
        restored: 0,
        remaining: 0,
        started_at: now(ctx),
        completed_at: null,
        before: null,
        done: 0,
      }
    : JSON.parse(undo)

/** Throws 403 for a caller who may not undo the import, and 409 for an import of an old version. */
async function checkUndo(ctx: Context, row: ImportRow): Promise<void> {
  if (!canOpen(ctx, row)) throw new Problem('forbidden', 'The import belongs to another user.')
  const types = await recordsOf(ctx, row.id).select('entity_type').distinct().execute()
  for (const { entity_type: type } of types) assertCanCall(ctx, abilityOf(writesOf(type).remove))
  const { created, updated, deleted } = JSON.parse(row.summary) as Schema<'ImportSummary'>
  if (types.length === 0 && created + updated + deleted > 0)
    throw new Problem('state_conflict', 'The import ran in an earlier version, which did not remember its records.')
}

const recordsOf = ({ db }: Context, id: number) => db.selectFrom('import_records').where('import_id', '=', id)

/** Undoes the next page. Returns false when no page is left, and completes the undo. */
async function undoPage(ctx: InTransaction, id: number): Promise<boolean> {
  const row = await findImport(ctx, id)
  if (row.state !== 'undoing' || row.undo === null) return false
  const progress = JSON.parse(row.undo) as Progress
  const changed = recordsOf(ctx, id).where('did', '!=', 'matched')
  const before = progress.before === null ? changed : changed.where('id', '<', progress.before)
  const records = await before
    .select(['id', 'entity_type', 'record_id', 'did'])
    .orderBy('id', 'desc')
    .limit(pageSize)
    .execute()
  if (records.length === 0) {
    await completeUndo(ctx, id, JSON.stringify({ ...progress, progress: 100, completed_at: now(ctx) }))
    return false
  }
  const left: (Remainder & { import_id: number } & Pick<(typeof records)[number], 'entity_type' | 'record_id'>)[] = []
  for (const record of records) {
    const { did, remainders } = await undoRecord(ctx, id, record)
    if (did) progress[did]++
    const { entity_type, record_id } = record
    left.push(...remainders.map((remainder) => ({ import_id: id, entity_type, record_id, ...remainder })))
  }
  for (const part of chunks(left)) await ctx.db.insertInto('import_remainders').values(part).execute()
  const { total } = await changed.select(({ fn }) => fn.countAll<number>().as('total')).executeTakeFirstOrThrow()
  progress.remaining += left.length
  progress.done += records.length
  progress.progress = Math.min(Math.floor((progress.done * 100) / Number(total)), 99)
  progress.before = records.at(-1)?.id ?? null
  await storeState(ctx, row, { undo: JSON.stringify(progress) })
  return true
}

export const undoImport = defineJob<{ import_id: number; user_id: number | null }>({
  kind: 'imports.undo',
  async run({ services }, { import_id: id, user_id: userId }, run): Promise<RunAgain | undefined> {
    for (;;) {
      if (run.signal.aborted) return { runAgainAt: services.clock.now() }
      const hasMore = await transaction(
        { ...systemContext(services, 'import'), requestId: undoRequestOf(id) },
        async (ctx) => {
          if (!(await run.holdsLease(ctx))) return false
          return undoPage(await actingAs(ctx, userId), id)
        },
        { isLong: true, inParts: true },
      )
      if (!hasMore) return undefined
    }
  },
  onBuried: (ctx, { import_id: id }, cause) => failUndo(ctx, id, cause),
  revive: async (ctx, { import_id: id }) => {
    await transaction(ctx, (ctx) => beginUndo(ctx, id, async (row) => progressOf(ctx, row)))
  },
})

/** Returns the context of the user who started the undo, with the user's current permissions. */
async function actingAs<C extends Context>(ctx: C, userId: number | null): Promise<C> {
  if (userId === null) return ctx
  const user = await signedInAs(ctx.db, userId)
  if (!user) throw new BuryJob('The user who started the undo was deleted or is inactive.')
  const acting = { ...ctx, user }
  try {
    assertCanCall(acting, 'undoImport')
  } catch (error) {
    if (error instanceof Problem) throw new BuryJob(error.message)
    throw error
  }
  return acting
}
