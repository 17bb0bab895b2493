// `accord doctor`: checks everything that an installation needs, and says how to fix each problem.
// It changes nothing. The exit code is 1 for problems, and 0 when there are only hints.
import { statSync } from 'node:fs'
import { databaseFile, displayUrl, engineOf, openStore, type Store, storeExists } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import { serverOptions } from '../../installation/data-folder.ts'
import { lookForInstallation } from '../../installation/installation.ts'
import { openFiles } from '../../installation/open-files.ts'
import { messageProblems } from '../../texts/languages.ts'
import { type ReportOptions, report } from '../report.ts'
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
import { checkLedger } from './ledger.ts'
import { checkMailbox, checkOutgoingMail } from './mail.ts'
import { checkContract, checkDocumentation, checkListeners, checkNodeVersion, checkPort } from './program.ts'
import {
  checkAdministrator,
  checkCampaigns,
  checkClock,
  checkDatabase,
  checkDeprecatedUses,
  checkEventConsumers,
  checkFailedJobs,
  checkInterruptedJobs,
  checkMigrations,
  checkReplica,
  checkSearchIndex,
  checkWebhooks,
} from './records.ts'
import { checkSettings } from './settings.ts'

type Opened = Store | string | null
type Check = [what: string, check: () => CheckResult | Promise<CheckResult>]

export async function doctorCommand(
  config: Config,
  { deep = false, ...options }: { deep?: boolean } & ReportOptions = {},
): Promise<void> {
  const store = await opened(config)
  const isFile = engineOf(config.databaseUrl) === 'sqlite'
  const withTables = (check: (store: Store, config: Config) => CheckResult | Promise<CheckResult>) => () =>
    store === null || typeof store === 'string' ? 'cannot be checked without a database.' : check(store, config)
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
    ...(config.databaseReplicaUrl === null
      ? []
      : ([[`Read replica ${displayUrl(config.databaseReplicaUrl)}`, withTables(checkReplica)]] satisfies Check[])),
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
    ['Campaigns', withTables(checkCampaigns)],
    ['Reports', withTables(checkLedger)],
    ['Event consumers', withTables(checkEventConsumers)],
    ['Clock', withTables(checkClock)],
    ['Outgoing e-mail', () => checkOutgoingMail(config)],
    ['Mailbox', () => checkMailbox(config)],
    ['Settings', () => checkSettings(config)],
    ['Texts', () => messageProblems(config.dataDir)],
    ['Backups', () => checkBackups(config)],
    ['Leftovers', () => checkLeftovers(config)],
    ['Deprecated calls', withTables(checkDeprecatedUses)],
    ['Contract', checkContract],
    ['Documentation', () => checkDocumentation(config)],
    ['Listeners', () => checkListeners(config)],
    [`Port ${config.port} on ${config.host}`, () => checkPort(config)],
  ]
  const results: CheckReport[] = []
  for (const [what, check] of checks) {
    const found = await Promise.resolve()
      .then(check)
      .catch((cause: unknown) => (cause instanceof Error ? cause.message : String(cause)))
    const result = reportOf(what, found)
    results.push(result)
    // Each check is printed when it is done, because some checks take long.
    if (!options.json) for (const line of linesOf(result)) console.log(line)
  }
  if (store !== null && typeof store !== 'string') await store.close()
  const broken = results.filter(({ problems }) => problems.length > 0).length
  report(options, { broken, checks: results }, [
    broken === 0 ? 'Everything is in order.' : `${broken} of ${checks.length} checks failed.`,
  ])
  if (broken > 0) process.exitCode = 1
}

interface CheckReport {
  check: string
  problems: string[]
  hints: string[]
}

function reportOf(check: string, found: CheckResult): CheckReport {
  const findings = [found ?? []].flat()
  return {
    check,
    problems: findings.flatMap((each) => (typeof each === 'string' ? [each] : [])),
    hints: findings.flatMap((each) => (typeof each === 'string' ? [] : [each.sentence])),
  }
}

function linesOf({ check, problems, hints }: CheckReport): string[] {
  const found = [
    ...problems.map((sentence) => `BROKEN  ${check}: ${sentence}`),
    ...hints.map((sentence) => `hint    ${check}: ${sentence}`),
  ]
  return found.length > 0 ? found : [`ok      ${check}`]
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
