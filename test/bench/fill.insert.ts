// Computes the number of records of each kind for N leads, and inserts rows fast: one prepared
// statement per table, many rows per transaction.
import type { Database } from 'better-sqlite3'

/** How many records hang on leads. `more` is a team that writes down everything it does. */
export type Density = 'some' | 'more'

export const sizes = (leads: number, density: Density) => ({
  density,
  users: 10,
  tags: 20,
  products: 200,
  organizations: Math.ceil(leads / 10),
  persons: Math.ceil(leads / 2),
  leads,
  activities: density === 'more' ? 2 * leads : Math.floor(leads / 2),
  emails: density === 'more' ? leads : Math.floor(leads / 5),
  quotes: Math.floor(leads / 10),
})

export type Many = ReturnType<typeof sizes>

type Value = string | number | null
type Row = Record<string, Value>

/**
 * Returns a function that inserts rows into a table with a prepared statement. All rows must have
 * the same columns.
 */
export function inserter(database: Database, table: string): (row: Row) => void {
  let run: ((values: Value[]) => unknown) | undefined
  return (row) => {
    if (!run) {
      const names = Object.keys(row)
      const columns = names.map((name) => `"${name}"`).join(', ')
      const statement = database.prepare(
        `insert into ${table} (${columns}) values (${names.map(() => '?').join(', ')})`,
      )
      run = (values) => statement.run(values)
    }
    run(Object.values(row))
  }
}

export type Into = (table: string) => (row: Row) => void

export const born = (at: string) => ({ created_at: at, updated_at: at })
export const addressOf = (index: number): string =>
  JSON.stringify({
    address: `${index} Main St`,
    country: 'US',
    state: 'TX',
    city: 'Austin',
    postcode: `${10_000 + index}`,
  })

const part = 100_000

/** Calls `write` for each record, in transactions of many records. */
export function inParts(database: Database, total: number, write: (index: number) => void): void {
  for (let from = 0; from < total; from += part) {
    database.transaction(() => {
      for (let index = from; index < Math.min(total, from + part); index++) write(index)
    })()
  }
}
