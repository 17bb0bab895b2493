// `accord migrate-to`: copies the installation into an empty database of the other engine. Files on
// disk stay where they are, because the data folder stays the same.
import { displayUrl, engineOf, isServerUrl, openStore, type Store } from '../../db/store.ts'
import { transfer } from '../../db/transfer/transfer.ts'
import { TransferError } from '../../db/transfer/transfer-error.ts'
import type { Config } from '../config/config.ts'
import { presentSecret } from '../installation/data-folder.ts'
import { openFiles } from '../installation/open-files.ts'
import { workingProcesses } from '../jobs/locks.ts'
import { stamp, systemClock } from '../kernel/runtime/clock.ts'
import { createAllIndexes } from '../resources/attributes/indexes.ts'
import { comparedTotals } from '../resources/leads/stage-totals.ts'
import { comparedCounts } from '../resources/sources/usage.ts'
import { CommandError } from './command-error.ts'
import { assertInstalled, withInstalled } from './installed-store.ts'
import { showProgress } from './progress.ts'
import { assertUnused } from './restore/restore.ts'

interface Options {
  json?: boolean
}

export async function migrateToCommand(config: Config, url: string, { json = false }: Options): Promise<void> {
  assertTarget(url)
  await assertInstalled(config)
  await assertUnused(config)
  const begun = systemClock.now().getTime()
  const result = await withInstalled(config, async (source) => {
    await assertNobodyWorks(source)
    return copyTo(source, url)
  })
  const rows = Object.values(result.tables).reduce((sum, table) => sum + table.rows, 0)
  const [from, to] = [withoutPassword(config.databaseUrl), withoutPassword(url)]
  if (json) {
    const seconds = Math.round((systemClock.now().getTime() - begun) / 100) / 10
    console.log(
      JSON.stringify({ source: from, target: to, resumed: result.isResumed, rows, seconds, tables: result.tables }),
    )
    return
  }
  console.log(
    `Copied ${rows} rows of ${Object.keys(result.tables).length} tables to ${to}; counts and hashes are equal.`,
  )
  console.log(`Set ACCORD_DATABASE_URL to the URL of the new database, then start the servers again.`)
  const { place } = openFiles(config)
  const secret =
    presentSecret(config) === null
      ? `${config.dataDir} has no secret: copy the secret of the installation there.`
      : `The secret stays in ${config.dataDir}.`
  console.log(`Files stay in ${place}. ${secret} The old database ${from} is unchanged.`)
}

/**
 * Throws when a server or worker holds a lock or a lease of a job, also if it is on another machine
 * or behind a pooler, where `assertUnused` does not see its connection. What it writes during the
 * copy would be lost.
 */
async function assertNobodyWorks(source: Store): Promise<void> {
  const working = await workingProcesses(source, stamp(systemClock.now()))
  if (working.length === 0) return
  const holders = working.map(({ process, until }) => `${process} (until ${until})`).join(', ')
  throw new CommandError(
    `A server or worker holds a lease in ${withoutPassword(source.url)}: ${holders}. Stop it and run this again. If it has crashed, wait until its lease ends. Nothing was changed.`,
  )
}

async function copyTo(source: Store, url: string) {
  const target = openStore(url)
  try {
    return await transfer(source, target, {
      during: (phase, work) => showProgress(phase, process.stderr, work),
      derived: [comparedTotals, comparedCounts],
      finish: (db) => createAllIndexes(db, target.dialect),
    })
  } catch (cause) {
    if (cause instanceof TransferError) throw new CommandError(cause.message, cause)
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new CommandError(
      `The copy to ${withoutPassword(url)} stopped: ${reason.replace(/\.?$/, '.')} The source is unchanged. Run the command again to go on.`,
      cause,
    )
  } finally {
    await target.close()
  }
}

/**
 * Throws CommandError unless the URL is a valid target. The message shows only the scheme, because
 * the URL may contain a password.
 */
function assertTarget(url: string): void {
  if (/^sqlite:(?!:memory:$)./.test(url)) return
  if (/^postgres(ql)?:\/\//.test(url)) {
    if (isServerUrl(url)) return
    throw new CommandError(
      'The target must be postgres://<user>:<password>@<host>/<database>. Write special characters of the password as %-codes.',
    )
  }
  const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(url)?.[0] ?? 'a text without a scheme'
  throw new CommandError(
    `The target must be postgres://<user>:<password>@<host>/<database> or sqlite:<path>, not ${scheme}.`,
  )
}

/** Returns the URL for messages, without password and parameters. */
const withoutPassword = (url: string): string =>
  engineOf(url) === 'sqlite' ? url : displayUrl(url).replace(':***@', '@').replace(/\?.*$/, '')
