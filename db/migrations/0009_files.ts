// Creates the table of uploaded files. A row has the uploader and, after the file is attached, the
// record that it belongs to. The bytes are stored under their hash, outside the database.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, integer, nullable, references, text, timestamp, timestamps } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'files',
    {
      id: id(),
      name: text(),
      size: integer(),
      content_type: text(),
      sha256: text(),
      user_id: references('users', 'set null'),
      /**
       * The resource name of the record that the file is attached to. Null for an unattached file.
       */
      owner_type: nullable(text()),
      owner_id: nullable(integer()),
      created_at: timestamp(),
    },
    { indexes: [['sha256'], ['owner_type', 'owner_id'], ['created_at', 'id']] },
  )
  await createTable(
    db,
    dialect,
    'activity_files',
    {
      id: id(),
      activity_id: references('activities', 'cascade'),
      file_id: references('files', 'restrict'),
      name: text(),
      ...timestamps(),
    },
    { unique: [['activity_id', 'file_id']] },
  )
}
