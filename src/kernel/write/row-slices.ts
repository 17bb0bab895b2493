// Reads, changes and deletes many rows of a table in time slices, after their ids are found. One
// statement for 40,000 whole rows would block the event loop on SQLite for 0.1 to 1 s. All slices
// run in the transaction of the caller.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { isIn } from '../../../db/long-lists.ts'
import type { Context } from '../context.ts'
import { adaptiveBatches, yieldIfDue } from '../runtime/cooperative.ts'

/** Rows of a table with a column `id`. */
export interface SlicedRows {
  table: string
  where: RawBuilder<SqlBool>
  /**
   * Whether no index finds the rows. Their ids are then found in time slices, too, because one
   * statement would read the whole table.
   */
  isScan?: boolean
}

/** Returns the ids of the rows, or of the first `most`, in ascending order. */
async function idsOf({ db }: Context, { table, where, isScan = false }: SlicedRows, most: number): Promise<number[]> {
  const select = async (isIn: RawBuilder<SqlBool>, limit: number): Promise<number[]> => {
    const found = sql<{ id: number }>`select id from ${sql.table(table)} where ${isIn} order by id limit ${limit}`
    return (await found.execute(db)).rows.map(({ id }) => id)
  }
  if (!isScan) return select(where, most)
  const { rows } = await sql<{ last: number | null }>`select max(id) as last from ${sql.table(table)}`.execute(db)
  const last = rows[0]?.last ?? 0
  const found: number[] = []
  const sizes = adaptiveBatches(500, 10_000, 1000)
  for (let after = 0; after < last && found.length < most; ) {
    const until = after + sizes.size()
    const isPart = sql<SqlBool>`id > ${after} and id <= ${until} and (${where})`
    found.push(...(await sizes.run(until - after, () => select(isPart, most - found.length))))
    after = until
    await yieldIfDue()
  }
  return found
}

/** Calls `work` with a condition for each part of the rows, in the order of their ids. */
async function eachSlice(
  ctx: Context,
  rows: SlicedRows,
  work: (isPart: RawBuilder<SqlBool>) => Promise<unknown>,
  most = Number.MAX_SAFE_INTEGER,
): Promise<void> {
  const ids = await idsOf(ctx, rows, most)
  const sizes = adaptiveBatches(50, 2000, 200)
  for (let done = 0; done < ids.length; ) {
    const part = ids.slice(done, done + sizes.size())
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

/** Deletes all rows of a table without a column `id`. `key` is its primary key. */
export async function deleteByKeyInSlices(
  { db }: Context,
  { table, where, key }: Omit<SlicedRows, 'isScan'> & { key: readonly string[] },
): Promise<void> {
  const names = sql.join(key.map((column) => sql.ref(column)))
  const sizes = adaptiveBatches(50, 2000, 200)
  for (;;) {
    const size = sizes.size()
    const part = sql`select ${names} from ${sql.table(table)} where ${where} limit ${size}`
    const { numAffectedRows = 0n } = await sizes.run(size, () =>
      sql`delete from ${sql.table(table)} where (${names}) in (${part})`.execute(db),
    )
    if (numAffectedRows < size) return
    await yieldIfDue()
  }
}
