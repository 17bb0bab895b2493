// Rebuilds the search index after migrations. The module with all resources is imported only when
// needed, because most commands apply no migration.
import type { MigrationTools } from '../../db/migrate.ts'

export const rebuildSearch: NonNullable<MigrationTools['rebuildSearch']> = async (db, dialect) => {
  const { searchIndex } = await import('../operations.ts')
  return searchIndex.rebuild(db, dialect)
}
