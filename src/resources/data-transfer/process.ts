// Imports the rows (DOMAIN 21.1): batches of 100, each in one transaction that also moves the import on, so that a crash at any
// moment repeats nothing and loses nothing. A row that is refused is undone alone. Events as everywhere, origin `import`. A batch begins
// when the one before it is committed, and does not wait until that is on the disk.
import { type Context, now } from '../../kernel/context.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { inParts, longTransaction, savepoint, type Unit } from '../../kernel/write/write.ts'
import { type Ahead, readAhead } from './ahead.ts'
import { applyRow } from './apply.ts'
import { counted, type Failing, forgetErrors, keepErrors } from './errors.ts'
import { lookUp } from './lookups.ts'
import { errorsOf } from './rows.ts'
import {
  actingFor,
  type Batch,
  batchSize,
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
    const { faults, batches } = await readTable(ctx, row, row.processed_rows_count)
    const [fault] = faults
    // Its attributes may be others than when it was validated.
    if (fault) throw new Refused(fault.message)
    const ended = await processAll(run, readAhead(batches))
    if (ended !== 'at the end') return ended === 'by itself'
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

/** `by itself`: the import is to go no further, such as one that was cancelled. */
async function processAll(run: Run, batches: Ahead): Promise<'at the end' | 'by itself' | 'by the signal'> {
  let last: Promise<boolean> = Promise.resolve(true)
  let latest = last
  try {
    for (let batch = await batches.next(); batch; batch = await batches.next()) {
      if (run.signal?.aborted) return 'by the signal'
      const { worked, done } = beginBatch(run, batch)
      latest = done
      // What keeps a batch from being kept is known before the one behind it begins.
      const [goesOn] = await Promise.all([last, worked])
      if (!goesOn) return 'by itself'
      last = done
      await batches.breathe()
    }
    return (await last) ? 'at the end' : 'by itself'
  } finally {
    await Promise.allSettled([last, latest, batches.close()])
  }
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

interface Begun {
  /** All of it is done but the commit and what comes with that: the next batch can stand in line, behind those who came meanwhile. */
  worked: Promise<unknown>
  /** It is on the disk. False when the import is to go no further. */
  done: Promise<boolean>
}

function beginBatch(run: Run, batch: Batch): Begun {
  let tellWorked = (): void => {}
  const isWorked = new Promise<void>((resolve) => {
    tellWorked = resolve
  })
  const done = processBatch(run, batch, tellWorked)
  return { worked: Promise.race([isWorked, done]), done }
}

/** One batch, all of it or nothing. False when the import is to go no further. */
async function processBatch(run: Run, batch: Batch, tellWorked: () => void): Promise<boolean> {
  const work = async (ctx: Context & { unit: Unit }): Promise<ImportRow | null> => {
    const row = await workOff(ctx, run, batch)
    tellWorked()
    return row
  }
  const after = await longTransaction(contextOf(run), work, inParts)
  if (after) run.tell?.(after)
  return after !== null
}

/** Null when the import is to go no further. */
async function workOff(ctx: Context & { unit: Unit }, run: Run, batch: Batch): Promise<ImportRow | null> {
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
  const known = await lookUp(acting, plan, batch.lines)
  const knowing = { ...acting, sighted: known.sighted }
  for (const { draft, reading } of batch.lines) {
    await yieldIfDue()
    try {
      own[(await savepoint(knowing, () => applyRow(knowing, plan, draft, reading(), known))).did]++
    } catch (error) {
      failing.push({ cells: draft.cells, errors: errorsOf(draft, error) })
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
  const done = batch.from + batch.lines.length
  const all = Object.fromEntries(
    Object.entries(summary).map(([did, count]) => [did, count + own[did as keyof Summary]]),
  )
  const changes = { ...counts, processed_rows_count: done, progress: shareOf(done, row), summary: JSON.stringify(all) }
  await store(ctx, row, changes)
  return { ...row, ...changes }
}

/** 100 only when it is completed. */
export const shareOf = (done: number, { rows_count: total }: Pick<ImportRow, 'rows_count'>): number =>
  total ? Math.min(Math.floor((done * 100) / total), 99) : 0

/** The counts of an import that goes on after it failed: without what it failed for, which is tried again. */
async function resumed(ctx: Context, row: ImportRow, { lines }: Batch) {
  const first = lines[0]?.draft.row ?? 0
  const again = await ctx.db
    .selectFrom('import_errors')
    .select('id')
    .where('import_id', '=', row.id)
    .where((where) => where.or([where('row', '<', 2), where('row', '>=', first)]))
    .executeTakeFirst()
  return again ? forgetErrors(ctx, row.id, first - 1) : {}
}
