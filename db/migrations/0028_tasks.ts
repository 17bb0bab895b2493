// Tasks: activities with a due time and a reminder, which is sent once.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { addColumn, createIndex, nullable, oneOf, replaceColumn, timestamp } from '../schema/columns.ts'

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await replaceColumn(db, dialect, ['activities', 'type'], oneOf(activityTypes, 'note'), [{ columns: ['type', 'id'] }])
  for (const name of ['due_at', 'remind_at', 'reminded_at'])
    await addColumn(db, dialect, 'activities', name, nullable(timestamp()))
  await createIndex(db, dialect, 'activities', { columns: ['due_at', 'id'] })
  await createIndex(db, dialect, 'activities', { columns: ['is_done', 'due_at'] })
  await db.schema
    .createIndex('activities_unreminded_index')
    .on('activities')
    .columns(['remind_at', 'id'])
    .where(sql<boolean>`reminded_at is null and is_done = ${sql.raw(dialect.flagLiteral(false))}`)
    .execute()
}

const activityTypes = ['call', 'meeting', 'lunch', 'task', 'note', 'file']
