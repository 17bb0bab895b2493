// Functions that validation and processing share: the import row, the batches of the file, the user
// of the import, and the lock that lets only one process work on an import.
import type { Selectable } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import { operations } from '../../contract/operations.gen.ts'
import { acquireLock, releaseLock } from '../../jobs/locks.ts'
import { signedInAgain } from '../../kernel/auth/tokens.ts'
import { type Context, hasPermission, type Services, systemContext } from '../../kernel/context.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { fileRows } from '../files/rows.ts'
import { type ImportPlan, type RowReading, readRow } from './apply-row.ts'
import type { CellFormats } from './cell-formats.ts'
import { type FileColumn, type Mapping, readHeader } from './columns.ts'
import { countryReader } from './countries.ts'
import { filledDown } from './fill-down.ts'
import { cardType, createFindings, type Findings, isWorkbook, readRows, type SheetRow } from './read-rows.ts'
import { type CellReading, parseRow, type RowDraft } from './row-drafts.ts'
import { UnreadableFile } from './unreadable-file.ts'

export type ImportRow = Selectable<Tables['imports']>

export interface ImportRun {
  services: Services
  id: number
  /** The owner name of the lock (process-identity.ts `newOwnerId`). */
  own: string
  /** Interrupts the run between two batches. The next run continues after the last batch. */
  signal?: AbortSignal
  /** Called with the progress after each batch. */
  tell?: (row: Pick<ImportRow, 'processed_rows_count' | 'rows_count'>) => void
}

/** The error when another process works on the import or has changed it. */
export class TakenOver extends Error {}

/** The error when the import cannot continue. Users see its message. */
export class ImportRefused extends Error {}

export const batchSize = 100
const lockMs = 60_000

/** Returns a context with the current time and without a user. */
export const runContext = ({ services }: ImportRun): Context => systemContext(services, 'import')

export const planOf = (row: ImportRow): ImportPlan => ({
  type: row.type as ImportPlan['type'],
  action: row.action as ImportPlan['action'],
  mapping: mappingOf(row),
  constants: row.constants === null ? null : (JSON.parse(row.constants) as ImportPlan['constants']),
  unknown: row.unknown_references as ImportPlan['unknown'],
  fillsNames: row.missing_names === 'fill',
  omitsCells: row.omit_invalid_cells === 1,
  replacesLists: row.replace_lists === 1,
})

export const mappingOf = ({ mapping }: Pick<ImportRow, 'mapping'>): Mapping | null =>
  mapping === null ? null : (JSON.parse(mapping) as Mapping)

const formatsOf = async (
  { services: { config } }: Context,
  row: ImportRow,
  contentType: string,
): Promise<CellFormats> => ({
  country: await countryReader(config.locale),
  locale: config.locale,
  currency: config.currency,
  date: row.date_format as CellFormats['date'],
  decimal: row.decimal_separator as CellFormats['decimal'],
  hasPlainNumbers: isWorkbook(contentType),
})

/** Returns the import row. Throws `TakenOver` when the import was deleted. */
export async function findImport({ db }: Context, id: number): Promise<ImportRow> {
  const row = await db.selectFrom('imports').selectAll().where('id', '=', id).executeTakeFirst()
  if (!row) throw new TakenOver('The import is gone.')
  return row
}

const lockOf = (id: number): string => `import:${id}`

/**
 * Acquires or extends the lock of the import, in the transaction of a batch. Throws `TakenOver`
 * when another process has the lock.
 */
export async function lockImport(ctx: Context, { id, own }: Pick<ImportRun, 'id' | 'own'>): Promise<void> {
  if (!(await acquireLock(ctx, lockOf(id), own, lockMs))) throw new TakenOver('Another process works on the import.')
}

export const unlockImport = (run: ImportRun): Promise<void> => releaseLock(runContext(run), lockOf(run.id), run.own)

/**
 * Returns a context with the import's user and the user's current permissions. Throws
 * `ImportRefused` when the user may no longer import.
 */
export async function asImportUser<C extends Context>(ctx: C, { user_id: id }: ImportRow): Promise<C> {
  const user = id === null ? null : await signedInAgain(ctx, id)
  if (!user)
    throw new ImportRefused('The import runs with the permissions of its user, who was deleted or is inactive.')
  const acting = { ...ctx, user }
  const { permission } = operations.startImport
  if (!hasPermission(acting, permission))
    throw new ImportRefused(`The import's user ${user.name} no longer has the permission ${permission}.`)
  return acting
}

/** Returns the file of the import with its content. Throws `UnreadableFile` when it is gone. */
export async function openFile(ctx: Context, row: ImportRow) {
  const [file] = row.file_id === null ? [] : await fileRows(ctx, [row.file_id])
  const source = file && (await ctx.services.files.find(file.sha256))
  if (!file || !source) throw new UnreadableFile('The file of the import is gone.')
  // The type of a card file in another encoding than UTF-8 cannot be detected.
  return { file, source, contentType: /\.vcf$/i.test(file.name) ? cardType : file.content_type }
}

/** Returns the rows of the import's file, including the header. Throws `UnreadableFile`. */
export async function openTable(
  ctx: Context,
  row: ImportRow,
  findings: Findings = createFindings(),
): Promise<AsyncGenerator<SheetRow>> {
  const { source, contentType } = await openFile(ctx, row)
  const { field_separator: separator, encoding, header_row: headerRow, sheet } = row
  const rows = readRows(source, { contentType, separator, encoding, headerRow, sheet, findings })
  return filledDown(rows, mappingOf(row))
}

export interface ImportTable {
  columns: readonly FileColumn[]
  headers: readonly string[]
  leftOut: readonly number[]
  findings: Findings
  faults: readonly { column: string | null; message: string }[]
  batches: AsyncGenerator<Batch>
}

/** A parsed row, before any database query. */
export interface ImportLine {
  draft: RowDraft
  /** Returns the validated row. Throws `RowRefused` for an invalid row. */
  reading: () => RowReading
  without: (headers: ReadonlySet<string>) => ImportLine
}

export interface Batch {
  /** The number of file rows before the batch, without the header. */
  from: number
  lines: readonly ImportLine[]
}

/**
 * Reads the header of the file and returns the columns, the header errors, and the rows in batches.
 * The batches leave out the first `skip` rows.
 */
export async function readTable(ctx: Context, row: ImportRow, skip = 0): Promise<ImportTable> {
  const { contentType } = await openFile(ctx, row)
  const findings = createFindings()
  const rows = await openTable(ctx, row, findings)
  const { value: header } = await rows.next()
  if (!header) throw new UnreadableFile('The file is empty.')
  const plan = planOf(row)
  const head = await readHeader(ctx, plan, (header as SheetRow).cells)
  const reading = {
    columns: head.columns,
    width: head.headers.length,
    formats: await formatsOf(ctx, row, contentType),
    fillsNames: plan.fillsNames,
  }
  return { ...head, findings, batches: inBatches(rows, skip, (row) => readLine(ctx, plan, row, reading)) }
}

function readLine(
  ctx: Context,
  plan: ImportPlan,
  row: SheetRow,
  cells: CellReading,
  omitted?: ReadonlySet<string>,
  named?: RowDraft['named'],
): ImportLine {
  const draft = parseRow(row, cells, omitted, named)
  const without = (headers: ReadonlySet<string>): ImportLine => readLine(ctx, plan, row, cells, headers, draft.named)
  try {
    const reading = readRow(ctx, plan, draft)
    return { draft, without, reading: () => reading }
  } catch (error) {
    return {
      draft,
      without,
      reading: () => {
        throw error
      },
    }
  }
}

async function* inBatches(
  rows: AsyncGenerator<SheetRow>,
  skip: number,
  read: (row: SheetRow) => ImportLine,
): AsyncGenerator<Batch> {
  let count = 0
  let lines: ImportLine[] = []
  for await (const row of rows) {
    if (count++ < skip) continue
    await yieldIfDue()
    lines.push(read(row))
    if (lines.length < batchSize) continue
    yield { from: count - lines.length, lines }
    lines = []
  }
  if (lines.length > 0) yield { from: count - lines.length, lines }
}

/** Returns the number of rows without the header. Stops counting after `most` rows. */
export async function countRows(ctx: Context, row: ImportRow, most = Number.POSITIVE_INFINITY): Promise<number> {
  let count = -1
  for await (const _row of await openTable(ctx, row)) if (++count > most) break
  return Math.max(count, 0)
}
