// Adds an import option: addresses and numbers from the file replace those of an existing person.
// By default, they are added.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, flag } from '../schema/columns.ts'

export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>
  addColumn(db, dialect, 'imports', 'replace_lists', flag(false))
