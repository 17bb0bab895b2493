// Adds the setting of imports for persons without a name.
import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, oneOf } from '../schema/columns.ts'

export const up = (db: Kysely<unknown>, dialect: Dialect): Promise<void> =>
  addColumn(db, dialect, 'imports', 'missing_names', oneOf(['refuse', 'fill'], 'refuse'))
