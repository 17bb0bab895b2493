// `accord search rebuild`: indexes every record anew, for an index that disagrees with the records (`accord doctor` tells).
import { pending } from '../../db/migrate.ts'
import { storeExists } from '../../db/open.ts'
import { rebuildAll } from '../../db/search.ts'
import type { Config } from '../config.ts'
import { openData } from '../data.ts'
import { CommandError } from './fail.ts'

export async function rebuildSearchCommand(config: Config): Promise<void> {
  if (!storeExists(config.databaseUrl))
    throw new CommandError(`There is no database at ${config.databaseUrl}. Run: accord install`)
  const store = openData(config)
  try {
    if ((await pending(store)).length > 0)
      throw new CommandError('The database is older than this program. Run: accord migrate')
    console.log(`Indexed ${await rebuildAll(store)} records.`)
  } finally {
    await store.close()
  }
}
