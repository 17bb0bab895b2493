// Adds settings of imports for header row, sheet, constants and unknown names, and the changes and
// warnings that the validation reports.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, integer, json, nullable, text } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await addColumn(db, dialect, 'imports', 'constants', nullable(json()))
  await addColumn(db, dialect, 'imports', 'header_row', nullable(integer()))
  await addColumn(db, dialect, 'imports', 'sheet', nullable(text()))
  await addColumn(db, dialect, 'imports', 'unknown_references', text('refuse'))
  await addColumn(db, dialect, 'imports', 'changes', json('[]'))
  await addColumn(db, dialect, 'imports', 'warnings', json('[]'))
}
