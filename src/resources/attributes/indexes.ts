// An attribute that lists are filtered by gets an index of its value in the JSON column, for as long as it exists. Texts and
// contact points have none: those that must be unique are found through unique_values, the others by looking.
import { sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import type { Attribute } from './set.ts'
import { typeOf } from './types.ts'

type Indexed = Pick<Attribute, 'id' | 'entity' | 'code' | 'type'>

const nameOf = ({ id, entity }: Indexed): string => `${entity}_attribute_${id}_index`

export async function createIndex({ db, services }: Context, attribute: Indexed): Promise<void> {
  const { code, entity } = attribute
  const value = typeOf(attribute)?.indexed?.({ dialect: services.store.dialect, column: 'custom_attributes', code })
  if (value === undefined) return
  const name = sql.ref(nameOf(attribute))
  // Records without a value are left out: most have none, and no filter looks for them.
  await sql`create index if not exists ${name} on ${sql.table(entity)} ((${value}), id) where (${value}) is not null`.execute(
    db,
  )
}

export const dropIndex = async ({ db }: Context, attribute: Indexed): Promise<void> =>
  void (await sql`drop index if exists ${sql.ref(nameOf(attribute))}`.execute(db))
