// Saved views: conditions on the records of a type, and the groups that they are shared with.

import type { Kysely } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, id, json, key, listed, oneOf, references, text, timestamps, version } from '../schema/columns.ts'

const types = ['leads', 'persons', 'organizations', 'quotes', 'products', 'activities', 'emails']

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'saved_views',
    {
      id: id(),
      name: text(),
      name_key: key(),
      type: oneOf(types),
      where: json(),
      user_id: references('users', 'set null'),
      ...timestamps(),
      ...version(),
    },
    { indexes: [['user_id', 'type', 'name_key'], ...listed] },
  )
  await createTable(
    db,
    dialect,
    'saved_view_groups',
    { saved_view_id: references('saved_views', 'cascade'), group_id: references('groups', 'cascade') },
    { primaryKey: ['saved_view_id', 'group_id'], indexes: [['group_id']] },
  )
}
