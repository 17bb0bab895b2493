// Stores the errors of import rows. The table import_errors has one row per error, for the report.
// The import itself has the error counts and the first 100 errors.

import type { Context } from '../../kernel/context.ts'
import { chunks } from '../../kernel/history/archive.ts'
import { unescapeFormula } from '../../kernel/resource/csv-cells.ts'
import { lines } from '../../kernel/resource/export.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import type { RowError } from './row-drafts.ts'
import { type ImportRow, openTable } from './run.ts'

/**
 * A row that was not imported, with its errors. `cells` is empty for an error of the whole file.
 */
export interface RefusedRow {
  cells: readonly string[]
  errors: readonly RowError[]
}

const maxShown = 100

export async function saveErrors({ db }: Context, id: number, failing: readonly RefusedRow[]): Promise<void> {
  const rows = failing.flatMap(({ cells, errors }) =>
    // Only the first error of a row stores the cells, to save space.
    errors.map((error, index) => ({ import_id: id, ...error, cells: JSON.stringify(index === 0 ? cells : []) })),
  )
  for (const part of chunks(rows)) await db.insertInto('import_errors').values(part).execute()
}

/** Returns the error columns of the import after more rows were refused. */
export function addToCounts(
  row: Pick<ImportRow, 'invalid_rows_count' | 'errors_count' | 'errors'>,
  failing: readonly RefusedRow[],
): Pick<ImportRow, 'invalid_rows_count' | 'errors_count' | 'errors'> {
  const errors = failing.flatMap((each) => each.errors)
  const shown = JSON.parse(row.errors) as RowError[]
  return {
    invalid_rows_count: row.invalid_rows_count + failing.filter(({ cells }) => cells.length > 0).length,
    errors_count: row.errors_count + errors.length,
    errors: JSON.stringify([...shown, ...errors.slice(0, Math.max(maxShown - shown.length, 0))]),
  }
}

/**
 * Deletes the errors of rows after `behind`, which run again, and errors of the import as a whole.
 * Returns the error columns that count the remaining errors.
 */
export async function clearErrors(
  { db }: Context,
  id: number,
  behind: number,
): Promise<Pick<ImportRow, 'invalid_rows_count' | 'errors_count' | 'errors'>> {
  await db
    .deleteFrom('import_errors')
    .where('import_id', '=', id)
    .where((where) => where.or([where('row', '<', 2), where('row', '>', behind)]))
    .execute()
  const { rows, errors } = await db
    .selectFrom('import_errors')
    .select(({ fn }) => [fn.count<number>('row').distinct().as('rows'), fn.countAll<number>().as('errors')])
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
  return { invalid_rows_count: Number(rows), errors_count: Number(errors), errors: JSON.stringify(first) }
}

/** The number of errors that one query reads. */
const errorsPerQuery = 500

/**
 * Returns the refused rows as CSV with an `error` column, or null when no row was refused. Users
 * can correct the report and import it.
 */
export async function createErrorReport(ctx: Context, row: ImportRow): Promise<Buffer | null> {
  const [first] = await errorsBehind(ctx, row.id, 0, 1)
  if (!first) return null
  const header = (await (await openTable(ctx, row)).next()).value?.cells ?? []
  const texts = [lines([[...header, 'error']])]
  let last = 0
  let failed: { row: number; cells: string[]; sentences: string[] } | undefined
  const end = (): void => {
    // The cells are padded to the length of the header, so that the error is always in the last
    // column.
    const cells = header.map((_name: string, index: number) => unescapeFormula(failed?.cells[index] ?? ''))
    if (failed) texts.push(lines([[...cells, failed.sentences.join(' ')]]))
  }
  for (;;) {
    const errors = await errorsBehind(ctx, row.id, last, errorsPerQuery)
    for (const { row: number, column, message, cells } of errors) {
      await yieldIfDue()
      if (failed?.row !== number) {
        end()
        failed = { row: number, cells: JSON.parse(cells) as string[], sentences: [] }
      }
      failed.sentences.push(column === null ? message : `${column}: ${message}`)
    }
    const latest = errors.at(-1)
    if (!latest) break
    last = latest.id
  }
  end()
  return Buffer.from(texts.join(''))
}

/** Returns the next errors of rows after the error id `last`, in the order of the rows. */
const errorsBehind = ({ db }: Context, id: number, last: number, most: number) =>
  db
    .selectFrom('import_errors')
    .select(['id', 'row', 'column', 'message', 'cells'])
    .where('import_id', '=', id)
    .where('row', '>', 1)
    .where('id', '>', last)
    .orderBy('id')
    .limit(most)
    .execute()
