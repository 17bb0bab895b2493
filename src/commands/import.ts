// `accord import`: imports a file with the rules of the API and shows the progress. The command
// needs no server. When the command is interrupted, the worker of a server finishes the import.
import { createReadStream, existsSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { Config } from '../config/config.ts'
import { bodyReader } from '../contract/input/body-reader.ts'
import type { Body, Schema } from '../contract/types.ts'
import type { Context } from '../kernel/context.ts'
import { invalid } from '../kernel/errors.ts'
import { imports } from '../resources/data-transfer/resource.ts'
import { findImport } from '../resources/data-transfer/run/import-run.ts'
import { type RunKind, runNow } from '../resources/data-transfer/run/start-run.ts'
import { analyzeFile } from '../resources/data-transfer/suggest-settings/analyze-file.ts'
import type { ProposedAttribute } from '../resources/data-transfer/suggest-settings/propose-attributes.ts'
import { CommandError } from './command-error.ts'
import { actor, asSystem } from './context.ts'
import { createAttributes, filledAttributes, plannedAttributes, tryAttributes } from './import-attributes.ts'
import { tellDone, tellRefused, tellTried } from './import-report.ts'
import { chooseSettings, givenSettings, type SettingsOptions, suggestedMapping } from './import-settings.ts'
import { showProgress } from './progress.ts'
import type { ReportOptions } from './report.ts'

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
type Given = Partial<Schema<'ImportAnalysis'>['settings']>

export async function importCommand(config: Config, path: string, options: Options): Promise<void> {
  if (!existsSync(path) || !statSync(path).isFile()) throw new CommandError(`The file ${path} does not exist.`)
  await asSystem(config, async (system) => {
    const ctx = { ...system, user: await actor(system, config, options.as) }
    const { id, type } = await create(ctx, path, options)
    const begun = { ctx, path, isJson: options.json === true, yes: options.yes === true }
    if (!options.json) console.log(`Import ${id}: ${basename(path)}, ${type}`)
    const given = readBody(ctx, config, 'updateImport', givenSettings(options)) as Given
    const { analysis, planned, trial } = await analyze(ctx, id, given, options)
    const isTerminal = process.stdin.isTTY === true && process.stderr.isTTY === true && !options.json
    const tell = (line: string): void => (options.json ? undefined : console.log(line))
    const settings = await chooseSettings(analysis, given, { ...options, isTerminal, tell, planned })
    if (settings === null) {
      await imports.remove(ctx, id)
      throw new CommandError('Nothing was imported.')
    }
    await imports.update(trial, id, settings)
    // The attributes are created after the validation, so that a refused file leaves none behind.
    const validated = await carryOut(trial, id, 'validate', options)
    if (validated.state !== 'validated') return tellRefused(begun, validated, analysis, settings)
    const attributes = filledAttributes(planned, settings.mapping ?? {})
    if (options.dryRun) {
      await imports.remove(ctx, id)
      return tellTried(begun, validated, analysis, attributes)
    }
    if (attributes.length > 0) await createAttributes(ctx, await findImport(ctx, id), attributes)
    await tellDone(begun, await carryOut(ctx, id, 'start', options), attributes)
  })
}

/** Validates or imports the file, and shows the progress. */
function carryOut(ctx: Context, id: number, what: RunKind, { json }: ReportOptions): Promise<Import> {
  // With --json the standard output has only the result.
  const stream = json ? process.stderr : process.stdout
  return showProgress(what === 'validate' ? 'Validating' : 'Importing', stream, (onProgress) =>
    runNow(ctx, id, what, { onProgress, after: ctx.time }),
  )
}

interface Analyzed {
  analysis: Schema<'ImportAnalysis'>
  /** The attributes of the columns that fill no field, with --create-attributes. */
  planned: readonly ProposedAttribute[]
  /** The context in which these attributes are known. */
  trial: Context
}

/** Analyzes the file, as if the planned attributes existed. */
async function analyze(ctx: Context, id: number, given: Given, options: Options): Promise<Analyzed> {
  const row = await findImport(ctx, id)
  const analysis = await analyzeFile(ctx, row)
  if (!options.createAttributes) return { analysis, planned: [], trial: ctx }
  try {
    const kept = new Set(Object.keys(given.mapping ?? {}))
    const planned = await plannedAttributes(ctx, row, suggestedMapping(analysis, given), kept)
    const trial = await tryAttributes(ctx, row, planned)
    const tried = await analyzeFile(trial, row)
    const own = Object.fromEntries(planned.map(({ header, code }) => [header, code]))
    const settings = { ...tried.settings, mapping: { ...tried.settings.mapping, ...own } }
    return { analysis: { ...tried, settings }, planned, trial }
  } catch (error) {
    await imports.remove(ctx, id)
    throw error
  }
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
