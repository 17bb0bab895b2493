// Rebuilds the search index after migrations. The slices are loaded only then, because most starts
// of a command have none to apply.
import type { MigrationTools } from '../../db/migrate.ts'

export const rebuildSearch: NonNullable<MigrationTools['rebuildSearch']> = async (db, dialect) => {
  const { searchIndex } = await import('../operations.ts')
  return searchIndex.rebuild(db, dialect)
}
