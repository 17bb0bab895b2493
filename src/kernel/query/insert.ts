// Inserts rows. The statement of an insert is cached by its table and columns.
import type { Compilable } from 'kysely'
import { perEngine, runCached } from '../../../db/cached-query.ts'
import type { Context } from '../context.ts'

const statementsOf = perEngine(500)

/** Inserts a row and returns its id. Omits columns whose value is undefined. */
export async function insert(ctx: Context, table: string, row: Readonly<Record<string, unknown>>): Promise<number> {
  const columns = Object.keys(row).filter((column) => row[column] !== undefined)
  const { returnsInsertId } = ctx.services.store.dialect
  const build = (): Compilable<{ id: number }> => {
    const insertion = ctx.db.insertInto(table as never).values(row as never)
    return (returnsInsertId ? insertion : insertion.returning('id' as never)) as Compilable<{ id: number }>
  }
  const place = { statements: statementsOf(ctx.db), key: `${table} ${columns}` }
  const values = columns.map((column) => row[column])
  const { rows, insertId } = await runCached(ctx.db, place, values, build)
  const id = returnsInsertId ? insertId : rows[0]?.id
  if (id === undefined) throw new Error(`No row was added to ${table}.`)
  return Number(id)
}
