// Creates the tables of imports, their batches and errors, and of the persons that an import
// created or changed.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  flag,
  id,
  integer,
  json,
  listed,
  nullable,
  oneOf,
  references,
  text,
  timestamp,
  timestamps,
  version,
} from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'imports',
    {
      id: id(),
      type: oneOf(['persons', 'organizations', 'products', 'leads']),
      action: oneOf(['append', 'delete']),
      validation_strategy: oneOf(['stop-on-errors', 'skip-errors']),
      allowed_errors: integer(0),
      field_separator: oneOf([',', ';', '\t', '|'], ','),
      process_in_queue: flag(true),
      file_id: references('files', 'set null'),
      error_file_id: references('files', 'set null'),
      state: oneOf(
        ['pending', 'validating', 'validated', 'invalid', 'processing', 'completed', 'failed', 'cancelled'],
        'pending',
      ),
      processed_rows_count: integer(0),
      invalid_rows_count: integer(0),
      errors_count: integer(0),
      errors: json('[]'),
      summary: json('{"created":0,"updated":0,"deleted":0,"skipped":0}'),
      progress: integer(0),
      user_id: references('users', 'set null'),
      started_at: nullable(timestamp()),
      completed_at: nullable(timestamp()),
      ...timestamps(),
      ...version(),
      rows_count: nullable(integer()),
      /** Addresses and numbers from the file replace those of an existing person. */
      replace_lists: flag(false),
      /** How the file is read. */
      encoding: text('utf-8'),
      date_format: nullable(text()),
      decimal_separator: nullable(text()),
      mapping: nullable(json()),
      /** Rows are imported without their invalid cells. */
      omit_invalid_cells: flag(false),
      omitted_cells_count: integer(0),
      constants: nullable(json()),
      header_row: nullable(integer()),
      sheet: nullable(text()),
      unknown_references: text('refuse'),
      /** The changes and warnings of the validation. */
      changes: json('[]'),
      warnings: json('[]'),
      missing_names: oneOf(['refuse', 'fill'], 'refuse'),
    },
    {
      indexes: [
        ['type', 'id'],
        ['action', 'id'],
        ['state', 'id'],
        ['started_at', 'id'],
        ['completed_at', 'id'],
        ...listed,
      ],
    },
  )
  await createTable(
    db,
    dialect,
    'import_batches',
    { id: id(), import_id: references('imports', 'cascade'), number: integer(), summary: json('{}'), ...timestamps() },
    { unique: [['import_id', 'number']] },
  )
  await createTable(
    db,
    dialect,
    'import_errors',
    {
      id: id(),
      import_id: references('imports', 'cascade'),
      row: integer(),
      column: nullable(text()),
      code: text(),
      message: text(),
      /** The cells of the row, for the error report. */
      cells: json('[]'),
    },
    { indexes: [['import_id', 'row', 'id']] },
  )
  await createTable(
    db,
    dialect,
    'import_persons',
    { import_id: references('imports', 'cascade'), person_id: references('persons', 'cascade') },
    { primaryKey: ['import_id', 'person_id'] },
  )
}
