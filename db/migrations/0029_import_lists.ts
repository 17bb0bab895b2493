// An import adds to the addresses and numbers of a person it finds, unless it is to replace them.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, flag } from '../schema/columns.ts'

export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>
  addColumn(db, dialect, 'imports', 'replace_lists', flag(false))
