// Opens the store of an installed data folder. Throws when there is no database or when migrations
// are pending.
import { pendingMigrations } from '../../db/migrate.ts'
import { type Store, storeExists } from '../../db/store.ts'
import type { Config } from '../config/config.ts'
import { openData } from '../installation/data-folder.ts'
import { assertNotLost } from '../installation/installation.ts'
import { CommandError } from './command-error.ts'

export async function withInstalled<T>(config: Config, work: (store: Store) => Promise<T>): Promise<T> {
  assertNotLost(config)
  if (!storeExists(config.databaseUrl))
    throw new CommandError(`There is no database at ${config.databaseUrl}. Run: accord install`)
  const store = openData(config)
  try {
    if ((await pendingMigrations(store)).length > 0)
      throw new CommandError('The database is older than this program. Run: accord migrate')
    return await work(store)
  } finally {
    await store.close()
  }
}
