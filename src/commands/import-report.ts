// Prints the result of `accord import`: the file was refused, tried or imported.
import { writeFile } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import { operations } from '../contract/operations.gen.ts'
import { pathTo } from '../contract/paths.ts'
import type { Schema } from '../contract/types.ts'
import type { Context } from '../kernel/context.ts'
import { omittedCode } from '../resources/data-transfer/errors.ts'
import { createErrorReport, type ReportSelection } from '../resources/data-transfer/report/row-errors.ts'
import { downloadPathOf } from '../resources/data-transfer/resource.ts'
import { findImport } from '../resources/data-transfer/run/import-run.ts'
import { mappedFields } from '../resources/data-transfer/settings.ts'
import type { ProposedAttribute } from '../resources/data-transfer/suggest-settings/propose-attributes.ts'
import { asOptions, describeSettings, onOneLine } from './import-settings.ts'
import { counted, report } from './report.ts'

export interface Begun {
  ctx: Context
  /** The path of the imported file. */
  path: string
  isJson: boolean
  yes: boolean
}

type Import = Schema<'Import'>
type Analysis = Schema<'ImportAnalysis'>

/** Tells why a file was refused. Nothing was changed. */
export async function tellRefused(
  { ctx, path, isJson: json, yes }: Begun,
  found: Import,
  analysis: Analysis,
  { mapping }: Partial<Analysis['settings']>,
): Promise<void> {
  const files = await writeReports(ctx, path, found)
  report({ json }, { ...resultOf(found), ...files }, [])
  console.error('The file cannot be imported; nothing was changed.')
  // The errors that the settings of the printed table do not have.
  const { mapping: suggested } = analysis.settings
  const isInTable = ({ column }: Import['errors'][number]): boolean =>
    column !== null && Object.hasOwn(suggested, column) && !Object.hasOwn(mapping ?? {}, column)
  const isFilled = ({ column }: Import['errors'][number]): boolean =>
    column !== null && Object.values(suggested).flatMap(mappedFields).includes(column)
  const faults = yes ? [] : found.errors.filter(({ code }) => code === 'invalid_header')
  const unread = faults.filter(isInTable)
  const solved = json || unread.length === 0 ? [] : faults.filter((error) => isInTable(error) || isFilled(error))
  const errors = found.errors.filter((error) => !solved.includes(error))
  tellErrors(ctx, { ...found, errors, errors_count: found.errors_count - solved.length }, files)
  if (json && unread.length > 0) {
    console.error('With --yes the file is imported like this; --map changes a column:')
    for (const line of describeSettings(analysis, analysis.settings)) console.error(line)
  } else if (unread.length > 0)
    console.error(
      `  Unknown columns: ${unread.map(({ column }) => onOneLine(column ?? '')).join(', ')}. ` +
        'With --yes the file is imported as shown; --map changes a column.',
    )
  process.exitCode = 1
}

/** Tells what an import would do. */
export function tellTried(
  { ctx, isJson: json }: Begun,
  validated: Import,
  analysis: Analysis,
  attributes: readonly ProposedAttribute[],
): void {
  report({ json }, { ...resultOf(validated), preview: validated.preview, attributes, dry_run: true }, [
    ...(attributes.length > 0 ? [`Would create the custom attributes ${codesOf(attributes)}.`] : []),
    ...toldPreview(validated),
    ...toldChanges(validated, analysis.warnings),
    'Nothing was imported (--dry-run).',
  ])
  tellErrors(ctx, validated, { error_file: null, omitted_file: null })
}

/** Tells what an import did, and how to take it back. */
export async function tellDone(
  { ctx, path, isJson: json }: Begun,
  done: Import,
  attributes: readonly ProposedAttribute[],
): Promise<void> {
  const { created, updated, deleted, skipped } = done.summary
  const isCompleted = done.state === 'completed'
  const files = await writeReports(ctx, path, done)
  report({ json }, { ...resultOf(done), ...files, attributes }, [
    ...(isCompleted ? [`Created ${created}, updated ${updated}, deleted ${deleted}, skipped ${skipped}.`] : []),
    ...(attributes.length > 0 ? [`Created the custom attributes ${codesOf(attributes)}, which an undo keeps.`] : []),
    ...(isCompleted ? toldChanges(done) : []),
    ...(created + updated + deleted > 0 ? [`Undo: POST ${ctx.baseUrl}${pathTo(operations.undoImport, done.id)}`] : []),
  ])
  if (!isCompleted) {
    console.error(`The import ${done.state === 'failed' ? 'failed' : `is ${done.state}`}.`)
    process.exitCode = 1
  }
  tellErrors(ctx, done, files)
}

const codesOf = (attributes: readonly ProposedAttribute[]): string => attributes.map(({ code }) => code).join(', ')

function toldPreview({ preview }: Import): string[] {
  if (!preview) return []
  const { created, updated, unchanged, deleted, skipped, conflicts } = preview
  return [
    `Would create ${created}, update ${updated}, leave ${unchanged} as they are, delete ${deleted}, skip ${skipped}.`,
    ...conflicts
      .slice(0, maxTold)
      .map(({ field, count, row }) => `  ${field}: ${counted(count, 'value')} would be replaced, first by row ${row}.`),
  ]
}

/** Returns lines about changed values and the warnings that were not told before. */
const toldChanges = ({ changes, warnings }: Import, told: readonly string[] = []): string[] => [
  ...changes.slice(0, maxTold).map(toldChange),
  ...warnings.filter((warning) => !told.includes(warning)).map((warning) => `Note: ${asOptions(warning)}`),
]

interface Reports {
  error_file: string | null
  omitted_file: string | null
}

/**
 * Writes the rows with errors, and the rows with omitted cells, beside the imported file. Returns
 * the paths.
 */
async function writeReports(ctx: Context, path: string, { id, state, ...found }: Import): Promise<Reports> {
  const omits = state !== 'invalid' && found.omitted_cells_count > 0
  return {
    error_file: found.invalid_rows_count > 0 ? await writeReport(ctx, path, id, 'refused') : null,
    omitted_file: omits ? await writeReport(ctx, path, id, 'omitted') : null,
  }
}

/** The maximum number of reports of one kind beside the imported file. */
const maxReports = 100

/**
 * Writes a report beside the imported file and returns its path. Never overwrites a file. Returns
 * null when there is nothing to report, or when no file can be created.
 */
async function writeReport(
  ctx: Context,
  path: string,
  id: number,
  rows: ReportSelection['rows'],
): Promise<string | null> {
  const made = await createErrorReport(ctx, await findImport(ctx, id), { format: 'original', rows })
  if (!made) return null
  const stem = join(dirname(path), `${basename(path, extname(path))}.${rows === 'refused' ? 'errors' : 'omitted'}`)
  for (let number = 1; number <= maxReports; number++) {
    const name = `${stem}${number === 1 ? '' : `-${number}`}${made.extension}`
    try {
      await writeFile(name, made.body, { flag: 'wx' })
      return name
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return null
    }
  }
  return null
}

const resultOf = ({ id, type, state, summary, errors, changes, warnings, ...counts }: Import) => ({
  ...{ id, type, state, ...summary },
  errors_count: counts.errors_count,
  invalid_rows_count: counts.invalid_rows_count,
  omitted_cells_count: counts.omitted_cells_count,
  errors,
  changes,
  warnings,
})

const maxTold = 10

const toldChange = ({ column, from, to, count }: Import['changes'][number]): string =>
  `  ${column}: ${from ?? 'empty'} is read as ${to ?? 'empty'} (${counted(count, 'row')}).`

function tellErrors(ctx: Context, { id, errors, ...found }: Import, files: Reports): void {
  for (const { row, column, code, message } of errors.slice(0, maxTold)) {
    const at = [row > 0 ? `row ${row}` : '', column ?? ''].filter(Boolean).join(', ') || 'file'
    console.error(`  ${at}: ${asOptions(message)}${code === omittedCode ? ' The cell was left out.' : ''}`)
  }
  const count = found.errors_count + found.omitted_cells_count
  if (count > maxTold) console.error(`  … ${count - maxTold} more`)
  if (files.omitted_file) console.error(`The rows imported without cells are in ${files.omitted_file}.`)
  if (found.invalid_rows_count === 0) return
  const at = `GET ${ctx.baseUrl}${downloadPathOf('downloadImportErrorReport', id)}`
  console.error(`All invalid rows with their errors: ${files.error_file ?? at}`)
}
