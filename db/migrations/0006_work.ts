// Creates the tables of activities, their participants, and their links to records.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  flag,
  id,
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
    },
    {
      unique: [
        ['activity_id', 'user_id'],
        ['activity_id', 'person_id'],
      ],
      checks: { one_participant: '("user_id" is null) <> ("person_id" is null)' },
    },
  )
  for (const [noun, table] of [
    ['lead', 'leads'],
    ['person', 'persons'],
    ['organization', 'organizations'],
    ['product', 'products'],
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
