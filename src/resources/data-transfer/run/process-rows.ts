// Imports the rows of a file in batches of 100. The transaction of a batch also
// stores the progress, so a crash neither repeats nor loses rows. A refused row rolls back alone.
import { type Context, now } from '../../../kernel/context.ts'
import { type InTransaction, transaction } from '../../../kernel/write/write.ts'
import { applyRow } from '../apply-rows/apply-row.ts'
import { ImportStop, stops, takenOver } from '../errors.ts'
import { addToCounts, clearErrors, saveErrors } from '../report/row-errors.ts'
import { type ImportRow, planOf } from '../settings.ts'
import { type Batch, batchSize, readAhead, readTable } from './batches.ts'
import { asImportUser, findImport, type ImportRun, lockImport, runContext, unlockImport } from './import-run.ts'
import { rememberRecords } from './imported-records.ts'
import { applyLines, type BatchStep, progressOf, runBatches } from './run-batches.ts'
import { completeImport, failImport, importFault, storeState } from './states.ts'

interface Summary {
  created: number
  updated: number
  deleted: number
  skipped: number
}

/**
 * Continues the import until it is completed, failed, canceled or interrupted. Returns false after
 * an interruption; the run must then be continued later. Throws `ImportStop` when another process
 * works on the import.
 */
export async function processRows(run: ImportRun): Promise<boolean> {
  const ctx = runContext(run)
  const row = await findImport(ctx, run.id)
  if (row.state !== 'processing') return true
  try {
    await lockImport(ctx, run)
    const { faults, batches } = await readTable(ctx, row, row.processed_rows_count)
    const [fault] = faults
    // The header is checked again because custom attributes may have changed since validation.
    if (fault) throw new ImportStop(fault.message, { kind: 'import' })
    const end = await runBatches(run, readAhead(batches), (batch) => beginBatch(run, batch))
    if (end !== 'completed') return end === 'stopped'
    await completeImport(await asUserIfPossible(runContext(run), row), run.id)
  } catch (error) {
    if (!stops(error, 'file', 'import')) throw error
    const { stopped } = error
    const failing = ('failing' in stopped && stopped.failing) || [importFault(error.message, 'import_failed')]
    await failImport(await asUserIfPossible(runContext(run), row), run.id, failing)
  } finally {
    await unlockImport(run)
  }
  return true
}

/**
 * Returns a context with the import's user, so that events name the user. Returns the context
 * without a user when the import's user may no longer import.
 */
async function asUserIfPossible(ctx: Context, row: ImportRow): Promise<Context> {
  try {
    return await asImportUser(ctx, row)
  } catch (error) {
    if (stops(error, 'import')) return ctx
    throw error
  }
}

/**
 * Starts a batch. `worked` resolves when only the commit of the batch is left; `finish` resolves
 * when the batch is on disk.
 */
function beginBatch(run: ImportRun, batch: Batch): BatchStep {
  let reportWorked = (): void => {}
  const isWorked = new Promise<void>((resolve) => {
    reportWorked = resolve
  })
  const done = processBatch(run, batch, reportWorked)
  return { worked: Promise.race([isWorked, done]), begun: done, finish: () => done }
}

/** Processes one batch in one transaction. Returns false when the import must not continue. */
async function processBatch(run: ImportRun, batch: Batch, reportWorked: () => void): Promise<boolean> {
  const work = async (ctx: InTransaction): Promise<ImportRow | null> => {
    const row = await importRows(ctx, run, batch)
    reportWorked()
    return row
  }
  const after = await transaction(runContext(run), work, { isLong: true, inParts: true })
  if (after) run.onProgress?.(after)
  return after !== null
}

/**
 * Imports the rows of one batch and returns the updated import. Returns null when the import must
 * not continue.
 */
async function importRows(ctx: InTransaction, run: ImportRun, batch: Batch): Promise<ImportRow | null> {
  const row = await findImport(ctx, run.id)
  if (row.state !== 'processing') return null
  if (row.processed_rows_count !== batch.from) throw takenOver('Another process has continued the import.')
  await lockImport(ctx, run)
  const before = { ...row, ...(await countsToResume(ctx, row, batch)) }
  const plan = planOf(row)
  const summary = JSON.parse(row.summary) as Summary
  const own: Summary = { created: 0, updated: 0, deleted: 0, skipped: 0 }
  const records: number[] = []
  const failing = await applyLines(ctx, row, batch, async (ctx, { draft, reading }, known) => {
    const { did, id } = await applyRow(ctx, plan, draft, reading(), known)
    own[did]++
    if (did !== 'deleted') records.push(id)
  })
  await rememberRecords(ctx, row, records)
  own.skipped = failing.filter(({ isImported }) => !isImported).length
  const counts = addToCounts(before, failing)
  if (row.validation_strategy === 'stop-on-errors' && counts.errors_count > row.allowed_errors)
    // The batch is rolled back, and its errors are stored.
    throw new ImportStop('too many errors', {
      kind: 'import',
      failing: failing.filter(({ isImported }) => !isImported),
    })
  await saveErrors(ctx, row.id, failing)
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
  const done = batch.from + batch.lines.length
  const all = Object.fromEntries(
    Object.entries(summary).map(([did, count]) => [did, count + own[did as keyof Summary]]),
  )
  const changes = {
    ...counts,
    processed_rows_count: done,
    progress: progressOf(done, row),
    summary: JSON.stringify(all),
  }
  await storeState(ctx, row, changes)
  return { ...row, ...changes }
}

/**
 * Deletes the stored errors of rows that run again after a failure. Returns the error counters
 * without these rows.
 */
async function countsToResume(ctx: Context, row: ImportRow, { lines }: Batch) {
  const first = lines[0]?.draft.row ?? 0
  const again = await ctx.db
    .selectFrom('import_errors')
    .select('id')
    .where('import_id', '=', row.id)
    .where((where) => where.or([where('row', '<', 2), where('row', '>=', first)]))
    .executeTakeFirst()
  return again ? clearErrors(ctx, row.id, first - 1) : {}
}
