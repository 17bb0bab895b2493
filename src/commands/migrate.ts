// `accord migrate`: applies the pending migrations.
import { type MigrationSteps, migrate, migrations } from '../../db/migrate.ts'
import type { Config } from '../config/config.ts'
import { openData } from '../installation/data-folder.ts'
import { type ReportOptions, report } from './report.ts'

export async function migrateCommand(config: Config, options: ReportOptions = {}): Promise<void> {
  const store = await openData(config)
  try {
    const applied = await migrate(store, migrations, { rebuildSearch })
    const sentences = applied.map((name) => `applied ${name}`)
    report(options, { applied }, sentences.length > 0 ? sentences : ['The database is up to date.'])
  } finally {
    await store.close()
  }
}

/**
 * Rebuilds the search index after migrations. The module with all resources is imported only when
 * needed, because most commands apply no migration.
 */
export const rebuildSearch: NonNullable<MigrationSteps['rebuildSearch']> = async (db, dialect) => {
  const { searchIndex } = await import('../operations.ts')
  return searchIndex.rebuild(db, dialect)
}
