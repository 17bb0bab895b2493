// Stores the errors of import rows. The table import_errors has one row per error, for the report.
// The import itself has the error counts and the first 100 errors.
import { extname } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { Context } from '../../../kernel/context.ts'
import { workbookType, writeWorkbook } from '../../../kernel/files/workbook.ts'
import { chunks } from '../../../kernel/history/archive.ts'
import { unescapeFormula } from '../../../kernel/resource/csv-cells.ts'
import { lines } from '../../../kernel/resource/export.ts'
import { yieldIfDue } from '../../../kernel/runtime/cooperative.ts'
import type { ReportedRow, RowError } from '../errors.ts'
import { omittedCode } from '../errors.ts'
import { encodeText } from '../read-file/encodings.ts'
import { openFile, openTable } from '../read-file/open-file.ts'
import { isWorkbook } from '../read-file/read-rows.ts'
import type { ImportRow } from '../settings.ts'

type ErrorColumns = Pick<ImportRow, 'invalid_rows_count' | 'omitted_cells_count' | 'errors_count' | 'errors'>

const maxShown = 100

export async function saveErrors({ db }: Context, id: number, reported: readonly ReportedRow[]): Promise<void> {
  const rows = reported.flatMap(({ cells, errors }) =>
    // Only the first error of a row stores the cells, to save space.
    errors.map((error, index) => ({ import_id: id, ...error, cells: JSON.stringify(index === 0 ? cells : []) })),
  )
  for (const part of chunks(rows)) await db.insertInto('import_errors').values(part).execute()
}

/** Returns the error columns of the import, increased by the reported rows. */
export function addToCounts(row: ErrorColumns, reported: readonly ReportedRow[]): ErrorColumns {
  const errors = reported.flatMap((each) => each.errors)
  const omitted = errors.filter(({ code }) => code === omittedCode).length
  const shown = JSON.parse(row.errors) as RowError[]
  return {
    invalid_rows_count:
      row.invalid_rows_count + reported.filter(({ cells, isImported }) => !isImported && cells.length > 0).length,
    omitted_cells_count: row.omitted_cells_count + omitted,
    errors_count: row.errors_count + errors.length - omitted,
    errors: JSON.stringify([...shown, ...errors.slice(0, Math.max(maxShown - shown.length, 0))]),
  }
}

/**
 * Deletes the errors of the whole import, and the errors of rows after the row number `behind`,
 * because these rows run again. Returns the error columns for the remaining errors.
 */
export async function clearErrors({ db }: Context, id: number, behind: number): Promise<ErrorColumns> {
  await db
    .deleteFrom('import_errors')
    .where('import_id', '=', id)
    .where((where) => where.or([where('row', '<', 2), where('row', '>', behind)]))
    .execute()
  const { rows, errors, omitted } = await db
    .selectFrom('import_errors')
    .select(({ fn }) => [
      fn.count<number>('row').distinct().filterWhere('code', '!=', omittedCode).as('rows'),
      fn.countAll<number>().filterWhere('code', '!=', omittedCode).as('errors'),
      fn.countAll<number>().filterWhere('code', '=', omittedCode).as('omitted'),
    ])
    .where('import_id', '=', id)
    .executeTakeFirstOrThrow()
  const first = await db
    .selectFrom('import_errors')
    .select(['row', 'column', 'code', 'message'])
    .where('import_id', '=', id)
    .orderBy('row')
    .orderBy('id')
    .limit(maxShown)
    .execute()
  return {
    invalid_rows_count: Number(rows),
    omitted_cells_count: Number(omitted),
    errors_count: Number(errors),
    errors: JSON.stringify(first),
  }
}

const errorsPerQuery = 500

export interface ReportSelection {
  format: 'csv' | 'original'
  rows: 'refused' | 'omitted'
}

export interface ErrorReport {
  mediaType: string
  extension: string
  body: Buffer
}

/**
 * Returns the reported rows with an `error` column, or null when no row was reported. Users can
 * correct the report and import it.
 */
export async function createErrorReport(
  ctx: Context,
  row: ImportRow,
  { format, rows }: ReportSelection,
): Promise<ErrorReport | null> {
  const [first] = await errorsBehind(ctx, row.id, { last: 0, rows }, 1)
  if (!first) return null
  const { file, contentType } = await openFile(ctx, row)
  const table = reportedRows(ctx, row, rows)
  if (format === 'original' && isWorkbook(contentType))
    return { mediaType: workbookType, extension: '.xlsx', body: await buffer(writeWorkbook(table)) }
  const isOwn = format === 'original'
  const separator = isOwn ? row.field_separator : ','
  const encoding = isOwn ? row.encoding : 'utf-8'
  const parts: Buffer[] = []
  for await (const group of table)
    parts.push(
      await encodeText(
        lines(
          group.map((cells) => cells.map(unescapeFormula)),
          separator,
        ),
        encoding,
      ),
    )
  // Spreadsheet programs recognize UTF-16 by the byte order mark.
  const mark = isOwn && encoding.startsWith('utf-16') ? await encodeText('\ufeff', encoding) : Buffer.alloc(0)
  return {
    mediaType: `text/csv; charset=${encoding}`,
    extension: isOwn ? extname(file.name) || '.csv' : '.csv',
    body: Buffer.concat([mark, ...parts]),
  }
}

async function* reportedRows(
  ctx: Context,
  row: ImportRow,
  rows: ReportSelection['rows'],
): AsyncGenerator<(readonly string[])[]> {
  const header: readonly string[] = (await (await openTable(ctx, row)).next()).value?.cells ?? []
  let texts: (readonly string[])[] = [[...header, 'error']]
  let last = 0
  let failed: { row: number; cells: string[]; sentences: string[] } | undefined
  const end = (): void => {
    // The cells are padded to the length of the header, so that the error is always in the last
    // column.
    const cells = header.map((_name, index) => failed?.cells[index] ?? '')
    if (failed) texts.push([...cells, failed.sentences.join(' ')])
  }
  for (;;) {
    const errors = await errorsBehind(ctx, row.id, { last, rows }, errorsPerQuery)
    for (const { row: number, column, message, cells } of errors) {
      await yieldIfDue()
      if (failed?.row !== number) {
        end()
        failed = { row: number, cells: JSON.parse(cells) as string[], sentences: [] }
      }
      failed.sentences.push(column === null ? message : `${column}: ${message}`)
    }
    yield texts
    texts = []
    const latest = errors.at(-1)
    if (!latest) break
    last = latest.id
  }
  end()
  yield texts
}

/**
 * Returns up to `most` row errors with an id above `last`. The order of ids is the order of rows.
 */
const errorsBehind = (
  { db }: Context,
  id: number,
  { last, rows }: { last: number; rows: ReportSelection['rows'] },
  most: number,
) =>
  db
    .selectFrom('import_errors')
    .select(['id', 'row', 'column', 'message', 'cells'])
    .where('import_id', '=', id)
    .where('row', '>', 1)
    .where('code', rows === 'omitted' ? '=' : '!=', omittedCode)
    .where('id', '>', last)
    .orderBy('id')
    .limit(most)
    .execute()
