// Validates an import. All rows are imported in batches, and each batch is rolled
// back. Only the errors are stored, and no events are emitted. dry-run-index.ts keeps the results
// of earlier batches.
import type { Context } from '../../../kernel/context.ts'
import { transaction } from '../../../kernel/write/write.ts'
import { applyRow } from '../apply-rows/apply-row.ts'
import {
  addKeys,
  addResult,
  createDryRunIndex,
  type DryRunIndex,
  endBatch,
  findEarlierRecord,
  undoBatch,
} from '../apply-rows/dry-run-index.ts'
import { type ReportedRow, stops, takenOver } from '../errors.ts'
import { countRows } from '../read-file/open-file.ts'
import { addChanges, addLeftOut, createNotices, warningsOf } from '../report/notices.ts'
import { addPreview, addRow, createPreview, type Preview } from '../report/preview.ts'
import { addToCounts, saveErrors } from '../report/row-errors.ts'
import { initialState } from '../resource.ts'
import { type ImportRow, planOf } from '../settings.ts'
import { type Batch, readAhead, readTable } from './batches.ts'
import { asImportUser, findImport, type ImportRun, lockImport, runContext, unlockImport } from './import-run.ts'
import { applyLines, type BatchStep, progressOf, runBatches } from './run-batches.ts'
import { importFault, storeState } from './states.ts'

/**
 * Validates the file from the beginning. Returns false when the run was interrupted. Throws
 * `ImportStop` when another process works on the import.
 */
export async function validateRows(run: ImportRun): Promise<boolean> {
  const ctx = runContext(run)
  if ((await findImport(ctx, run.id)).state !== 'validating') return true
  try {
    await resetResults(run, null)
    const row = await resetResults(run, await countRows(ctx, await findImport(ctx, run.id)))
    await asImportUser(ctx, row)
    const table = await readTable(ctx, row)
    const { faults, batches } = table
    if (faults.length > 0) {
      await finishValidation(run, [
        { cells: [], errors: faults.map((fault) => ({ row: 1, code: 'invalid_header', ...fault })), isImported: false },
      ])
      return true
    }
    const index = createDryRunIndex()
    const notices = createNotices()
    const preview = createPreview()
    const notice = ({ lines }: Batch, { failing, counted }: Tried): void => {
      addPreview(preview, counted)
      preview.skipped += failing.filter(({ isImported }) => !isImported).length
      for (const { draft } of lines) {
        addChanges(notices, [...draft.changes, ...draft.named.values()])
        addLeftOut(notices, table.headers, table.leftOut, draft.cells)
      }
    }
    const outcome = await runBatches(run, readAhead(batches), (batch) => beginBatch(run, batch, index, notice))
    if (outcome === 'interrupted') return false
    await finishValidation(run, [], {
      changes: JSON.stringify([...notices.changes.values()]),
      warnings: JSON.stringify(warningsOf(notices, table.findings)),
      preview: JSON.stringify(preview),
    })
  } catch (error) {
    if (!stops(error, 'file', 'import')) throw error
    await finishValidation(run, [
      importFault(error.message, 'unreadable', null, error.stopped.kind === 'file' ? error.stopped.row : 0),
    ])
  } finally {
    await unlockImport(run)
  }
  return true
}

/** Starts the dry run of a batch. Its errors are stored while the next batch runs. */
function beginBatch(
  run: ImportRun,
  batch: Batch,
  index: DryRunIndex,
  notice: (batch: Batch, tried: Tried) => void,
): BatchStep {
  const tried = tryBatch(run, batch, index)
  const finish = async (): Promise<true> => {
    endBatch(index)
    const result = await tried
    notice(batch, result)
    await storeBatch(run, batch, result.failing)
    return true
  }
  return { worked: tried, begun: tried, finish }
}

/** Removes the results of an earlier validation and stores the number of rows. */
const resetResults = (run: ImportRun, rows: number | null): Promise<ImportRow> =>
  transaction(runContext(run), async (ctx) => {
    await lockImport(ctx, run)
    const row = await findValidating(ctx, run)
    await ctx.db.deleteFrom('import_errors').where('import_id', '=', run.id).execute()
    await storeState(ctx, row, { ...initialState, rows_count: rows, state: 'validating' })
    return findImport(ctx, run.id)
  })

async function findValidating(ctx: Context, { id }: ImportRun): Promise<ImportRow> {
  const row = await findImport(ctx, id)
  if (row.state !== 'validating') throw takenOver('The import is no longer being validated.')
  return row
}

interface Tried {
  /** The refused rows with their errors. */
  failing: ReportedRow[]
  counted: Preview
}

/** Imports a batch in a transaction that is rolled back. */
function tryBatch(run: ImportRun, batch: Batch, index: DryRunIndex): Promise<Tried> {
  return transaction(
    { ...runContext(run), dryRun: true },
    async (ctx) => {
      // The transaction may run again after a conflict.
      undoBatch(index)
      const row = await findImport(ctx, run.id)
      const plan = planOf(row)
      const counted = createPreview()
      const failing = await applyLines(ctx, row, batch, async (ctx, { draft, reading }, known) => {
        const read = reading()
        const { keys, made } = read
        const owner = findEarlierRecord(index, keys)
        // The record of an earlier batch was rolled back, so an update of the record cannot run.
        // `reading` has already validated the row against the schema.
        if (owner !== undefined && plan.action === 'append') {
          counted.updated++
          return addKeys(index, made, owner)
        }
        const { length } = ctx.unit.after
        const done = await applyRow(ctx, plan, draft, read, known)
        await addResult(ctx, index, plan, draft, done, made)
        addRow(counted, draft.row, done, plan.type, ctx.unit.after.slice(length))
      })
      return { failing, counted }
    },
    { isLong: true, inParts: true },
  )
}

async function storeBatch(run: ImportRun, { from, lines }: Batch, failing: readonly ReportedRow[]): Promise<void> {
  const after = await transaction(runContext(run), async (ctx) => {
    await lockImport(ctx, run)
    const row = await findValidating(ctx, run)
    if (row.processed_rows_count !== from) throw takenOver('Another process has continued the import.')
    await saveErrors(ctx, run.id, failing)
    const done = from + lines.length
    const changes = { ...addToCounts(row, failing), processed_rows_count: done, progress: progressOf(done, row) }
    await storeState(ctx, row, changes)
    return { ...row, ...changes }
  })
  run.onProgress?.(after)
}

/**
 * Stores the result of the validation. The import is valid when the file itself has no error, at
 * least one row is valid, and, with the strategy `stop-on-errors`, there are at most
 * `allowed_errors` errors.
 */
const finishValidation = (
  run: ImportRun,
  failing: readonly ReportedRow[],
  findings: Partial<Pick<ImportRow, 'changes' | 'warnings' | 'preview'>> = {},
): Promise<void> =>
  transaction(runContext(run), async (ctx) => {
    const row = await findValidating(ctx, run)
    await saveErrors(ctx, run.id, failing)
    const counts = addToCounts(row, failing)
    const isTooMuch = row.validation_strategy === 'stop-on-errors' && counts.errors_count > row.allowed_errors
    const isUsable = row.processed_rows_count > row.invalid_rows_count
    const isValid = failing.length === 0 && isUsable && !isTooMuch
    const nothing = failing.length === 0 && row.processed_rows_count === 0
    const none = nothing ? [importFault('The file has no rows.', 'unreadable')] : []
    if (nothing) await saveErrors(ctx, run.id, none)
    const all = nothing ? addToCounts(row, none) : counts
    await storeState(ctx, row, { ...all, ...findings, progress: 100, state: isValid ? 'validated' : 'invalid' })
  })
