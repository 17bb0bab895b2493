// Creates the tables of organizations, persons with their telephone numbers, and the links to tags.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  flag,
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
      /** The consent to campaigns, where it came from, and its time. */
      subscribed: nullable(flag()),
      subscribed_source: nullable(text()),
      subscribed_at: nullable(timestamp()),
    },
    { indexes: [['name_key', 'id'], ['job_title_key', 'id'], ...listed, ['subscribed', 'id']] },
  )
  await createTable(
    db,
    dialect,
    'person_numbers',
    {
      /** Only the digits of the number. */
      number: text(),
      person_id: references('persons', 'cascade'),
    },
    { primaryKey: ['number', 'person_id'], indexes: [['person_id']] },
  )
  await createTable(
    db,
    dialect,
    'organization_tags',
    { organization_id: references('organizations', 'cascade'), tag_id: references('tags', 'cascade') },
    { primaryKey: ['organization_id', 'tag_id'], indexes: [['tag_id', 'organization_id']] },
  )
  await createTable(
    db,
    dialect,
    'person_tags',
    { person_id: references('persons', 'cascade'), tag_id: references('tags', 'cascade') },
    { primaryKey: ['person_id', 'tag_id'], indexes: [['tag_id', 'person_id']] },
  )
}
