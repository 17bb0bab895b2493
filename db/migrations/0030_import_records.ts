// Imports remember the records that they created, changed or deleted, of all types, and so can be
// undone. Before, they remembered only the persons, for campaigns.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  addColumn,
  createTable,
  id,
  integer,
  json,
  nullable,
  oneOf,
  references,
  replaceColumn,
  text,
} from '../schema/columns.ts'

const types = ['persons', 'organizations', 'products', 'leads', 'tags']

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'import_records',
    {
      id: id(),
      import_id: references('imports', 'cascade'),
      /** Without a foreign key: the record may be gone, and may be restored. */
      entity_type: oneOf(types),
      record_id: integer(),
      /** What the import did first. `matched` is a record that already had the values of its row. */
      did: oneOf(['created', 'updated', 'deleted', 'matched']),
    },
    { unique: [['import_id', 'entity_type', 'record_id']] },
  )
  await sql`insert into import_records (import_id, entity_type, record_id, did)
    select import_id, 'persons', person_id, 'updated' from import_persons order by import_id, person_id`.execute(db)
  await db.schema.dropTable('import_persons').execute()
  /** What the undo of an import could not take back. */
  await createTable(
    db,
    dialect,
    'import_remainders',
    {
      id: id(),
      import_id: references('imports', 'cascade'),
      entity_type: oneOf(types),
      record_id: integer(),
      field: nullable(text()),
      reason: oneOf(['edited', 'in_use', 'gone', 'forbidden', 'refused', 'unknown']),
      message: text(),
    },
    { indexes: [['import_id', 'id']] },
  )
  await addColumn(db, dialect, 'imports', 'preview', nullable(json()))
  await addColumn(db, dialect, 'imports', 'undo', nullable(json()))
  await replaceColumn(db, dialect, ['imports', 'state'], oneOf(states, 'pending'), [{ columns: ['state', 'id'] }])
}

const states = [
  'pending',
  'validating',
  'validated',
  'invalid',
  'processing',
  'completed',
  'failed',
  'cancelled',
  'undoing',
  'undone',
]
