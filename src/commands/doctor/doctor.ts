// `accord doctor`: looks at everything an installation needs, changes nothing, and says what to do about what is wrong. What only
// might be better is a hint, which fails nothing.
import { statSync } from 'node:fs'
import { databaseFile, openStore, type Store, storeExists } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import type { CheckResult } from './check-result.ts'
import {
  checkBackups,
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

export async function doctorCommand(config: Config, { deep = false }: { deep?: boolean } = {}): Promise<void> {
  const store = opened(config)
  const withTables = (look: (store: Store, config: Config) => CheckResult | Promise<CheckResult>) => () =>
    store === null || typeof store === 'string' ? 'cannot be looked at without a database.' : look(store, config)
  const checks: [what: string, look: () => CheckResult | Promise<CheckResult>][] = [
    [`Node ${process.versions.node}`, checkNodeVersion],
    [`Data folder ${config.dataDir}`, () => checkDataFolder(config)],
    ['Disk', () => checkFreeSpace(config)],
    ['Secret', () => checkSecret(config)],
    [`Database ${config.databaseUrl}`, () => checkDatabase(store, config)],
    ['Rights of the database', () => checkDatabasePermissions(config)],
    ['Log of the database', withTables(checkWalSize)],
    ['Migrations', withTables(checkMigrations)],
    ['Sealed values', withTables(checkEncryption)],
    ['Files', withTables((store) => checkFileContents(store, config, deep))],
    ['Trash', () => checkTrash(config)],
    ['Administrator', withTables(checkAdministrator)],
    ['Search', withTables(checkSearchIndex)],
    ['Jobs', withTables(checkFailedJobs)],
    ['Work under way', withTables(checkInterruptedJobs)],
    ['Webhooks', withTables(checkWebhooks)],
    ['Readers of the event log', withTables(checkEventConsumers)],
    ['Clock', withTables(checkClock)],
    ['Outgoing mail', () => checkOutgoingMail(config)],
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

/** The store, or why it does not open. */
function opened(config: Config): Opened {
  const file = databaseFile(config.databaseUrl)
  // To open an empty file would make a database of it.
  if (!storeExists(config.databaseUrl) || (file !== null && statSync(file).size === 0)) return null
  try {
    return openStore(config.databaseUrl)
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause)
  }
}
