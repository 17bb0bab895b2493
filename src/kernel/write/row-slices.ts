// Reads, changes and deletes many rows of a table in time slices, after one statement that finds
// their ids. One statement for 40,000 whole rows would block the event loop on SQLite for 0.1 to
// 1 s. All slices run in the transaction of the caller.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { isIn } from '../../../db/long-lists.ts'
import type { Context } from '../context.ts'
import { adaptiveBatches, yieldIfDue } from '../runtime/cooperative.ts'

/** Rows of a table with a column `id`. */
export interface SlicedRows {
  table: string
  where: RawBuilder<SqlBool>
}

/** Calls `work` with a condition for each part of the rows, in the order of their ids. */
async function eachSlice(
  { db }: Context,
  { table, where }: SlicedRows,
  work: (isPart: RawBuilder<SqlBool>) => Promise<unknown>,
  most = Number.MAX_SAFE_INTEGER,
): Promise<void> {
  const { rows } = await sql<{ id: number }>`select id from ${sql.table(table)}
    where ${where} order by id limit ${most}`.execute(db)
  const sizes = adaptiveBatches(50, 2000, 200)
  for (let done = 0; done < rows.length; ) {
    const part = rows.slice(done, done + sizes.size()).map(({ id }) => id)
    await sizes.run(part.length, () => work(isIn(sql.ref('id'), part)))
    done += part.length
    await yieldIfDue()
  }
}

/** Reads the columns of all rows, or of the first `most`, in the order of their ids. */
export async function readInSlices<Row>(
  ctx: Context,
  rows: SlicedRows,
  columns: RawBuilder<unknown>,
  most?: number,
): Promise<Row[]> {
  const found: Row[] = []
  const read = async (isPart: RawBuilder<SqlBool>): Promise<void> => {
    const part = sql<Row>`select ${columns} from ${sql.table(rows.table)} where ${isPart} order by id`
    found.push(...(await part.execute(ctx.db)).rows)
  }
  await eachSlice(ctx, rows, read, most)
  return found
}

/** Updates all rows. `set` is the list of assignments. */
export const updateInSlices = (ctx: Context, rows: SlicedRows, set: RawBuilder<unknown>): Promise<void> =>
  eachSlice(ctx, rows, (isPart) => sql`update ${sql.table(rows.table)} set ${set} where ${isPart}`.execute(ctx.db))

/** Deletes all rows. */
export const deleteInSlices = (ctx: Context, rows: SlicedRows): Promise<void> =>
  eachSlice(ctx, rows, (isPart) => sql`delete from ${sql.table(rows.table)} where ${isPart}`.execute(ctx.db))
