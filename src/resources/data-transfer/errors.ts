// What was wrong with the rows of an import: a row of import_errors for each sentence, for the report; and the counts and the first
// hundred in the import itself.

import type { Context } from '../../kernel/context.ts'
import { chunks } from '../../kernel/history/archive.ts'
import { unescapeFormula } from '../../kernel/resource/csv-cells.ts'
import { lines } from '../../kernel/resource/export.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import type { RowError } from './rows.ts'
import { type ImportRow, openTable } from './run.ts'

/** A row that was refused. */
export interface Failing {
  cells: readonly string[]
  errors: readonly RowError[]
}

const maxShown = 100

export async function keepErrors({ db }: Context, id: number, failing: readonly Failing[]): Promise<void> {
  const rows = failing.flatMap(({ cells, errors }) =>
    // The cells once for each row.
    errors.map((error, index) => ({ import_id: id, ...error, cells: JSON.stringify(index === 0 ? cells : []) })),
  )
  for (const part of chunks(rows)) await db.insertInto('import_errors').values(part).execute()
}

/** The columns of the import that count, after some more rows. */
export function counted(
  row: Pick<ImportRow, 'invalid_rows_count' | 'errors_count' | 'errors'>,
  failing: readonly Failing[],
): Pick<ImportRow, 'invalid_rows_count' | 'errors_count' | 'errors'> {
  const errors = failing.flatMap((each) => each.errors)
  const shown = JSON.parse(row.errors) as RowError[]
  return {
    invalid_rows_count: row.invalid_rows_count + failing.filter(({ cells }) => cells.length > 0).length,
    errors_count: row.errors_count + errors.length,
    errors: JSON.stringify([...shown, ...errors.slice(0, Math.max(maxShown - shown.length, 0))]),
  }
}

/** Forgets what was wrong with the import as a whole and with rows that are to be tried again, and counts the others. */
export async function forgetErrors(
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

/** Rows of the report that are read at once. */
const atOnce = 500

/** The failing rows as CSV with what was wrong; mended, it can be imported on its own. Null while no row has failed. */
export async function reportOf(ctx: Context, row: ImportRow): Promise<Buffer | null> {
  const [first] = await errorsBehind(ctx, row.id, 0, 1)
  if (!first) return null
  const header = (await (await openTable(ctx, row)).next()).value?.cells ?? []
  const texts = [lines([[...header, 'error']])]
  let last = 0
  let failed: { row: number; cells: string[]; sentences: string[] } | undefined
  const end = (): void => {
    // A row that is too short has its error in the last column all the same.
    const cells = header.map((_name: string, index: number) => unescapeFormula(failed?.cells[index] ?? ''))
    if (failed) texts.push(lines([[...cells, failed.sentences.join(' ')]]))
  }
  for (;;) {
    const errors = await errorsBehind(ctx, row.id, last, atOnce)
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

/** In the order they were found, which is that of the rows. */
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
