// Moves all references from one record to another, for a merge, and back. The foreign keys tell
// which tables refer to the record, so that a new table needs no code.
import { type SqlBool, sql } from 'kysely'
import type { ForeignKey, Relations } from '../../../db/dialect.ts'
import { type Context, now } from '../context.ts'
import { updateInSlices } from '../write/row-slices.ts'
import { type ArchivedRow, chunks, primaryKey, type Row, relationsOf, rowsBy } from './archive.ts'

/** The references in a column that a merge has moved. */
export interface Moved {
  table: string
  column: string
  /** The ids of the rows; absent for a table without ids. */
  ids?: number[]
  /** The rows of a table without ids, without the column. */
  links?: Row[]
}

interface Way {
  table: string
  from: number
  to: number
  /** The tables whose rows are computed from the record. The merge recomputes them. */
  derived: ReadonlySet<string>
}

/**
 * Moves the references to the record `from` to the record `to` and returns them. A row that the
 * other record has too, such as a tag, stays.
 */
export async function moveReferences(ctx: Context, { table, from, to, derived }: Way): Promise<Moved[]> {
  const relations = await relationsOf(ctx)
  const found: Moved[] = []
  for (const key of relations.foreignKeys.filter((each) => each.parent === table && !derived.has(each.table))) {
    const free = await freeRows(ctx, relations, key, { from, to })
    if (free.length === 0) continue
    const { table: child, column } = key
    if (relations.columns.get(child)?.has('id')) {
      const ids = free.map(({ id }) => Number(id))
      await point(ctx, relations, key, { ids, from, to })
      found.push({ table: child, column, ids })
    } else {
      for (const row of free)
        await sql`update ${sql.table(child)} set ${sql.ref(column)} = ${to} where ${same({ ...row, [column]: from })}`.execute(
          ctx.db,
        )
      found.push({ table: child, column, links: free })
    }
  }
  return found
}

/** Returns the rows of `from` that do not repeat a row of `to`, without the column of the key. */
async function freeRows(
  ctx: Context,
  relations: Relations,
  { table, column }: ForeignKey,
  { from, to }: { from: number; to: number },
): Promise<Row[]> {
  const unique = relations.uniqueKeys.filter((key) => key.table === table && key.columns.includes(column))
  const hasId = relations.columns.get(table)?.has('id')
  const keys = unique.map(({ columns }) => columns.filter((each) => each !== column))
  const columns = hasId ? [...new Set(['id', ...keys.flat()])] : 'all'
  const own = (await rowsBy(ctx, relations, columns, { table, column, values: [from] })).map((row) => {
    const { [column]: _moved, ...rest } = row
    return rest
  })
  if (own.length === 0 || keys.length === 0) return own
  const texts = (row: Row): string[] =>
    keys.flatMap((key) => (key.some((each) => row[each] === null) ? [] : JSON.stringify(key.map((each) => row[each]))))
  const theirs = await rowsBy(ctx, relations, columns, { table, column, values: [to] })
  const taken = new Set(theirs.flatMap(texts))
  return own.filter((row) => !texts(row).some((text) => taken.has(text)))
}

const same = (row: Row) => {
  const tests = Object.entries(row).map(([column, value]) =>
    value === null ? sql`${sql.ref(column)} is null` : sql`${sql.ref(column)} = ${value}`,
  )
  return sql<SqlBool>`${sql.join(tests, sql` and `)}`
}

/**
 * Points rows to another record. Raises the versions of records that could not be without the
 * reference; `bumpReferrers` raises those of the others.
 */
async function point(
  ctx: Context,
  { columns }: Relations,
  { table, column, onDelete }: Pick<ForeignKey, 'table' | 'column' | 'onDelete'>,
  { ids, from, to }: { ids: readonly number[]; from: number; to: number },
): Promise<void> {
  const isShown = onDelete === 'restrict' && columns.get(table)?.has('version')
  const touch = isShown ? sql`, version = version + 1, updated_at = ${now(ctx)}` : sql``
  for (const part of chunks(ids)) {
    const where = sql<SqlBool>`id in (${sql.join(part)}) and ${sql.ref(column)} = ${from}`
    await updateInSlices(ctx, { table, where }, sql`${sql.ref(column)} = ${to}${touch}`)
  }
}

/** Something that was changed since the merge. */
export interface UnmergeConflict {
  type: string
  id: number | null
  field: string
}

/**
 * Takes the links from the record `to`, so that the other record can have them again. Returns what
 * was changed since: these links and rows are not to come back.
 */
export async function releaseLinks(
  ctx: Context,
  moved: readonly Moved[],
  to: number,
): Promise<{ conflicts: UnmergeConflict[]; isChanged: (row: ArchivedRow) => boolean }> {
  const relations = await relationsOf(ctx)
  const conflicts: UnmergeConflict[] = []
  const changed = new Set<string>()
  for (const each of moved) {
    const { table, column, ids = [], links = [] } = each
    const type = typeOfMoved(ctx, relations, each)
    const other = otherEnd(relations, each)
    for (const link of links) {
      const where = same({ ...link, [column]: to })
      const { numAffectedRows = 0n } = await sql`delete from ${sql.table(table)} where ${where}`.execute(ctx.db)
      if (numAffectedRows > 0n) continue
      changed.add(nameOf(relations, each, link))
      conflicts.push({ type, id: other === undefined ? null : Number(link[other]), field: column })
    }
    const present = new Set<number>()
    for (const part of chunks(ids)) {
      const { rows } = await sql<{ id: number }>`select id from ${sql.table(table)}
        where id in (${sql.join(part)}) and ${sql.ref(column)} = ${to}`.execute(ctx.db)
      for (const { id } of rows) present.add(id)
    }
    for (const id of ids.filter((one) => !present.has(one))) {
      changed.add(nameOf(relations, each, { id }))
      conflicts.push({ type, id: other === undefined ? id : null, field: column })
    }
  }
  const isChanged = ({ table, row }: ArchivedRow): boolean =>
    moved.some((each) => each.table === table && changed.has(nameOf(relations, each, row)))
  return { conflicts, isChanged }
}

/** Moves the rows with ids back, except those that were changed since. */
export async function moveBack(ctx: Context, moved: readonly Moved[], from: number, to: number): Promise<void> {
  const relations = await relationsOf(ctx)
  for (const { table, column, ids = [] } of moved) {
    const key = relations.foreignKeys.find((each) => each.table === table && each.column === column)
    if (key) await point(ctx, relations, key, { ids, from, to })
  }
}

/** Returns the name of a row by its primary key, without the reference that a merge changes. */
const nameOf = (relations: Relations, { table, column }: Moved, row: Row): string =>
  JSON.stringify([table, ...primaryKey(relations, table).map((each) => (each === column ? null : row[each]))])

/** Returns the column with the record at the other end of a link. */
const otherEnd = ({ foreignKeys }: Relations, { table, column }: Moved): string | undefined =>
  foreignKeys.find((key) => key.table === table && key.column !== column && key.onDelete === 'cascade')?.column

/** Returns the type of the records that refer by the rows: for a link, that of its other end. */
export function typeOfMoved({ services }: Context, relations: Relations, moved: Moved): string {
  const entities = new Map([...services.resources.values()].map((each) => [each.table as string, each.entity]))
  const other = otherEnd(relations, moved)
  const end = relations.foreignKeys.find((key) => key.table === moved.table && key.column === other)
  return entities.get(moved.table) ?? entities.get(end?.parent ?? '') ?? moved.table
}
