// Rebuilds the search index after migrations. The slices are loaded only then, because most
// commands have no migration to apply.
import type { MigrationTools } from '../../db/migrate.ts'

export const rebuildSearch: NonNullable<MigrationTools['rebuildSearch']> = async (db, dialect) => {
  const { searchIndex } = await import('../operations.ts')
  return searchIndex.rebuild(db, dialect)
}
