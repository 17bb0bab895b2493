// Imports the rows (DOMAIN 21.1): batches of 100, each in one transaction that also moves the import on, so that a crash at any
// moment repeats nothing and loses nothing. A row that is refused is undone alone. Events as everywhere, origin `import`.
import { type Context, now } from '../../kernel/context.ts'
import { pace } from '../../kernel/pace.ts'
import { inParts, longTransaction, savepoint } from '../../kernel/write.ts'
import { applyRow, readRow } from './apply.ts'
import type { Column } from './columns.ts'
import { counted, type Failing, forgetErrors, keepErrors } from './errors.ts'
import { draftOf, errorsOf } from './rows.ts'
import {
  actingFor,
  type Batch,
  batchSize,
  breathing,
  contextOf,
  Elsewhere,
  find,
  type ImportRow,
  occupy,
  planOf,
  Refused,
  type Run,
  readTable,
  vacate,
} from './run.ts'
import { complete, fail, faultOf, store } from './states.ts'
import { Unreadable } from './unreadable.ts'

interface Summary {
  created: number
  updated: number
  deleted: number
  skipped: number
}

/** More was wrong than the import allows: the batch is undone, what was wrong is told. */
class TooMany extends Refused {
  readonly failing: readonly Failing[]
  constructor(failing: readonly Failing[]) {
    super('too many errors')
    this.failing = failing
  }
}

/**
 * Goes on from where the import is until it is completed, failed or cancelled, or until the signal: false when something is left.
 * Throws `Elsewhere` when another process works on it.
 */
export async function processRows(run: Run): Promise<boolean> {
  const ctx = contextOf(run)
  const row = await find(ctx, run.id)
  if (row.state !== 'processing') return true
  try {
    await occupy(ctx, run)
    const { columns, faults, batches } = await readTable(ctx, row, row.processed_rows_count)
    const [fault] = faults
    // Its attributes may be others than when it was validated.
    if (fault) throw new Refused(fault.message)
    const breathe = breathing()
    for await (const batch of batches) {
      if (run.signal?.aborted) return false
      if (!(await processBatch(run, batch, columns))) return true
      await breathe()
    }
    await complete(await userOr(contextOf(run), row), run.id)
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Unreadable)) throw error
    const failing = error instanceof TooMany ? error.failing : [faultOf(error.message, 'import_failed')]
    await fail(await userOr(contextOf(run), row), run.id, failing)
  } finally {
    await vacate(run)
  }
  return true
}

/** The user of the import where there still is one: who acts is told in the events. */
async function userOr(ctx: Context, row: ImportRow): Promise<Context> {
  try {
    return await actingFor(ctx, row)
  } catch (error) {
    if (error instanceof Refused) return ctx
    throw error
  }
}

/** One batch, all of it or nothing. False when the import is to go no further. */
async function processBatch(run: Run, batch: Batch, columns: readonly (Column | null)[]): Promise<boolean> {
  const after = await longTransaction(
    contextOf(run),
    async (ctx) => {
      const row = await find(ctx, run.id)
      if (row.state !== 'processing') return null
      if (row.processed_rows_count !== batch.from) throw new Elsewhere('Another process has gone on with the import.')
      await occupy(ctx, run)
      const acting = await actingFor(ctx, row)
      const before = { ...row, ...(await resumed(ctx, row, batch)) }
      const plan = planOf(row)
      const summary = JSON.parse(row.summary) as Summary
      const own: Summary = { created: 0, updated: 0, deleted: 0, skipped: 0 }
      const failing: Failing[] = []
      for (const each of batch.rows) {
        await pace()
        const draft = draftOf(each, columns)
        try {
          own[(await savepoint(acting, () => applyRow(acting, plan, draft, readRow(acting, plan, draft)))).did]++
        } catch (error) {
          failing.push({ cells: each.cells, errors: errorsOf(draft, error) })
          own.skipped++
        }
      }
      const counts = counted(before, failing)
      if (row.validation_strategy === 'stop-on-errors' && counts.errors_count > row.allowed_errors)
        throw new TooMany(failing)
      await keepErrors(ctx, row.id, failing)
      const at = now(ctx)
      await ctx.db
        .insertInto('import_batches')
        .values({
          import_id: row.id,
          number: Math.floor(batch.from / batchSize) + 1,
          summary: JSON.stringify(own),
          created_at: at,
          updated_at: at,
        })
        .execute()
      const done = batch.from + batch.rows.length
      const all = Object.fromEntries(
        Object.entries(summary).map(([did, count]) => [did, count + own[did as keyof Summary]]),
      )
      const changes = {
        ...counts,
        processed_rows_count: done,
        progress: shareOf(done, row),
        summary: JSON.stringify(all),
      }
      await store(ctx, row, changes)
      return { ...row, ...changes }
    },
    inParts,
  )
  if (after) run.tell?.(after)
  return after !== null
}

/** 100 only when it is completed. */
export const shareOf = (done: number, { rows_count: total }: Pick<ImportRow, 'rows_count'>): number =>
  total ? Math.min(Math.floor((done * 100) / total), 99) : 0

/** The counts of an import that goes on after it failed: without what it failed for, which is tried again. */
async function resumed(ctx: Context, row: ImportRow, { rows }: Batch) {
  const first = rows[0]?.row ?? 0
  const again = await ctx.db
    .selectFrom('import_errors')
    .select('id')
    .where('import_id', '=', row.id)
    .where((where) => where.or([where('row', '<', 2), where('row', '>=', first)]))
    .executeTakeFirst()
  return again ? forgetErrors(ctx, row.id, first - 1) : {}
}
