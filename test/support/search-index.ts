// Runs migrations like the program: with a rebuild of the search documents at the end.
import { migrate, migrations } from '../../db/migrate.ts'
import type { Store } from '../../db/store.ts'
import { searchIndex } from '../../src/operations.ts'

export const migrateWithSearch = (store: Store): Promise<string[]> =>
  migrate(store, migrations, { rebuildSearch: searchIndex.rebuild })
