// `accord migrate`: applies the pending migrations.
import type { Config } from '../config/config.ts'
import { migrateData, openData } from '../installation/data-folder.ts'
import { rebuildSearch } from './rebuild-search.ts'

export async function migrateCommand(config: Config): Promise<void> {
  const store = await openData(config)
  try {
    const applied = await migrateData(config, store, rebuildSearch)
    for (const name of applied) console.log(`applied ${name}`)
    if (applied.length === 0) console.log('The database is up to date.')
  } finally {
    await store.close()
  }
}
