// Creates the tables of e-mail templates and workflows.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import {
  createTable,
  flag,
  id,
  integer,
  json,
  key,
  listed,
  nullable,
  oneOf,
  text,
  timestamps,
  version,
} from '../schema/columns.ts'

const triggers = ['lead', 'activity', 'contacts.person', 'quote'].flatMap((noun) => [
  `${noun}.create.after`,
  `${noun}.update.after`,
  `${noun}.delete.before`,
])

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'email_templates',
    {
      id: id(),
      name: text(),
      name_key: key(),
      subject: text(),
      content: text(),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: listed },
  )
  await createTable(
    db,
    dialect,
    'workflows',
    {
      id: id(),
      name: text(),
      name_key: key(),
      description: nullable(text()),
      entity_type: oneOf(['leads', 'activities', 'persons', 'quotes']),
      event: oneOf(triggers),
      condition_type: oneOf(['and', 'or'], 'and'),
      conditions: json('[]'),
      actions: json(),
      is_active: flag(true),
      sort_order: integer(),
      ...timestamps(),
      ...version(),
    },
    { unique: [['name_key']], indexes: [['event', 'sort_order', 'id'], ['sort_order', 'id'], ...listed] },
  )
}
