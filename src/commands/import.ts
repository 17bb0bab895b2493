// `accord import`: imports a file with the rules of the API and shows the progress. The command
// needs no server. When the command is interrupted, the worker of a server finishes the import.
import { createReadStream, existsSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, dirname, extname, join } from 'node:path'
import type { Config } from '../config/config.ts'
import { bodyReader } from '../contract/input/body-reader.ts'
import type { Body, Schema } from '../contract/types.ts'
import type { Context } from '../kernel/context.ts'
import { invalid } from '../kernel/errors.ts'
import { omittedCode } from '../resources/data-transfer/errors.ts'
import { createErrorReport, type ReportSelection } from '../resources/data-transfer/report/row-errors.ts'
import { downloadPathOf, imports } from '../resources/data-transfer/resource.ts'
import { findImport } from '../resources/data-transfer/run/import-run.ts'
import { runNow } from '../resources/data-transfer/run/start-run.ts'
import { analyzeFile } from '../resources/data-transfer/suggest-settings/analyze-file.ts'
import { CommandError } from './command-error.ts'
import { actor, asSystem } from './context.ts'
import { attributeLine, createAttributes, plannedAttributes } from './import-attributes.ts'
import {
  chooseSettings,
  describeSettings,
  givenSettings,
  type SettingsOptions,
  suggestedMapping,
} from './import-settings.ts'
import { showProgress } from './progress.ts'
import { counted, type ReportOptions, report } from './report.ts'

interface Options extends ReportOptions, SettingsOptions {
  type: string
  action: string
  skipErrors?: boolean
  allowedErrors: string
  replaceLists?: boolean
  omitInvalidCells?: boolean
  createAttributes?: boolean
  dryRun?: boolean
  as?: string
}

type Import = Schema<'Import'>

export async function importCommand(config: Config, path: string, options: Options): Promise<void> {
  if (!existsSync(path) || !statSync(path).isFile()) throw new CommandError(`The file ${path} does not exist.`)
  await asSystem(config, async (system) => {
    const ctx = { ...system, user: await actor(system, config, options.as) }
    const created = await create(ctx, path, options)
    // With --json the standard output has only the result.
    const progress = options.json ? process.stderr : process.stdout
    if (!options.json) console.log(`Import ${created.id}: ${basename(path)}, ${created.type}`)
    const given = readBody(ctx, config, 'updateImport', givenSettings(options)) as Body<'updateImport'>
    const { analysis, planned } = await analyze(ctx, created.id, given as Given, options)
    const isTerminal = process.stdin.isTTY === true && process.stderr.isTTY === true && !options.json
    const tell = (line: string): void => (options.json ? undefined : console.log(line))
    const settings = await chooseSettings(analysis, given as Given, { yes: options.yes, isTerminal, tell })
    if (settings === null) {
      await imports.remove(ctx, created.id)
      throw new CommandError('Nothing was imported.')
    }
    await imports.update(ctx, created.id, settings)
    const validated = await showProgress('Validating', progress, (onProgress) =>
      runNow(ctx, created.id, 'validate', { onProgress, after: ctx.time }),
    )
    if (validated.state !== 'validated') {
      const changed = planned.length > 0 && !options.dryRun ? 'only the attributes were created' : 'nothing was changed'
      await failed(ctx, path, options, validated, `The file cannot be imported; ${changed}.`)
      if (validated.errors.some(({ code }) => code === 'invalid_header')) suggest(analysis)
      return
    }
    if (options.dryRun) {
      await imports.remove(ctx, created.id)
      report(options, { ...resultOf(validated), attributes: planned, dry_run: true }, [
        'Nothing was imported (--dry-run).',
      ])
      tellErrors(ctx, validated, { error_file: null, omitted_file: null })
      return
    }
    const done = await showProgress('Importing', progress, (onProgress) =>
      runNow(ctx, created.id, 'start', { onProgress, after: ctx.time }),
    )
    if (done.state !== 'completed')
      return failed(ctx, path, options, done, `The import ${done.state === 'failed' ? 'failed' : `is ${done.state}`}.`)
    const { created: made, updated, deleted, skipped } = done.summary
    const files = await writeReports(ctx, path, done)
    report(options, { ...resultOf(done), ...files }, [
      `Created ${made}, updated ${updated}, deleted ${deleted}, skipped ${skipped}.`,
      ...done.changes.slice(0, maxTold).map(toldChange),
      ...done.warnings.map((warning) => `Note: ${warning}`),
    ])
    tellErrors(ctx, done, files)
  })
}

type Given = Partial<Schema<'ImportAnalysis'>['settings']>

/**
 * Analyzes the file. With --create-attributes, it creates the attributes of the columns that fill
 * no field and analyzes the file again; a dry run only tells them.
 */
async function analyze(ctx: Context, id: number, given: Given, options: Options) {
  const row = await findImport(ctx, id)
  const analysis = await analyzeFile(ctx, row)
  if (!options.createAttributes) return { analysis, planned: [] }
  const kept = new Set(Object.keys(given.mapping ?? {}))
  const planned = await plannedAttributes(ctx, row, suggestedMapping(analysis, given), kept)
  if (!options.json) {
    console.log(planned.length === 0 ? 'No column is left for a custom attribute.' : attributesTitle(options.dryRun))
    for (const each of planned) console.log(attributeLine(each))
  }
  if (options.dryRun || planned.length === 0) return { analysis, planned }
  await createAttributes(ctx, row, planned)
  return { analysis: await analyzeFile(ctx, row), planned }
}

const attributesTitle = (isDry = false): string => (isDry ? 'Would be created:' : 'Created:')

/** Prints the suggested settings for a file with unknown headers. */
function suggest(analysis: Schema<'ImportAnalysis'>): void {
  console.error('With --yes the file is imported like this; --map changes a column:')
  for (const line of describeSettings(analysis, analysis.settings)) console.error(line)
}

async function create(ctx: Context, path: string, options: Options): Promise<Import> {
  const { files, config } = ctx.services
  const about = {
    type: options.type,
    action: options.action,
    validation_strategy: options.skipErrors ? 'skip-errors' : 'stop-on-errors',
    allowed_errors: options.allowedErrors,
    replace_lists: options.replaceLists === true,
    omit_invalid_cells: options.omitInvalidCells === true,
    ...givenSettings({ ...options, map: undefined }),
  }
  const sent = {
    ...about,
    allowed_errors: /^\d+$/.test(about.allowed_errors) ? Number(about.allowed_errors) : about.allowed_errors,
  }
  const value = readBody(ctx, config, 'createImport', sent)
  const upload = await files.receive(createReadStream(path), basename(path))
  try {
    const uploads = { files: new Map([['file', upload]]), kept: new Set<string>() }
    return await imports.create({ ...ctx, uploads }, { ...(value as Body<'updateImport'>), file: 'file' })
  } finally {
    await files.discard(upload)
  }
}

/** Parses and validates a request body like the API. Throws 422 with all errors. */
function readBody(
  { services: { contract } }: Context,
  { timezone: zone }: Pick<Config, 'timezone'>,
  operation: 'createImport' | 'updateImport',
  sent: object,
): object {
  const { value, errors } = bodyReader(contract, operation)(sent, { zone, strict: true })
  if (Object.keys(errors).length > 0) throw invalid(errors)
  return value
}

async function failed(
  ctx: Context,
  path: string,
  options: ReportOptions,
  found: Import,
  sentence: string,
): Promise<void> {
  const files = await writeReports(ctx, path, found)
  report(options, { ...resultOf(found), ...files }, [])
  console.error(sentence)
  tellErrors(ctx, found, files)
  process.exitCode = 1
}

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
    console.error(`  ${at}: ${message}${code === omittedCode ? ' The cell was left out.' : ''}`)
  }
  const count = found.errors_count + found.omitted_cells_count
  if (count > maxTold) console.error(`  … ${count - maxTold} more`)
  if (files.omitted_file) console.error(`The rows imported without cells are in ${files.omitted_file}.`)
  if (found.invalid_rows_count === 0) return
  const at = `GET ${ctx.baseUrl}${downloadPathOf('downloadImportErrorReport', id)}`
  console.error(`All invalid rows with their errors: ${files.error_file ?? at}`)
}
