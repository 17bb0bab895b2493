// `accord worker`: runs background jobs for servers with ACCORD_WORKER=off.
import type { Config } from '../config/config.ts'
import { lookForInstallation } from '../installation/installation.ts'
import { watchStorage } from '../installation/storage-watch.ts'
import { stopwatch } from '../kernel/runtime/clock.ts'
import { startWork, stopWork } from '../server.ts'
import { withApp } from './context.ts'

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
