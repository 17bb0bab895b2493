// The loops that validation and processing share: over the batches of a file, and over the rows of
// a batch.
import { yieldIfDue } from '../../../kernel/runtime/cooperative.ts'
import type { InTransaction } from '../../../kernel/write/write.ts'
import { attemptRow } from '../apply-rows/attempt-row.ts'
import type { ImportLine } from '../apply-rows/read-row.ts'
import type { ReportedRow } from '../errors.ts'
import { type Lookups, loadLookups } from '../find-records/lookups.ts'
import { type ImportRow, planOf } from '../settings.ts'
import type { Batch, BatchReader } from './batches.ts'
import { asImportUser, type ImportRun } from './import-run.ts'

export interface BatchStep {
  /** Resolves when the rows of the batch are processed and the next batch may start. */
  worked: Promise<unknown>
  /** Settles when all work of the step has ended, with or without an error. */
  begun: Promise<unknown>
  /**
   * Stores the result of the batch. Returns false when the import must not continue. Called after
   * `worked` has resolved.
   */
  finish: () => Promise<boolean>
}

/**
 * Why the loop ended: all batches are done, the import must not continue, or the signal interrupted
 * the run.
 */
export type BatchesEnd = 'completed' | 'stopped' | 'interrupted'

/**
 * Runs all batches of a file in order and closes the file. The next batch begins when a batch is
 * processed, while the result of that batch is still being stored.
 */
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
      // Waits until this batch is processed and the result of the batch before it is stored.
      const [mayContinue] = await Promise.all([last, step.worked])
      if (!mayContinue) return 'stopped'
      last = step.finish()
      // PostgreSQL does not run transactions one after another. The next batch must wait for the
      // commit to see the changes of this batch.
      if (!run.services.store.dialect.queuesWrites) await last
      await batches.breathe()
    }
    return (await last) ? 'completed' : 'stopped'
  } finally {
    await Promise.allSettled([last, begun, batches.close()])
  }
}

/**
 * Applies each row of a batch as the import's user. Each row has a savepoint, so a refused row
 * rolls back alone. Returns the rows with errors.
 */
export async function applyLines<C extends InTransaction>(
  ctx: C,
  row: ImportRow,
  { lines }: Batch,
  apply: (ctx: C, line: ImportLine, known: Lookups) => Promise<void>,
): Promise<ReportedRow[]> {
  const acting = await asImportUser(ctx, row)
  const plan = planOf(row)
  const known = await loadLookups(
    acting,
    plan,
    lines.map(({ draft }) => draft),
  )
  const reported: ReportedRow[] = []
  for (const line of lines) {
    await yieldIfDue()
    const found = await attemptRow(acting, plan, line, known, apply)
    if (found) reported.push(found)
  }
  return reported
}

/** Returns the progress of an import in percent, at most 99. Only a completed import has 100. */
export const progressOf = (done: number, { rows_count: total }: Pick<ImportRow, 'rows_count'>): number =>
  total ? Math.min(Math.floor((done * 100) / total), 99) : 0
