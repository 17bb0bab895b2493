// What can be done with imports through the API: the records, their downloads, and the runs, in the background or at once.
import type { Schema } from '../../contract/types.ts'
import { type Context, systemContext } from '../../kernel/context.ts'
import { notFound, Problem } from '../../kernel/errors.ts'
import { download } from '../../kernel/files/download.ts'
import type { Handler, Handlers } from '../../kernel/handler.ts'
import { versionTag } from '../../kernel/write/etag.ts'
import { answering, inSteps } from '../../kernel/write/idempotency.ts'
import { bytesOf } from '../files/handlers.ts'
import { rowsOf } from '../files/rows.ts'
import { requireCreations } from './abilities.ts'
import { reportOf } from './errors.ts'
import { opens } from './owner.ts'
import { imports } from './resource.ts'
import { batchSize, countRows, find } from './run.ts'
import { isBegun, runHere, runLater, type What } from './runs.ts'
import { sampleOf } from './samples.ts'
import { cancel } from './states.ts'
import { Unreadable } from './unreadable.ts'

/** Rows that a request may wait for. */
const maxAtOnce = 1000
/** By then a run in a request has come to its end. */
const safetyMs = 60_000

const downloadImportFile: Handler<'downloadImportFile'> = async (ctx, { params }) => {
  const { file } = await imports.get(ctx, params.id)
  const isOpen = opens(ctx, await find(ctx, params.id))
  const [row] = file && isOpen ? await rowsOf(ctx, [file.id]) : []
  if (!row) throw notFound('file of import', params.id)
  return bytesOf(ctx, row)
}

const downloadImportSample: Handler<'downloadImportSample'> = async (ctx, { params }) =>
  download({
    mediaType: 'text/csv; charset=utf-8',
    name: `sample-${params.type}.csv`,
    body: await sampleOf(ctx, params.type),
  })

const downloadImportErrorReport: Handler<'downloadImportErrorReport'> = async (ctx, { params }) => {
  await imports.assertVisible({ ...ctx, ifMatch: null }, params.id)
  const row = await find(ctx, params.id)
  const body = row.invalid_rows_count === 0 || !opens(ctx, row) ? null : await readable(reportOf(ctx, row))
  if (!body) throw new Problem('not_found', 'There are no failed rows of this import that you may see.')
  return download({
    mediaType: 'text/csv; charset=utf-8',
    name: `import-${row.id}-errors.csv`,
    body,
    etag: versionTag(row.version),
  })
}

/** A report begins with the header of the file, which may be gone since. */
async function readable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    if (cause instanceof Unreadable) throw new Problem('not_found', cause.message, { cause })
    throw cause
  }
}

const getImportStats: Handler<'getImportStats'> = async (ctx, { params }) => {
  const shown = await imports.get(ctx, params.id)
  const { rows_count } = await find(ctx, params.id)
  const total = Math.ceil((rows_count ?? 0) / batchSize)
  const isTried = ['pending', 'validating', 'validated', 'invalid'].includes(shown.state)
  const completed = isTried ? 0 : Math.min(Math.ceil(shown.processed_rows_count / batchSize), total)
  const batches = { total, completed, remaining: total - completed }
  return { data: { stats: { batches, progress: shown.progress, summary: shown.summary }, import: shown } }
}

interface Started {
  data: Schema<'Import'>
  message: string
}

/** In the background, or at once where the import says so. Neither the file is read nor rows are written in a transaction of the caller. */
async function started(ctx: Context, id: number, what: What, message: string): Promise<Started> {
  const after = new Date(ctx.time.getTime() + safetyMs)
  if (isBegun(ctx)) return { data: await runHere(ctx, id, what, { after }), message }
  const { process_in_queue: isQueued } = await imports.get(ctx, id)
  await requireCreations(ctx, id)
  if (isQueued) return answering(ctx, async (ctx) => ({ data: await runLater(ctx, id, what), message }))
  await requireFew(ctx, id)
  return { data: await runHere(ctx, id, what, { after }), message }
}

/** Throws 409 for more rows than a request can wait for. What is wrong with the file is for the validation to tell. */
async function requireFew(ctx: Context, id: number): Promise<void> {
  const system = systemContext(ctx.services, 'import')
  try {
    if ((await countRows(system, await find(system, id), maxAtOnce)) <= maxAtOnce) return
  } catch (error) {
    if (error instanceof Unreadable) return
    throw error
  }
  throw new Problem(
    'state_conflict',
    `More than ${maxAtOnce} rows are imported in the background only: set process_in_queue to true.`,
  )
}

const validateImport: Handler<'validateImport'> = inSteps((ctx, { params }) =>
  started(ctx, params.id, 'validate', 'Import validating.'),
)

const startImport: Handler<'startImport'> = inSteps((ctx, { params }) =>
  started(ctx, params.id, 'start', 'Import started.'),
)

const cancelImport: Handler<'cancelImport'> = async (ctx, { params }) => ({
  data: await cancel(ctx, params.id),
  message: 'Import cancelled.',
})

export const handlers = {
  validateImport,
  startImport,
  cancelImport,
  getImportStats,
  downloadImportErrorReport,
  downloadImportFile,
  downloadImportSample,
} satisfies Partial<Handlers>
