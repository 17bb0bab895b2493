// Reads and writes the rows of a resource's table by id, without visibility, joins or events.
import { type Kysely, sql } from 'kysely'
import type { DB as Tables } from '../../../db/tables.gen.ts'
import { type Context, now } from '../context.ts'

type Columns = Record<string, unknown>

/** Returns the database with a type that accepts table names known only at run time. */
const anyTable = ({ db }: Context): Kysely<Record<string, Columns>> => db as unknown as Kysely<Record<string, Columns>>

export interface TableRows {
  exists(ctx: Context, id: number): Promise<boolean>
  read(ctx: Context, id: number): Promise<Columns>
  /** Sets the values in `columns`, raises the version of the row and sets `updated_at`. */
  update(ctx: Context, id: number, columns: Columns): Promise<void>
  delete(ctx: Context, id: number): Promise<void>
  /** Raises the version of the row and sets `updated_at`. */
  touch(ctx: Context, id: number): Promise<void>
}

export const tableRows = (table: keyof Tables): TableRows => ({
  exists: async (ctx, id) =>
    (await anyTable(ctx).selectFrom(table).select('id').where('id', '=', id).executeTakeFirst()) !== undefined,

  read: (ctx, id) => anyTable(ctx).selectFrom(table).selectAll().where('id', '=', id).executeTakeFirstOrThrow(),

  async update(ctx, id, columns) {
    await anyTable(ctx)
      .updateTable(table)
      .set({ ...columns, version: sql`version + 1`, updated_at: now(ctx) })
      .where('id', '=', id)
      .execute()
  },

  async delete(ctx, id) {
    await anyTable(ctx).deleteFrom(table).where('id', '=', id).execute()
  },

  async touch(ctx, id) {
    await anyTable(ctx)
      .updateTable(table)
      .set({ version: sql`version + 1`, updated_at: now(ctx) })
      .where('id', '=', id)
      .execute()
  },
})
