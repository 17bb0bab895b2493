// The loops that validation and processing share: batches of a file in order, and the rows of a
// batch, each in its own savepoint.
import type { Context } from '../../kernel/context.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { savepoint, type Unit } from '../../kernel/write/write.ts'
import { type Lookups, loadLookups } from './lookups.ts'
import type { BatchReader } from './read-ahead.ts'
import { toRowErrors } from './row-drafts.ts'
import type { RefusedRow } from './row-errors.ts'
import { asImportUser, type Batch, type ImportLine, type ImportRow, type ImportRun, planOf } from './run.ts'

export interface BatchStep {
  /**
   * Resolves when the batch has been processed, so that the next one can queue for the database.
   */
  worked: Promise<unknown>
  /** Settles when everything the step has begun has ended. */
  begun: Promise<unknown>
  /** Stores the result; false when the import must not continue. Called after `worked`. */
  finish: () => Promise<boolean>
}

/** All batches are done, the import must not continue, or the signal interrupted the run. */
export type BatchesEnd = 'completed' | 'stopped' | 'interrupted'

/** Begins each batch while the result of the one before is stored. Closes the file. */
export async function runBatches(
  run: ImportRun,
  batches: BatchReader,
  begin: (batch: Batch) => BatchStep,
): Promise<BatchesEnd> {
  let last: Promise<boolean> = Promise.resolve(true)
  let begun: Promise<unknown> = last
  try {
    for (let batch = await batches.next(); batch; batch = await batches.next()) {
      if (run.signal?.aborted) return 'interrupted'
      const step = begin(batch)
      begun = step.begun
      // The next batch may begin only when the last one cannot fail any more.
      const [mayContinue] = await Promise.all([last, step.worked])
      if (!mayContinue) return 'stopped'
      last = step.finish()
      await batches.breathe()
    }
    return (await last) ? 'completed' : 'stopped'
  } finally {
    await Promise.allSettled([last, begun, batches.close()])
  }
}

/**
 * Applies each row of a batch as the import's user, in a savepoint of its own. Returns the refused
 * rows with their errors.
 */
export async function applyLines<C extends Context & { unit: Unit }>(
  ctx: C,
  row: ImportRow,
  { lines }: Batch,
  apply: (ctx: C, line: ImportLine, known: Lookups) => Promise<void>,
): Promise<RefusedRow[]> {
  const acting = await asImportUser(ctx, row)
  const known = await loadLookups(acting, planOf(row), lines)
  const batch = { entity: row.type, results: new Map<string, unknown>() }
  const rowContext = { ...acting, sighted: known.sighted, batch }
  const failing: RefusedRow[] = []
  for (const line of lines) {
    await yieldIfDue()
    try {
      await savepoint(rowContext, () => apply(rowContext, line, known))
    } catch (error) {
      // The rollback may have removed a record that a result names.
      batch.results.clear()
      failing.push({ cells: line.draft.cells, errors: toRowErrors(line.draft, error) })
    }
  }
  return failing
}

/** The progress of an import in percent; 100 is reserved for its completion. */
export const progressOf = (done: number, { rows_count: total }: Pick<ImportRow, 'rows_count'>): number =>
  total ? Math.min(Math.floor((done * 100) / total), 99) : 0
