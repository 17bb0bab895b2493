// Creates the table of uploaded files. A row names the uploader and, once attached, the one
// record that the file belongs to. The bytes are stored in the data folder by their hash.

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
      /** Resource name of the record it belongs to; null while unattached. */
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
