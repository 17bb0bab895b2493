// Validates an import (DOMAIN 21.1): every row goes through the service as if it were imported, in batches that are rolled back.
// Nothing is kept but what was wrong, and nobody is told. What rows have in common is remembered (dry-run-index.ts).
import type { Context } from '../../kernel/context.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { inParts, longTransaction, savepoint, transaction } from '../../kernel/write/write.ts'
import { type Ahead, readAhead } from './ahead.ts'
import { applyRow, type Done } from './apply.ts'
import { emptyMemory, type Memory, madeBefore, nextBatch, remember, rememberSame } from './dry-run-index.ts'
import { counted, type Failing, keepErrors } from './errors.ts'
import { lookUp } from './lookups.ts'
import { shareOf } from './process.ts'
import { fresh } from './resource.ts'
import { errorsOf } from './rows.ts'
import {
  actingFor,
  type Batch,
  contextOf,
  countRows,
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
import { faultOf, store } from './states.ts'
import { Unreadable } from './unreadable.ts'

/** Validates from the beginning; false when it was interrupted. Throws `Elsewhere` when another process works on the import. */
export async function rehearse(run: Run): Promise<boolean> {
  const ctx = contextOf(run)
  if ((await find(ctx, run.id)).state !== 'validating') return true
  try {
    await begin(run, null)
    const row = await begin(run, await countRows(ctx, await find(ctx, run.id)))
    await actingFor(ctx, row)
    const { faults, batches } = await readTable(ctx, row)
    if (faults.length > 0) {
      await end(run, [{ cells: [], errors: faults.map((fault) => ({ row: 1, code: 'invalid_header', ...fault })) }])
      return true
    }
    if (!(await tryAll(run, readAhead(batches)))) return false
    await end(run, [])
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Unreadable)) throw error
    await end(run, [faultOf(error.message, 'unreadable', null, error instanceof Unreadable ? error.row : 0)])
  } finally {
    await vacate(run)
  }
  return true
}

/** False when it was interrupted. What was wrong with a batch comes to the disk while the next one is tried. */
async function tryAll(run: Run, batches: Ahead): Promise<boolean> {
  const memory = emptyMemory()
  let last: Promise<unknown> = Promise.resolve()
  try {
    for (let batch = await batches.next(); batch; batch = await batches.next()) {
      if (run.signal?.aborted) return false
      const [failing] = await Promise.all([tryBatch(run, batch, memory), last])
      nextBatch(memory)
      last = keep(run, batch, failing)
      await batches.breathe()
    }
    await last
    return true
  } finally {
    await Promise.allSettled([last, batches.close()])
  }
}

/** Nothing is known yet, but how many rows there are. */
const begin = (run: Run, rows: number | null): Promise<ImportRow> =>
  transaction(contextOf(run), async (ctx) => {
    await occupy(ctx, run)
    const row = await validating(ctx, run)
    await ctx.db.deleteFrom('import_errors').where('import_id', '=', run.id).execute()
    await store(ctx, row, { ...fresh, rows_count: rows, state: 'validating' })
    return find(ctx, run.id)
  })

async function validating(ctx: Context, { id }: Run): Promise<ImportRow> {
  const row = await find(ctx, id)
  if (row.state !== 'validating') throw new Elsewhere('The import is not being validated any more.')
  return row
}

/** What is wrong with the rows of a batch; the transaction is rolled back. */
function tryBatch(run: Run, batch: Batch, memory: Memory): Promise<Failing[]> {
  return longTransaction(
    { ...contextOf(run), dryRun: true },
    async (ctx) => {
      const row = await find(ctx, run.id)
      const plan = planOf(row)
      const acting = await actingFor(ctx, row)
      const failing: Failing[] = []
      const known = await lookUp(acting, plan, batch.lines)
      const knowing = { ...acting, sighted: known.sighted }
      for (const { draft, reading } of batch.lines) {
        await yieldIfDue()
        try {
          await savepoint(knowing, async () => {
            const read = reading()
            const { keys, made } = read
            const owner = madeBefore(memory, keys)
            // Without its record, which is absent between batches, only the shape of the change can be validated.
            if (owner !== undefined && plan.action === 'append') return rememberSame(memory, made, owner)
            const done: Done = await applyRow(knowing, plan, draft, read, known)
            return remember(knowing, memory, plan, draft, done, made)
          })
        } catch (error) {
          failing.push({ cells: draft.cells, errors: errorsOf(draft, error) })
        }
      }
      return failing
    },
    inParts,
  )
}

const keep = (run: Run, { from, lines }: Batch, failing: readonly Failing[]): Promise<void> =>
  transaction(contextOf(run), async (ctx) => {
    await occupy(ctx, run)
    const row = await validating(ctx, run)
    if (row.processed_rows_count !== from) throw new Elsewhere('Another process has gone on with the import.')
    await keepErrors(ctx, run.id, failing)
    const done = from + lines.length
    const changes = { ...counted(row, failing), processed_rows_count: done, progress: shareOf(done, row) }
    await store(ctx, row, changes)
    run.tell?.({ ...row, ...changes })
  })

/** Valid when a row can be imported, nothing is wrong with the whole, and no more errors were found than are allowed. */
const end = (run: Run, failing: readonly Failing[]): Promise<void> =>
  transaction(contextOf(run), async (ctx) => {
    const row = await validating(ctx, run)
    await keepErrors(ctx, run.id, failing)
    const counts = counted(row, failing)
    const isTooMuch = row.validation_strategy === 'stop-on-errors' && counts.errors_count > row.allowed_errors
    const isUsable = row.processed_rows_count > row.invalid_rows_count
    const isValid = failing.length === 0 && isUsable && !isTooMuch
    const nothing = failing.length === 0 && row.processed_rows_count === 0
    const none = nothing ? [faultOf('The file has no rows.', 'unreadable')] : []
    if (nothing) await keepErrors(ctx, run.id, none)
    const all = nothing ? counted(row, none) : counts
    await store(ctx, row, { ...all, progress: 100, state: isValid ? 'validated' : 'invalid' })
  })
