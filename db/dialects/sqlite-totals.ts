// Counts and sums of a table in another one, by triggers: whatever changes the rows, also a deletion elsewhere, changes the totals
// in the same transaction.

import { type Kysely, sql } from 'kysely'
import type { Totals } from './dialect.ts'

/** What money is scaled by. */
const scale = 10_000

export async function keepSqliteTotals(db: Kysely<unknown>, { table, of, by, sum }: Totals): Promise<void> {
  const keys = Object.keys(by).join(', ')
  const values = (row: string): string =>
    Object.values(by)
      .map((column) => `coalesce(${row}${column}, 0)`)
      .join(', ')
  const amounts = (row: string): string => `${row}${sum} / ${scale}, ${row}${sum} % ${scale}`
  const here = (row: string): string => `(${keys}) = (${values(row)})`
  const add = `insert into ${table} (${keys}, count, units, parts) values (${values('new.')}, 1, ${amounts('new.')})
    on conflict (${keys}) do update set count = count + 1, units = units + excluded.units, parts = parts + excluded.parts;`
  const remove = `update ${table} set (count, units, parts) = (count - 1, units - old.${sum} / ${scale}, parts - old.${sum} % ${scale}) where ${here('old.')};
    delete from ${table} where ${here('old.')} and count = 0;`
  const watched = [...Object.values(by), sum]
  const changed = watched.map((column) => `old.${column} is not new.${column}`).join(' or ')
  const statements = [
    `insert into ${table} (${keys}, count, units, parts) select ${values('')}, count(*), sum(${sum} / ${scale}), sum(${sum} % ${scale}) from ${of} where true group by ${values('')}`,
    `create trigger ${table}_insert after insert on ${of} begin ${add} end`,
    `create trigger ${table}_delete after delete on ${of} begin ${remove} end`,
    `create trigger ${table}_update after update of ${watched.join(', ')} on ${of} when ${changed} begin ${remove} ${add} end`,
  ]
  for (const statement of statements) await sql.raw(statement).execute(db)
}
