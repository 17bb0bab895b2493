// Telephone numbers are no longer unique and are compared by their digits. Creates an index that
// finds persons by number. E-mail addresses of a person become optional.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, references, text } from '../schema/columns.ts'

const atOnce = 500

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
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
  await fill(db)
  const [no, yes] = [false, true].map((value) => sql.raw(dialect.flagLiteral(value)))
  const builtIn = sql`code = 'contact_numbers' and is_user_defined = ${no}`
  await sql`delete from unique_values where attribute_id in (select id from attributes where ${builtIn})`.execute(db)
  await sql`update attributes set is_unique = ${no}, version = version + 1
    where ${builtIn} and is_unique = ${yes}`.execute(db)
  await sql`update attributes set is_required = ${no}, version = version + 1
    where code = 'emails' and entity_type = 'persons' and is_user_defined = ${no} and is_required = ${yes}`.execute(db)
  await dropSigns(db)
}

async function fill(db: Kysely<unknown>): Promise<void> {
  for (let last = 0; ; ) {
    const { rows } = await sql<{ id: number; contact_numbers: string }>`select id, contact_numbers from persons
      where id > ${last} order by id limit ${atOnce}`.execute(db)
    for (const { id, contact_numbers } of rows) {
      const points = JSON.parse(contact_numbers) as { value?: unknown }[]
      for (const number of new Set(points.map(({ value }) => digitsOf(value))))
        if (number !== '')
          await sql`insert into person_numbers (number, person_id) values (${number}, ${id})`.execute(db)
    }
    if (rows.length < atOnce) return
    last = rows.at(-1)?.id ?? 0
  }
}

/**
 * Unique values of telephone attributes had a leading +. If two records have the same digits, the
 * record without the + keeps its unique value. The other record keeps its number until it is
 * changed.
 */
async function dropSigns(db: Kysely<unknown>): Promise<void> {
  const signed = sql`value like '+%' and attribute_id in (select id from attributes where type = 'phone')`
  await sql`insert into unique_values (entity_type, attribute_id, value, entity_id)
    select entity_type, attribute_id, substr(value, 2), entity_id from unique_values where ${signed}
    on conflict do nothing`.execute(db)
  await sql`delete from unique_values where ${signed}`.execute(db)
}

const digitsOf = (value: unknown): string => (typeof value === 'string' ? value.replace(/\D/g, '') : '')
