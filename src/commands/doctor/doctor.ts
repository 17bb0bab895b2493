// `accord doctor`: looks at everything an installation needs, changes nothing, and says what to do about what is wrong. What only
// might be better is a hint, which fails nothing.
import { statSync } from 'node:fs'
import { databaseFile, openStore, type Store, storeExists } from '../../../db/store.ts'
import type { Config } from '../../config/config.ts'
import {
  backups,
  bytesOfFiles,
  databaseFileRights,
  dataFolder,
  leftovers,
  log,
  room,
  sealedValues,
  secret,
  trash,
} from './data.ts'
import type { Finding } from './finding.ts'
import { mail, mailbox } from './mail.ts'
import { contract, documentation, listeners, nodeVersion, port } from './program.ts'
import { administrator, clock, database, jobs, migrations, readers, search, stuck, webhooks } from './records.ts'
import { settings } from './settings.ts'

type Opened = Store | string | null

export async function doctorCommand(config: Config, { deep = false }: { deep?: boolean } = {}): Promise<void> {
  const store = opened(config)
  const withTables = (look: (store: Store, config: Config) => Finding | Promise<Finding>) => () =>
    store === null || typeof store === 'string' ? 'cannot be looked at without a database.' : look(store, config)
  const checks: [what: string, look: () => Finding | Promise<Finding>][] = [
    [`Node ${process.versions.node}`, nodeVersion],
    [`Data folder ${config.dataDir}`, () => dataFolder(config)],
    ['Disk', () => room(config)],
    ['Secret', () => secret(config)],
    [`Database ${config.databaseUrl}`, () => database(store, config)],
    ['Rights of the database', () => databaseFileRights(config)],
    ['Log of the database', withTables(log)],
    ['Migrations', withTables(migrations)],
    ['Sealed values', withTables(sealedValues)],
    ['Files', withTables((store) => bytesOfFiles(store, config, deep))],
    ['Trash', () => trash(config)],
    ['Administrator', withTables(administrator)],
    ['Search', withTables(search)],
    ['Jobs', withTables(jobs)],
    ['Work under way', withTables(stuck)],
    ['Webhooks', withTables(webhooks)],
    ['Readers of the event log', withTables(readers)],
    ['Clock', withTables(clock)],
    ['Outgoing mail', () => mail(config)],
    ['Mailbox', () => mailbox(config)],
    ['Settings', () => settings(config)],
    ['Backups', () => backups(config)],
    ['Leftovers', () => leftovers(config)],
    ['Contract', contract],
    ['Documentation', () => documentation(config)],
    ['Listeners', () => listeners(config)],
    [`Port ${config.port} on ${config.host}`, () => port(config)],
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
