// Runs migrations like the program: with a rebuild of the search documents at the end.
import { migrate, migrations } from '../../db/migrate.ts'
import type { Store } from '../../db/store.ts'
import { searchIndex } from '../../src/operations.ts'

const seal = (): string => {
  throw new Error('These databases hold nothing to encrypt.')
}

export const migrateWithSearch = (store: Store): Promise<string[]> =>
  migrate(store, migrations, { seal, rebuildSearch: searchIndex.rebuild })
