// Creates the tables of persons, organizations, and their links to tags.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  id,
  json,
  key,
  listed,
  nullable,
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
    'organizations',
    {
      id: id(),
      name: text(),
      name_key: key(),
      address: nullable(json()),
      user_id: references('users', 'set null'),
      custom_attributes: json('{}'),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: listed },
  )
  await createTable(
    db,
    dialect,
    'persons',
    {
      id: id(),
      name: text(),
      name_key: key(),
      emails: json(),
      contact_numbers: json('[]'),
      job_title: nullable(text()),
      job_title_key: nullable(key()),
      organization_id: references('organizations', 'set null'),
      user_id: references('users', 'set null'),
      custom_attributes: json('{}'),
      unsubscribed_at: nullable(timestamp()),
      ...timestamps(),
      ...version(),
    },
    { indexes: [['name_key', 'id'], ['job_title_key', 'id'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'organization_tags',
    { organization_id: references('organizations', 'cascade'), tag_id: references('tags', 'cascade') },
    { primaryKey: ['organization_id', 'tag_id'] },
  )
  await createTable(
    db,
    dialect,
    'person_tags',
    { person_id: references('persons', 'cascade'), tag_id: references('tags', 'cascade') },
    { primaryKey: ['person_id', 'tag_id'] },
  )
}
