// Opens the store of an installed data folder. Throws when there is no database or when migrations
// are pending.
import { pendingMigrations } from '../../db/migrate.ts'
import { displayUrl, engineOf, isInMemory, type Store, storeExists } from '../../db/store.ts'
import type { Config } from '../config/config.ts'
import { openData } from '../installation/data-folder.ts'
import { assertNotLost } from '../installation/installation.ts'
import { CommandError } from './command-error.ts'

export async function withInstalled<T>(config: Config, work: (store: Store) => Promise<T>): Promise<T> {
  await assertInstalled(config)
  const store = await openData(config)
  try {
    if ((await pendingMigrations(store)).length > 0)
      throw new CommandError('The database is older than this program. Run: accord migrate')
    return await work(store)
  } finally {
    await store.close()
  }
}

/**
 * Throws when a server would serve a database without an administrator, because nothing was
 * installed. A database in memory cannot be installed before the server starts.
 */
export async function assertServable(config: Config): Promise<void> {
  const { dataDir, databaseUrl } = config
  if (isInMemory(databaseUrl) || (await assertNotLost(config)).state !== 'empty') return
  throw new CommandError(
    `Nothing is installed in ${dataDir}, and the database ${displayUrl(databaseUrl)} is empty. Run: accord start, which installs and serves. If an installation exists elsewhere, set ACCORD_DATA_DIR to its folder.`,
  )
}

/** Advice for a folder without an installation. The installation may be in another folder. */
export const installationAdvice =
  'Run it in the folder of the installation, or set ACCORD_DATA_DIR. For a new installation, run: accord install'

/** Throws when the database is lost, or when there is no database yet. */
export async function assertInstalled(config: Config): Promise<void> {
  const { state } = await assertNotLost(config)
  if (state !== 'empty' || storeExists(config.databaseUrl)) return
  throw new CommandError(
    engineOf(config.databaseUrl) === 'postgres'
      ? `The database ${displayUrl(config.databaseUrl)} is empty. Run: accord install`
      : `There is no database at ${config.databaseUrl}. ${installationAdvice}`,
  )
}
