// References inside stored rules: a workflow, a campaign or a form names other records in JSON or
// in a text, where no foreign key protects them. Every save of such a record writes its references
// to the table `stored_references`, and every deletion asks this table once.
import { type Context, canCall } from '../context.ts'
import { inUse } from '../errors.ts'
import { chunks } from './archive.ts'

export interface NamedRecord {
  entity: string
  id: number
}

/** A record that a stored rule names. `field` is the field of the rule that contains the name. */
export interface StoredReference extends NamedRecord {
  field: string
}

/** The largest number of conflicts that a problem lists. */
const maxConflicts = 20

/**
 * Replaces the stored references of one record. The caller must be in the transaction of its save.
 */
export async function saveStoredReferences(
  { db }: Pick<Context, 'db'>,
  { entity, id }: { entity: string; id: number },
  found: readonly StoredReference[],
): Promise<void> {
  await db.deleteFrom('stored_references').where('from_type', '=', entity).where('from_id', '=', id).execute()
  const rows = new Map(
    found.map((each) => [
      `${each.field} ${each.entity} ${each.id}`,
      { from_type: entity, from_id: id, field: each.field, to_type: each.entity, to_id: each.id },
    ]),
  )
  for (const part of chunks([...rows.values()])) await db.insertInto('stored_references').values(part).execute()
}

/**
 * Throws 409 `in_use` with the records whose stored rules name one of the records. A conflict has
 * no id when the caller may not read the record that refers.
 */
export async function refuseNamed(
  ctx: Context,
  { entity, ids, called }: { entity: string; ids: readonly number[]; called: string },
): Promise<void> {
  if (ids.length === 0) return
  const rows = await ctx.db
    .selectFrom('stored_references')
    .select(['from_type', 'from_id', 'field'])
    .distinct()
    .where('to_type', '=', entity)
    .where('to_id', 'in', [...ids])
    .orderBy('from_type')
    .orderBy('from_id')
    .orderBy('field')
    .limit(maxConflicts)
    .execute()
  if (rows.length === 0) return
  const readable = await readableIds(ctx, rows)
  const conflicts = rows.map(({ from_type, from_id, field }) => ({
    entity_type: from_type,
    id: readable.get(from_type)?.has(from_id) ? from_id : null,
    field,
  }))
  const kinds = [...new Set(rows.map(({ from_type }) => from_type.replaceAll('-', ' ')))]
  throw inUse(`${called} is named by ${kinds.join(', ')}; change or delete these first.`, conflicts)
}

/** Returns the records whose stored rules name a record. */
export async function rulesNaming({ db }: Pick<Context, 'db'>, { entity, id }: NamedRecord): Promise<NamedRecord[]> {
  const rows = await db
    .selectFrom('stored_references')
    .select(['from_type', 'from_id'])
    .distinct()
    .where('to_type', '=', entity)
    .where('to_id', '=', id)
    .orderBy('from_type')
    .orderBy('from_id')
    .execute()
  return rows.map(({ from_type, from_id }) => ({ entity: from_type, id: from_id }))
}

/** Returns the ids that the caller may read, by entity. */
async function readableIds(
  ctx: Context,
  rows: readonly { from_type: string; from_id: number }[],
): Promise<Map<string, ReadonlySet<number>>> {
  const found = new Map<string, ReadonlySet<number>>()
  for (const entity of new Set(rows.map(({ from_type }) => from_type))) {
    const resource = ctx.services.resources.get(entity)
    if (!resource || !canCall(ctx, resource.getOperation)) continue
    const ids = rows.filter(({ from_type }) => from_type === entity).map(({ from_id }) => from_id)
    found.set(entity, await resource.visibleIds(ctx, ids))
  }
  return found
}
