// Runs a server: opens the data folder, migrates, listens and warms up. On closing, HTTP and
// background work end at the same time, and the database is closed last.

import { migrate, migrations } from '../db/migrate.ts'
import { storageFaultOf } from '../db/storage-errors.ts'
import type { Store } from '../db/store.ts'
import { type App, buildApp } from './app.ts'
import { type Config, ConfigError } from './config/config.ts'
import { signInWarning } from './config/sign-in-hosts.ts'
import { loadExtensions } from './extensions.ts'
import { removeStaleDrafts } from './installation/atomic-file.ts'
import { openData, openPublished, publishContract } from './installation/data-folder.ts'
import { removeInterruptedRestores } from './installation/interrupted-restores.ts'
import { generatedContract, isGeneratedCurrent } from './installation/package-info.ts'
import { ensureSecret } from './installation/secret.ts'
import { watchStorage } from './installation/storage-watch.ts'
import { bestEffort } from './kernel/runtime/unavailable.ts'
import { searchIndex } from './operations.ts'
import { messageProblems } from './texts/languages.ts'

/**
 * The time, in milliseconds, that a stopping server waits for running requests and jobs. It is less
 * than the 10 seconds after which Docker kills a process.
 */
const graceMs = 8_000
/**
 * The maximum number of connections that the system queues before they are accepted. A client that
 * finds the queue full tries again after 1 s and 3 s.
 */
const maxUnaccepted = 4_096
const warmUpAfterMs = 300
/** The interval of database maintenance in milliseconds. */
const maintenanceMs = 30_000
/**
 * The minimum age, in milliseconds, of a leftover file: a temporary file of a process that has
 * ended.
 */
const leftoverMs = 60 * 60_000

export interface Running {
  app: App
  store: Store
  /** The base URL: ACCORD_APP_URL, or else a URL that a user on this machine can open. */
  url: string
  /** Stops accepting connections, waits for running requests and jobs, and closes the database. */
  close(): Promise<void>
}

/** Starts a server. The database may already be open, for example after an installation. */
export async function startServer(config: Config, opened?: Store): Promise<Running> {
  const store = opened ?? (await openData(config))
  let app: App | undefined
  try {
    await store.synchronizeClock()
    const migrated = await migrate(store, migrations, { rebuildSearch: searchIndex.rebuild })
    const published = openPublished(config)
    // After an upgrade, the documentation must show the contract that this program follows.
    if (published() !== null) await bestEffort(async () => publishContract(config))
    const contract = generatedContract()
    const extensions = await loadExtensions(config.listeners)
    app = await buildApp({
      config,
      store,
      secret: (await ensureSecret(config, store)).secret,
      contract,
      published,
      extensions,
      serves: true,
    })
    const { log } = app.http
    if (migrated.length > 0) log.info({ migrated }, 'The database was migrated.')
    await sweepLeftovers(app)
    // The first commit to an empty write-ahead log also syncs the header of the log. This write
    // does that before a caller has to wait for it.
    await bestEffort(store.tryWrite)
    await listen(app, config)
    const url = config.appUrl ?? urlOf(app, config)
    reportContract(app, contract, published()?.hash)
    const warning = signInWarning(config)
    if (warning !== null) log.warn({}, warning)
    for (const problem of await messageProblems(config.dataDir)) log.warn({}, `The text is left out. ${problem}`)
    if (config.mailReceiver === 'sendgrid' && config.inboundOpen)
      log.warn(
        {},
        'ACCORD_INBOUND_OPEN is on: anybody can post e-mails to POST /admin/mail/inbound-parse. `accord install` prints the address with the secret; give it to the mail service and set ACCORD_INBOUND_OPEN=off.',
      )
    const timers = [warmUpSoon(app), watchStorage(app), setInterval(() => void store.maintain(), maintenanceMs).unref()]
    if (config.worker) startWork(app)
    return { app, store, url, close: closer(app, store, timers) }
  } catch (error) {
    await app?.http.close()
    await store.close()
    throw error
  }
}

/**
 * Closes the server on SIGTERM, SIGINT or SIGHUP. A second signal ends the process at once. An
 * uncaught exception leaves an unknown state, so the server also closes, with an exit code that
 * makes a supervisor restart it. An unhandled rejection is only logged. Returns a function that
 * closes the server and ends the process; repeated calls do nothing.
 */
export function closeOnSignals(running: Running): () => void {
  const { log } = running.app.http
  let isClosing = false
  let exitCode = 0
  let signals = 0
  function close(code: number): void {
    exitCode = Math.max(exitCode, code)
    if (isClosing) return
    isClosing = true
    running.close().then(
      () => process.exit(exitCode),
      (cause: unknown) => {
        log.error({ err: cause }, 'Closing failed.')
        process.exit(1)
      },
    )
  }
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      signals++
      if (signals > 1) process.exit(1)
      log.info({ signal }, 'Closing.')
      close(0)
    })
  }
  process.on('uncaughtException', (cause) => {
    // Ignores storage faults: on a full disk, even a log line could not be written.
    if (storageFaultOf(cause) !== null) return
    log.fatal({ err: cause }, 'An error was not caught; the server closes and is to be started again.')
    close(1)
  })
  process.on('unhandledRejection', (cause) => log.error({ err: cause }, 'A promise was rejected without a handler.'))
  return () => close(0)
}

async function sweepLeftovers({ services }: App): Promise<void> {
  const before = new Date(services.clock.now().getTime() - leftoverMs)
  await bestEffort(async () => {
    removeStaleDrafts(services.config.dataDir, before)
    removeInterruptedRestores(services.config)
    await services.files.sweep(before)
  })
}

async function listen(app: App, { host, port }: Config): Promise<void> {
  try {
    await app.http.listen({
      host,
      port,
      backlog: maxUnaccepted,
      listenTextResolver: (address) => `Accord CRM listens on ${address}`,
    })
  } catch (cause) {
    throw listenError(cause, host, port)
  }
}

function listenError(cause: unknown, host: string, port: number): unknown {
  const code = cause instanceof Error && 'code' in cause ? cause.code : ''
  if (code === 'EADDRINUSE')
    return new ConfigError(
      'ACCORD_PORT',
      `is ${port}, and something else listens there already. Stop it, or choose another port.`,
    )
  if (code === 'EACCES')
    return new ConfigError('ACCORD_PORT', `is ${port}, which this user may not open. Choose one above 1023.`)
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return new ConfigError('ACCORD_HOST', `is "${host}", which is not an address of this machine.`)
  return cause
}

/** Returns a URL that a user can open. For a server on all interfaces, the host is `localhost`. */
function urlOf(app: App, config: Config): string {
  const address = app.http.server.address()
  const port = typeof address === 'object' && address !== null ? address.port : config.port
  const isAny = config.host === '0.0.0.0' || config.host === '::'
  const host = isAny ? 'localhost' : config.host.includes(':') ? `[${config.host}]` : config.host
  return `http://${host}:${port}`
}

function reportContract({ http: { log } }: App, contract: Record<string, unknown>, published: unknown): void {
  if (!isGeneratedCurrent(contract))
    log.warn(
      {},
      'openapi.yaml has changed; this server still follows the contract generated before. Run: accord regenerate, then start again',
    )
  if (published === undefined)
    log.warn({}, 'This data folder is not installed; the documentation answers 404. Run: accord install')
  else if (published !== contract['x-contract-hash']) {
    log.warn(
      {},
      'The documentation shows another version of the contract than this server follows. Run: accord regenerate',
    )
  }
}

export function startWork({ worker, scheduler }: App): void {
  worker.start()
  scheduler.start()
}

/**
 * Compiles the validators after a delay. The first requests after the start are thus not delayed by
 * the compilation.
 */
function warmUpSoon(app: App): NodeJS.Timeout {
  const warm = (): void => {
    app.warmUp().catch((cause: unknown) => app.http.log.error({ err: cause }, 'Warming up failed.'))
  }
  return setTimeout(warm, warmUpAfterMs).unref()
}

/**
 * Stops the background work. Running jobs are asked to stop; the next worker resumes a job that
 * does not stop in time. A part that fails to stop does not keep the other parts from stopping.
 */
export async function stopWork({ worker, scheduler, services }: App): Promise<void> {
  const stopped = await Promise.allSettled([scheduler.stop(), worker.stop(graceMs)])
  services.mailer.close()
  throwFirst(stopped)
}

function closer(app: App, store: Store, timers: readonly NodeJS.Timeout[]): () => Promise<void> {
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    for (const each of timers) clearTimeout(each)
    // Background work stops together with HTTP, so that no job starts while the last requests end.
    const stopped = await Promise.allSettled([closeHttp(app), stopWork(app)])
    await store.close()
    throwFirst(stopped)
  }
  return () => {
    closing ??= close()
    return closing
  }
}

/**
 * Closes HTTP. An idle connection closes at once, any other connection after its response
 * (request-guards.ts). After the grace period, all remaining connections are cut off.
 */
async function closeHttp({ http }: App): Promise<void> {
  const cutOff = setTimeout(() => http.server.closeAllConnections(), graceMs)
  try {
    await http.close()
  } finally {
    clearTimeout(cutOff)
  }
}

function throwFirst(outcomes: readonly PromiseSettledResult<unknown>[]): void {
  const failed = outcomes.find((each) => each.status === 'rejected')
  if (failed) throw failed.reason
}
