// Creates and drops the database indexes of custom attributes, for filters and the order of lists.
// Long texts and contact points have no index. Filters look up unique values in the table
// unique_values, and scan all records for other long texts and contact points.
import { sql } from 'kysely'
import type { Dialect } from '../../../db/dialect.ts'
import type { Db } from '../../../db/store.ts'
import type { Context } from '../../kernel/context.ts'
import { type Attribute, toAttribute } from './attribute-set.ts'
import { valueTypeOf } from './types.ts'

type Indexed = Pick<Attribute, 'id' | 'entity' | 'code' | 'type'>

const nameOf = ({ id, entity }: Indexed): string => `${entity}_attribute_${id}_index`

export const createAttributeIndex = ({ db, services }: Context, attribute: Indexed): Promise<void> =>
  createIndexOf(db, services.store.dialect, attribute)

/** Creates the missing indexes of all custom attributes after a database was copied. */
export async function createAllIndexes(db: Db, dialect: Dialect): Promise<void> {
  const rows = await db.selectFrom('attributes').selectAll().where('is_user_defined', '=', 1).execute()
  for (const row of rows) await createIndexOf(db, dialect, toAttribute(row, []))
}

async function createIndexOf(db: Db, dialect: Dialect, attribute: Indexed): Promise<void> {
  const { code, entity } = attribute
  const value = valueTypeOf(attribute)?.indexed?.({ dialect, column: 'custom_attributes', code })
  if (value === undefined) return
  const name = sql.ref(nameOf(attribute))
  // The index is partial, because most records have no value and filters never search for a missing
  // value.
  await sql`create index if not exists ${name} on ${sql.table(entity)} ((${value}), id) where (${value}) is not null`.execute(
    db,
  )
}

export const dropAttributeIndex = async ({ db }: Context, attribute: Indexed): Promise<void> =>
  void (await sql`drop index if exists ${sql.ref(nameOf(attribute))}`.execute(db))
