// `accord worker` runs background jobs for servers with ACCORD_WORKER=off. `accord jobs` lists jobs
// and retries buried (finally failed) jobs.
import type { Config } from '../config/config.ts'
import { lookForInstallation } from '../installation/installation.ts'
import { watchStorage } from '../installation/storage-watch.ts'
import type { Context } from '../kernel/context.ts'
import { Problem } from '../kernel/errors.ts'
import { stopwatch } from '../kernel/runtime/clock.ts'
import { retry } from '../resources/system/jobs.ts'
import { describeWebhook, webhookStates } from '../resources/system/webhook-health.ts'
import { startWork, stopWork } from '../server.ts'
import { CommandError } from './command-error.ts'
import { asSystem, withApp } from './context.ts'
import { counted, type ReportOptions, report } from './report.ts'

/** The time, in milliseconds, that a starting worker waits for the database server. */
const maxWaitMs = 60_000

/**
 * Waits until the database server accepts connections, because both often start together. Returns
 * at the end of the wait, too; opening the database then reports the reason.
 */
async function waitForServer(config: Config): Promise<void> {
  const waitedMs = stopwatch()
  for (let tries = 0; waitedMs() < maxWaitMs; tries++) {
    const { isUnreachable, problem } = await lookForInstallation(config)
    if (isUnreachable !== true) return
    if (tries === 0) console.error(`Waiting up to ${maxWaitMs / 1000} s for the database, because ${problem}.`)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

export const workerCommand = async (config: Config): Promise<void> => {
  await waitForServer(config)
  await withApp(config, async (app) => {
    const watch = watchStorage(app)
    startWork(app)
    app.http.log.info({}, 'The worker is running.')
    await new Promise<void>((resolve) => {
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve())
    })
    app.http.log.info({}, 'Closing.')
    await stopWork(app)
    clearInterval(watch)
  })
}

export const listJobsCommand = (
  config: Config,
  { state, ...options }: { state?: string } & ReportOptions,
): Promise<void> =>
  asSystem(config, async (ctx) => {
    const jobs = ctx.db.selectFrom('jobs').selectAll().orderBy('id').limit(1000)
    const rows = await (state === undefined ? jobs : jobs.where('state', '=', state)).execute()
    const webhooks = state === undefined ? await webhookStates(ctx.db, ctx.services.sights) : []
    const found = webhooks.map((each) => capitalized(describeWebhook(each)))
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

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

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
