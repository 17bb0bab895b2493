// Adds activities that take whole days.
import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, flag } from '../schema/columns.ts'

export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>
  addColumn(db, dialect, 'activities', 'is_all_day', flag(false))
