// Creates the tables of uploaded files, and of activities with their participants, files and links
// to records. A file has the uploader and, after it is attached, the record that it belongs to. The
// bytes are stored under their hash, outside the database.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  flag,
  id,
  integer,
  key,
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
  // For the total size of the unattached files of a user.
  await db.schema
    .createIndex('files_unattached_index')
    .on('files')
    .columns(['user_id', 'size'])
    .where(sql<boolean>`owner_type is null`)
    .execute()
  await createTable(
    db,
    dialect,
    'activities',
    {
      id: id(),
      type: oneOf(['call', 'meeting', 'lunch', 'note', 'file']),
      title: nullable(text()),
      title_key: nullable(key()),
      comment: nullable(text()),
      location: nullable(text()),
      schedule_from: nullable(timestamp()),
      schedule_to: nullable(timestamp()),
      is_done: flag(false),
      user_id: references('users', 'set null'),
      ...timestamps(),
      ...version(),
      is_all_day: flag(false),
    },
    {
      indexes: [
        ['title_key', 'id'],
        ['type', 'id'],
        ['is_done', 'id'],
        ['schedule_from', 'id'],
        ['schedule_to', 'id'],
        ['user_id', 'schedule_from'],
        ...listed,
      ],
    },
  )
  await createTable(
    db,
    dialect,
    'activity_participants',
    {
      id: id(),
      activity_id: references('activities', 'cascade'),
      user_id: nullable(references('users', 'cascade')),
      person_id: nullable(references('persons', 'cascade')),
      response: nullable(oneOf(['accepted', 'tentative', 'declined'])),
      /** The time of the answer, by which a later answer replaces an earlier one. */
      responded_at: nullable(timestamp()),
      /** The times of the activity when the answer arrived. It does not count for other times. */
      answered_from: nullable(timestamp()),
      answered_to: nullable(timestamp()),
    },
    {
      unique: [
        ['activity_id', 'user_id'],
        ['activity_id', 'person_id'],
      ],
      checks: { one_participant: '("user_id" is null) <> ("person_id" is null)' },
    },
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
  for (const [noun, table] of [
    ['lead', 'leads'],
    ['person', 'persons'],
    ['organization', 'organizations'],
    ['product', 'products'],
    ['warehouse', 'warehouses'],
    ['quote', 'quotes'],
  ] as const) {
    await createTable(
      db,
      dialect,
      `${noun}_activities`,
      { [`${noun}_id`]: references(table, 'cascade'), activity_id: references('activities', 'cascade') },
      { primaryKey: [`${noun}_id`, 'activity_id'] },
    )
  }
}
