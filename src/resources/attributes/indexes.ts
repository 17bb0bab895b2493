// Creates and drops the database indexes of custom attributes that lists can filter by. Texts and
// contact points have no index. A filter finds unique texts and contact points in the table
// unique_values and scans all records for the others.
import { sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import type { Attribute } from './attribute-set.ts'
import { valueTypeOf } from './types.ts'

type Indexed = Pick<Attribute, 'id' | 'entity' | 'code' | 'type'>

const nameOf = ({ id, entity }: Indexed): string => `${entity}_attribute_${id}_index`

export async function createAttributeIndex({ db, services }: Context, attribute: Indexed): Promise<void> {
  const { code, entity } = attribute
  const value = valueTypeOf(attribute)?.indexed?.({
    dialect: services.store.dialect,
    column: 'custom_attributes',
    code,
  })
  if (value === undefined) return
  const name = sql.ref(nameOf(attribute))
  // The index is partial: most records have no value, and no filter looks for records without a
  // value.
  await sql`create index if not exists ${name} on ${sql.table(entity)} ((${value}), id) where (${value}) is not null`.execute(
    db,
  )
}

export const dropAttributeIndex = async ({ db }: Context, attribute: Indexed): Promise<void> =>
  void (await sql`drop index if exists ${sql.ref(nameOf(attribute))}`.execute(db))
