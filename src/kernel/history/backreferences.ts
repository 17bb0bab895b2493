// Raises the versions of records that refer to a deleted or restored record.
// Foreign keys tell which tables refer to the record. The contract tells whether replies show the
// reference. Referring records get no event: the event of the deletion or restore covers them.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { isIn } from '../../../db/long-lists.ts'
import { componentOf } from '../../contract/input/open-schema.ts'
import { type Context, now } from '../context.ts'
import { deleteByKeyInSlices, deleteInSlices, updateInSlices } from '../write/row-slices.ts'
import { chunks, type Pointer, primaryKey, relationsOf } from './archive.ts'

interface Spot {
  table: string
  id: number
}

/**
 * Raises the versions of all records that refer to one record, except those in `except`, which this
 * write changes anyway. A reference is a column or a row of a link table such as `quote_items`.
 * Must be called while the references exist.
 */
export async function bumpReferrers(
  ctx: Context,
  { entity, table, id }: Spot & { entity: string },
  except: readonly Spot[] = [],
): Promise<void> {
  const { foreignKeys, columns } = await relationsOf(ctx)
  const found = new Map<string, RawBuilder<SqlBool>[]>()
  const add = (table: string, condition: RawBuilder<SqlBool>): void => {
    if (columns.get(table)?.has('version')) found.set(table, [...(found.get(table) ?? []), condition])
  }
  for (const { table: child, column, onDelete } of foreignKeys.filter((key) => key.parent === table)) {
    const refers = sql<SqlBool>`${sql.ref(column)} = ${id}`
    if (onDelete === 'set null') add(child, refers)
    if (onDelete === 'restrict' || columns.get(child)?.has('version')) continue
    // A table without a version column, such as `quote_items`, contains child rows. The version of
    // their parent record is raised instead.
    for (const key of foreignKeys.filter((each) => each.table === child && each.column !== column)) {
      if (key.onDelete === 'cascade' && shows(ctx, key.parent, entity, child))
        add(key.parent, sql<SqlBool>`id in (select ${sql.ref(key.column)} from ${sql.table(child)} where ${refers})`)
    }
  }
  for (const [other, conditions] of found) {
    const unchanged = [{ table, id }, ...except].flatMap((each) => (each.table === other ? [each.id] : []))
    const others = unchanged.length === 0 ? sql`` : sql` and not ${isIn(sql.ref('id'), unchanged)}`
    const where = sql<SqlBool>`(${sql.join(conditions, sql` or `)})${others}`
    await updateInSlices(ctx, { table: other, where }, sql`version = version + 1, updated_at = ${now(ctx)}`)
  }
}

/**
 * Does what the foreign keys would do in the statement that deletes the record: sets references to
 * null and deletes child rows.
 */
export async function detachReferrers(ctx: Context, { table, id }: Spot): Promise<void> {
  const relations = await relationsOf(ctx)
  for (const { table: child, column, onDelete } of relations.foreignKeys.filter((key) => key.parent === table)) {
    const rows = { table: child, where: sql<SqlBool>`${sql.ref(column)} = ${id}` }
    if (onDelete === 'set null') await updateInSlices(ctx, rows, sql`${sql.ref(column)} = null`)
    if (onDelete !== 'cascade') continue
    if (relations.columns.get(child)?.has('id')) await deleteInSlices(ctx, rows)
    else await deleteByKeyInSlices(ctx, { ...rows, key: primaryKey(relations, child) })
  }
}

/**
 * Restores references that the deletion set to null. Skips a reference that was set again since.
 * Returns the references of rows that do not exist.
 */
export async function relink(ctx: Context, pointers: readonly Pointer[]): Promise<Pointer[]> {
  const missing: Pointer[] = []
  for (const pointer of pointers) {
    const { table, column, to, ids, owners } = pointer
    const present = new Set<number>()
    for (const part of chunks(ids, 100)) {
      const among = sql`id in (${sql.join(part)})`
      await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${to}
        where ${among} and ${sql.ref(column)} is null`.execute(ctx.db)
      const found = sql<{ id: number }>`select id from ${sql.table(table)} where ${among}`
      for (const { id } of (await found.execute(ctx.db)).rows) present.add(id)
    }
    const absent = [...ids.keys()].filter((index) => !present.has(ids[index] ?? 0))
    if (absent.length === 0) continue
    const pick = (values: readonly number[]): number[] => absent.map((index) => values[index] ?? 0)
    missing.push({ ...pointer, ids: pick(ids), ...(owners && { owners: { ...owners, ids: pick(owners.ids) } }) })
  }
  return missing
}

/**
 * Returns whether replies with records of `table` contain records of `entity`. For example, a lead
 * contains its tags, but a tag does not contain its leads.
 */
function shows(ctx: Context, table: string, entity: string, between: string): boolean {
  const names = namesIn(ctx, table)
  return names.some((name) => name === entity || name === between || between.endsWith(`_${name}`))
}

interface Part {
  $ref?: string
  properties?: Record<string, Part>
}

function namesIn({ services }: Context, table: string): string[] {
  const resource = [...services.resources.values()].find((each) => each.table === table)
  const document = services.contract as {
    paths: Record<string, { get?: { responses: Record<string, { content?: Record<string, { schema: Part }> }> } }>
  }
  const open = (part: Part | undefined): Part | undefined =>
    part?.$ref === undefined ? part : open(componentOf(document, part.$ref) as Part)
  const reply =
    document.paths[resource?.getOperation.path ?? '']?.get?.responses['200']?.content?.['application/json']?.schema
  return Object.keys(open(open(reply)?.properties?.data)?.properties ?? {})
}
