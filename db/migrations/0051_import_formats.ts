// Adds settings of imports for encoding, dates, numbers and headers, and an option to import rows
// without their invalid cells.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, flag, integer, json, nullable, text } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'imports', 'encoding', text('utf-8'))
  await addColumn(db, dialect, 'imports', 'date_format', nullable(text()))
  await addColumn(db, dialect, 'imports', 'decimal_separator', nullable(text()))
  await addColumn(db, dialect, 'imports', 'mapping', nullable(json()))
  await addColumn(db, dialect, 'imports', 'omit_invalid_cells', flag(false))
  await addColumn(db, dialect, 'imports', 'omitted_cells_count', integer(0))
}
