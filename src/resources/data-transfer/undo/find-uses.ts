// Finds the records that refer to a record by foreign keys: leads, quotes, e-mails and so on.
import { sql } from 'kysely'
import type { ForeignKey, Relations } from '../../../../db/dialect.ts'
import type { Context } from '../../../kernel/context.ts'
import { relationsOf } from '../../../kernel/history/archive.ts'

/** Returns the names of the tables with references to the record, such as `leads`. */
export async function findUses(ctx: Context, table: string, id: number): Promise<string[]> {
  const relations = await relationsOf(ctx)
  const keys = relations.foreignKeys.filter((key) => key.parent === table && !isOwnRow(ctx, relations, key))
  if (keys.length === 0) return []
  const queries = keys.map(
    (key) => sql`select ${userOf(ctx, relations, key)} as name
      where exists (select 1 from ${sql.table(key.table)} where ${sql.ref(key.column)} = ${id})`,
  )
  const { rows } = await sql<{ name: string }>`${sql.join(queries, sql` union `)} order by 1`.execute(ctx.db)
  return rows.map(({ name }) => name)
}

const isLink = ({ onDelete, isNullable }: ForeignKey): boolean => onDelete === 'cascade' && !isNullable

const otherEnd = ({ foreignKeys }: Relations, key: ForeignKey): ForeignKey | undefined =>
  foreignKeys.find((other) => other.table === key.table && other !== key && isLink(other))

/** Whether the rows of a table are parts of the record: its child rows, and its links to tags. */
function isOwnRow(ctx: Context, relations: Relations, key: ForeignKey): boolean {
  if (!isLink(key) || hasRecords(ctx, key)) return false
  const other = otherEnd(relations, key)
  return other === undefined || (other.parent === 'tags' && key.parent !== 'tags')
}

/** Returns the table of the records with the reference. For a child row, this is its parent's. */
const userOf = (ctx: Context, relations: Relations, key: ForeignKey): string =>
  (hasRecords(ctx, key) ? undefined : otherEnd(relations, key)?.parent) ?? key.table

const hasRecords = ({ services }: Context, { table }: ForeignKey): boolean =>
  [...services.resources.values()].some((each) => each.table === table)
