// `accord migrate`: applies the pending migrations.
import type { Config } from '../config/config.ts'
import { migrateData, openData } from '../installation/data-folder.ts'
import { rebuildSearch } from './rebuild-search.ts'
import { type ReportOptions, report } from './report.ts'

export async function migrateCommand(config: Config, options: ReportOptions = {}): Promise<void> {
  const store = await openData(config)
  try {
    const applied = await migrateData(config, store, rebuildSearch)
    const sentences = applied.map((name) => `applied ${name}`)
    report(options, { applied }, sentences.length > 0 ? sentences : ['The database is up to date.'])
  } finally {
    await store.close()
  }
}
