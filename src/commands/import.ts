// `accord import`: imports a file with the rules of the API and shows the progress. The command
// needs no server. When the command is interrupted, the worker of a server finishes the import.
import { createReadStream, existsSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { caseFold } from '../../db/schema/case-folding.ts'
import type { Config } from '../config/config.ts'
import { bodyReader } from '../contract/input/body-reader.ts'
import type { Body, Schema } from '../contract/types.ts'
import { signedInAs } from '../kernel/auth/tokens.ts'
import type { Context } from '../kernel/context.ts'
import { invalid } from '../kernel/errors.ts'
import { downloadPathOf } from '../resources/data-transfer/paths.ts'
import { imports } from '../resources/data-transfer/resource.ts'
import { runNow } from '../resources/data-transfer/start-run.ts'
import { CommandError } from './command-error.ts'
import { asSystem } from './context.ts'
import { showProgress } from './progress.ts'
import { type ReportOptions, report } from './report.ts'

interface Options extends ReportOptions {
  type: string
  action: string
  skipErrors?: boolean
  allowedErrors: string
  replaceLists?: boolean
  separator: string
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
    const validated = await showProgress('Validating', progress, (tell) =>
      runNow(ctx, created.id, 'validate', { tell, after: ctx.time }),
    )
    if (validated.state !== 'validated')
      return failed(ctx, options, validated, 'The file cannot be imported; nothing was changed.')
    const done = await showProgress('Importing', progress, (tell) =>
      runNow(ctx, created.id, 'start', { tell, after: ctx.time }),
    )
    if (done.state !== 'completed')
      return failed(ctx, options, done, `The import ${done.state === 'failed' ? 'failed' : `is ${done.state}`}.`)
    const { created: made, updated, deleted, skipped } = done.summary
    report(options, resultOf(done), [`Created ${made}, updated ${updated}, deleted ${deleted}, skipped ${skipped}.`])
    tellErrors(ctx, done)
  })
}

/**
 * Returns the user whose permissions apply: the user given by --as, or else the first administrator
 * (ACCORD_ADMIN_EMAIL).
 */
async function actor(ctx: Context, config: Config, email = config.adminEmail) {
  const row = await ctx.db
    .selectFrom('users')
    .select('id')
    .where('email_key', '=', caseFold(email.trim()))
    .executeTakeFirst()
  const user = row ? await signedInAs(ctx.db, row.id) : null
  if (!user) throw new CommandError(`No active user has the e-mail address ${email}. Name one with --as.`)
  return user
}

async function create(ctx: Context, path: string, options: Options): Promise<Import> {
  const { contract, files, config } = ctx.services
  const about = {
    type: options.type,
    action: options.action,
    validation_strategy: options.skipErrors ? 'skip-errors' : 'stop-on-errors',
    allowed_errors: options.allowedErrors,
    replace_lists: options.replaceLists === true,
    field_separator: options.separator === '\\t' ? '\t' : options.separator,
  }
  const sent = {
    ...about,
    allowed_errors: /^\d+$/.test(about.allowed_errors) ? Number(about.allowed_errors) : about.allowed_errors,
  }
  const { value, errors } = bodyReader(contract, 'createImport')(sent, { zone: config.timezone, strict: true })
  if (Object.keys(errors).length > 0) throw invalid(errors)
  const upload = await files.receive(createReadStream(path), basename(path))
  try {
    const uploads = { files: new Map([['file', upload]]), kept: new Set<string>() }
    return await imports.create({ ...ctx, uploads }, { ...(value as Body<'updateImport'>), file: 'file' })
  } finally {
    await files.discard(upload)
  }
}

function failed(ctx: Context, options: ReportOptions, found: Import, sentence: string): void {
  report(options, resultOf(found), [])
  console.error(sentence)
  tellErrors(ctx, found)
  process.exitCode = 1
}

/** Returns the facts of an import for --json. */
const resultOf = ({ id, type, state, summary, errors, errors_count, invalid_rows_count }: Import) => ({
  ...{ id, type, state, ...summary, errors_count, invalid_rows_count, errors },
})

const maxTold = 10

function tellErrors(ctx: Context, { id, errors, errors_count: count, invalid_rows_count: rows }: Import): void {
  for (const { row, column, message } of errors.slice(0, maxTold))
    console.error(`  ${[row > 0 ? `row ${row}` : '', column ?? ''].filter(Boolean).join(', ') || 'file'}: ${message}`)
  if (count > maxTold) console.error(`  … ${count - maxTold} more`)
  if (rows > 0)
    console.error(
      `All invalid rows with their errors: GET ${ctx.baseUrl}${downloadPathOf('downloadImportErrorReport', id)}`,
    )
}
