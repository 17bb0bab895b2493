// An import adds addresses and numbers to those of an existing person. An option replaces them
// instead.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, flag } from '../schema/columns.ts'

export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>
  addColumn(db, dialect, 'imports', 'replace_lists', flag(false))
