// Commands for maintenance: `accord search rebuild`, `accord files clean` and `accord jobs`.
import { sql } from 'kysely'
import type { Config } from '../config/config.ts'
import type { Context } from '../kernel/context.ts'
import { Problem } from '../kernel/errors.ts'
import { capital } from '../kernel/values/format.ts'
import { cleanFiles, trashDays } from '../resources/files/clean-up.ts'
import { retry } from '../resources/system/jobs.ts'
import { rebuildSearchOnline } from '../resources/system/search-rebuild.ts'
import { describeWebhook, webhookStates } from '../resources/system/webhook-health.ts'
import { CommandError } from './command-error.ts'
import { asSystem } from './context.ts'
import { counted, type ReportOptions, report, tellPhase } from './report.ts'

export const rebuildSearchCommand = (config: Config, options: ReportOptions = {}): Promise<void> =>
  asSystem(config, async (ctx) => {
    tellPhase('Reading all records…')
    const count = await rebuildSearchOnline(ctx)
    if (count === null) throw new CommandError('Another process is rebuilding the search index. Wait until it is done.')
    report(options, { indexed: count }, [`Indexed ${count} records.`])
  })

export const listJobsCommand = (
  config: Config,
  { state, ...options }: { state?: string } & ReportOptions,
): Promise<void> =>
  asSystem(config, async (ctx) => {
    const jobs = ctx.db.selectFrom('jobs').selectAll().orderBy('id').limit(1000)
    const rows = await (state === undefined ? jobs : jobs.where(sql.ref('state'), '=', state)).execute()
    const webhooks = state === undefined ? await webhookStates(ctx.db, ctx.services.sights) : []
    const found = webhooks.map((each) => `${capital(describeWebhook(each))}.`)
    const jobsFound = rows.map(({ id, kind, state, attempts, run_at, last_error }) => ({
      ...{ id, kind, state, attempts, run_at, last_error },
    }))
    report(options, { jobs: jobsFound, webhooks: found }, [
      ...(rows.length === 0 ? ['There are no jobs.'] : []),
      ...jobsFound.map(
        ({ id, kind, state, attempts, run_at, last_error }) =>
          `${id}\t${kind}\t${state}\t${attempts} tries\t${run_at}\t${last_error ?? ''}`,
      ),
      ...found,
    ])
  })

export function retryJobsCommand(config: Config, ids: readonly string[], options: ReportOptions = {}): Promise<void> {
  const wrong = ids.find((id) => !/^\d{1,15}$/.test(id))
  if (wrong !== undefined)
    throw new CommandError(`"${wrong}" is not the id of a job. To see all jobs, run: accord jobs list`)
  return asSystem(config, async (ctx) => {
    const chosen = ids.length > 0 ? ids.map(Number) : await buried(ctx)
    const retried: number[] = []
    for (const id of chosen) {
      try {
        await retry(ctx, id)
        retried.push(id)
      } catch (error) {
        // A job that cannot be retried must not keep the other jobs from being retried.
        if (!(error instanceof Problem)) throw error
        console.error(`Job ${id}: ${error.message}`)
        process.exitCode = 1
      }
    }
    report(options, { retried }, [`${counted(retried.length, 'job')} will be retried.`])
  })
}

const buried = async ({ db }: Context): Promise<number[]> =>
  (await db.selectFrom('jobs').select('id').where('state', '=', 'buried').orderBy('id').execute()).map(({ id }) => id)

export async function cleanFilesCommand(config: Config, options: { all?: boolean } & ReportOptions): Promise<void> {
  const done = await asSystem(config, (ctx) => cleanFiles(ctx, options))
  const { files, bytes, deleted, broughtBack, left } = done
  const count = (number: number): string => counted(number, 'file')
  report(options, { removed: files, moved_to_trash: bytes, deleted_from_trash: deleted, restored: broughtBack, left }, [
    `Removed ${count(files)} that no record uses, and moved the contents of ${bytes} to the trash.`,
    ...(deleted > 0 ? [`Deleted ${count(deleted)} from the trash, after ${trashDays} days there.`] : []),
    ...(broughtBack > 0 ? [`Restored ${count(broughtBack)} from the trash, because records refer to them.`] : []),
  ])
  if (left > 0) {
    console.error(
      `Kept ${count(left)} that belong to no record, because they are more than a tenth of all files. Check that the database is the right one, then run: accord files clean --all`,
    )
    process.exitCode = 1
  }
}
