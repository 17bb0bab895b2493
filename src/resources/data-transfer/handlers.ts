// Handlers for the import operations other than CRUD: downloads, statistics, and runs in the
// background or within the request.
import type { Schema } from '../../contract/types.ts'
import { type Context, systemContext } from '../../kernel/context.ts'
import { notFound, Problem } from '../../kernel/errors.ts'
import { download } from '../../kernel/files/download.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import type { EventEntity } from '../../kernel/query/event-visibility.ts'
import { page } from '../../kernel/query/page.ts'
import { answering, inSteps } from '../../kernel/write/idempotency.ts'
import { downloadBytes } from '../files/handlers.ts'
import { fileRows } from '../files/rows.ts'
import { requireCreations } from './abilities.ts'
import { stops } from './errors.ts'
import { canOpen } from './owner.ts'
import { countRows } from './read-file/open-file.ts'
import { createErrorReport } from './report/row-errors.ts'
import { imports } from './resource.ts'
import { batchSize } from './run/batches.ts'
import { findImport } from './run/import-run.ts'
import { hasBegun, queueRun, type RunKind, runNow } from './run/start-run.ts'
import { cancelRun } from './run/states.ts'
import { sampleOf } from './samples.ts'
import { analyzeFile } from './suggest-settings/analyze-file.ts'
import { startUndo } from './undo/undo-run.ts'

const maxRowsInRequest = 1000
/**
 * A run within a request also has a job, which starts after this delay in milliseconds. If the run
 * crashed, the job continues it.
 */
const safetyMs = 60_000

const downloadImportFile: Handler<'downloadImportFile'> = async (ctx, { params }) => {
  const { file } = await imports.get(ctx, params.id)
  const isOpen = canOpen(ctx, await findImport(ctx, params.id))
  const [row] = file && isOpen ? await fileRows(ctx, [file.id]) : []
  if (!row) throw notFound('file of import', params.id)
  return downloadBytes(ctx, row)
}

const getImportAnalysis: Handler<'getImportAnalysis'> = async (ctx, { params }) => {
  await imports.assertVisible({ ...ctx, ifMatch: null }, params.id)
  const row = await findImport(ctx, params.id)
  if (!canOpen(ctx, row)) throw notFound('file of import', params.id)
  return { data: await orNotFound(analyzeFile(ctx, row)) }
}

const downloadImportSample: Handler<'downloadImportSample'> = async (ctx, { params }) =>
  download({
    mediaType: 'text/csv; charset=utf-8',
    name: `sample-${params.type}.csv`,
    body: await sampleOf(ctx, params.type),
  })

const downloadImportErrorReport: Handler<'downloadImportErrorReport'> = async (ctx, { params, query }) => {
  await imports.assertVisible({ ...ctx, ifMatch: null }, params.id)
  const row = await findImport(ctx, params.id)
  const { format = 'csv', rows = 'refused' } = query
  const isEmpty = rows === 'refused' && row.invalid_rows_count === 0
  const report = canOpen(ctx, row) && !isEmpty ? await orNotFound(createErrorReport(ctx, row, { format, rows })) : null
  if (!report) throw new Problem('not_found', 'There are no failed rows of this import that you may see.')
  return download({
    mediaType: report.mediaType,
    name: `import-${row.id}-errors${report.extension}`,
    body: report.body,
  })
}

/** Throws 404 instead of `ImportStop`, because the file of the import may have been deleted. */
async function orNotFound<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    if (stops(cause, 'file')) throw new Problem('not_found', cause.message, { cause })
    throw cause
  }
}

const getImportStats: Handler<'getImportStats'> = async (ctx, { params }) => {
  const shown = await imports.get(ctx, params.id)
  const { rows_count } = await findImport(ctx, params.id)
  const total = Math.ceil((rows_count ?? 0) / batchSize)
  const isTried = ['pending', 'validating', 'validated', 'invalid'].includes(shown.state)
  const completed = isTried ? 0 : Math.min(Math.ceil(shown.processed_rows_count / batchSize), total)
  const batches = { total, completed, remaining: total - completed }
  return { data: { stats: { batches, progress: shown.progress, summary: shown.summary }, import: shown } }
}

interface StartedReply {
  data: Schema<'Import'>
  message: string
}

/**
 * Starts the validation or import, in the background or within the request, depending on
 * `process_in_queue`. The run reads and writes outside the caller's transaction.
 */
async function startRun(ctx: Context, id: number, what: RunKind, message: string): Promise<StartedReply> {
  const after = new Date(ctx.time.getTime() + safetyMs)
  if (hasBegun(ctx)) return { data: await runNow(ctx, id, what, { after }), message }
  const { process_in_queue: isQueued } = await imports.get(ctx, id)
  await requireCreations(ctx, id)
  if (isQueued) return answering(ctx, async (ctx) => ({ data: await queueRun(ctx, id, what), message }))
  await requireFewRows(ctx, id)
  return { data: await runNow(ctx, id, what, { after }), message }
}

/**
 * Throws 409 when the file has too many rows to run within the request. Accepts an unreadable file,
 * because validation reports that error.
 */
async function requireFewRows(ctx: Context, id: number): Promise<void> {
  const system = systemContext(ctx.services, 'import')
  try {
    if ((await countRows(system, await findImport(system, id), maxRowsInRequest)) <= maxRowsInRequest) return
  } catch (error) {
    if (stops(error, 'file')) return
    throw error
  }
  throw new Problem(
    'state_conflict',
    `More than ${maxRowsInRequest} rows are imported in the background only: set process_in_queue to true.`,
  )
}

const validateImport: Handler<'validateImport'> = inSteps((ctx, { params }) =>
  startRun(ctx, params.id, 'validate', 'Import validating.'),
)

const startImport: Handler<'startImport'> = inSteps((ctx, { params }) =>
  startRun(ctx, params.id, 'start', 'Import started.'),
)

const cancelImport: Handler<'cancelImport'> = async (ctx, { params }) => ({
  data: await cancelRun(ctx, params.id),
  message: 'Import cancelled.',
})

const undoImport: Handler<'undoImport'> = async (ctx, { params }) => ({
  data: await startUndo(ctx, params.id),
  message: ctx.dryRun ? 'The undo was tried; nothing was changed.' : 'Import being undone.',
})

const listImportRemainders: Handler<'listImportRemainders'> = async (ctx, { params, query }) => {
  await imports.assertVisible({ ...ctx, ifMatch: null }, params.id)
  if (!canOpen(ctx, await findImport(ctx, params.id))) throw notFound('import', params.id)
  const rows = ctx.db.selectFrom('import_remainders').selectAll().where('import_id', '=', params.id)
  const {
    rows: shown,
    links,
    meta,
  } = await page(ctx, rows, query, { id: 'import_remainders.id' }, 'import_remainders.id')
  const data = shown.map(({ id, entity_type, record_id: entity_id, field, reason, message }) => ({
    id,
    entity_type: entity_type as EventEntity,
    entity_id,
    field,
    reason: reason as Schema<'ImportRemainderReason'>,
    message,
  }))
  return { data, links, meta }
}

export const handlers = {
  undoImport,
  listImportRemainders,
  validateImport,
  startImport,
  cancelImport,
  getImportStats,
  getImportAnalysis,
  downloadImportErrorReport,
  downloadImportFile,
  downloadImportSample,
} satisfies Partial<Handlers>
