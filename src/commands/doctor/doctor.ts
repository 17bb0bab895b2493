// `accord doctor`: checks everything that an installation needs, and says how to fix each problem.
// It changes nothing. The exit code is 1 for problems, and 0 when there are only hints.
import { statSync } from 'node:fs'
import { databaseFile, displayUrl, engineOf, openStore, type Store, storeExists } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import { serverOptions } from '../../installation/data-folder.ts'
import { lookForInstallation } from '../../installation/installation.ts'
import { openFiles } from '../../installation/open-files.ts'
import type { CheckResult } from './check-result.ts'
import {
  checkBackups,
  checkBucket,
  checkDatabasePermissions,
  checkDataFolder,
  checkEncryption,
  checkFileContents,
  checkFreeSpace,
  checkLeftovers,
  checkSecret,
  checkTrash,
  checkWalSize,
} from './data.ts'
import { checkMailbox, checkOutgoingMail } from './mail.ts'
import { checkContract, checkDocumentation, checkListeners, checkNodeVersion, checkPort } from './program.ts'
import {
  checkAdministrator,
  checkClock,
  checkDatabase,
  checkEventConsumers,
  checkFailedJobs,
  checkInterruptedJobs,
  checkMigrations,
  checkSearchIndex,
  checkWebhooks,
} from './records.ts'
import { checkSettings } from './settings.ts'

type Opened = Store | string | null
type Check = [what: string, look: () => CheckResult | Promise<CheckResult>]

export async function doctorCommand(config: Config, { deep = false }: { deep?: boolean } = {}): Promise<void> {
  const store = await opened(config)
  const isFile = engineOf(config.databaseUrl) === 'sqlite'
  const withTables = (look: (store: Store, config: Config) => CheckResult | Promise<CheckResult>) => () =>
    store === null || typeof store === 'string' ? 'cannot be checked without a database.' : look(store, config)
  const checks: Check[] = [
    [`Node ${process.versions.node}`, () => checkNodeVersion()],
    [`Data folder ${config.dataDir}`, () => checkDataFolder(config)],
    ['Disk', () => checkFreeSpace(config)],
    ['Secret', () => checkSecret(config)],
    [`Database ${displayUrl(config.databaseUrl)}`, () => checkDatabase(store, config)],
    ...(isFile
      ? ([
          ['Database permissions', () => checkDatabasePermissions(config)],
          ['Write-ahead log', withTables(checkWalSize)],
        ] satisfies Check[])
      : []),
    ['Migrations', withTables(checkMigrations)],
    ['Encrypted values', withTables(checkEncryption)],
    ...(config.filesUrl === null
      ? []
      : ([[`File storage ${openFiles(config).place}`, () => checkBucket(config)]] satisfies Check[])),
    ['Files', withTables((store) => checkFileContents(store, config, deep))],
    ['Trash', () => checkTrash(config)],
    ['Administrator', withTables(checkAdministrator)],
    ['Search', withTables(checkSearchIndex)],
    ['Jobs', withTables(checkFailedJobs)],
    ['Interrupted jobs', withTables(checkInterruptedJobs)],
    ['Webhooks', withTables(checkWebhooks)],
    ['Event consumers', withTables(checkEventConsumers)],
    ['Clock', withTables(checkClock)],
    ['Outgoing e-mail', () => checkOutgoingMail(config)],
    ['Mailbox', () => checkMailbox(config)],
    ['Settings', () => checkSettings(config)],
    ['Backups', () => checkBackups(config)],
    ['Leftovers', () => checkLeftovers(config)],
    ['Contract', checkContract],
    ['Documentation', () => checkDocumentation(config)],
    ['Listeners', () => checkListeners(config)],
    [`Port ${config.port} on ${config.host}`, () => checkPort(config)],
  ]
  let broken = 0
  for (const [what, look] of checks) {
    const found = await Promise.resolve()
      .then(look)
      .catch((cause: unknown) => (cause instanceof Error ? cause.message : String(cause)))
    const findings = [found ?? []].flat()
    if (findings.some((finding) => typeof finding === 'string')) broken++
    for (const finding of findings)
      console.log(typeof finding === 'string' ? `BROKEN  ${what}: ${finding}` : `hint    ${what}: ${finding.sentence}`)
    if (findings.length === 0) console.log(`ok      ${what}`)
  }
  if (store !== null && typeof store !== 'string') await store.close()
  console.log(broken === 0 ? 'Everything is in order.' : `${broken} of ${checks.length} checks failed.`)
  if (broken > 0) process.exitCode = 1
}

/**
 * Returns the store; null when there is no database; an error message when the database cannot be
 * opened.
 */
async function opened(config: Config): Promise<Opened> {
  const file = databaseFile(config.databaseUrl)
  if (engineOf(config.databaseUrl) === 'postgres')
    return (await lookForInstallation(config)).hasTables ? openStore(config.databaseUrl, serverOptions(config)) : null
  // SQLite would turn an empty file into a database.
  if (!storeExists(config.databaseUrl) || (file !== null && statSync(file).size === 0)) return null
  try {
    return openStore(config.databaseUrl)
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause)
  }
}
