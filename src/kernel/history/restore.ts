// Restores a deleted record and its child rows from its archive, with their former ids. A
// reference to a record that no longer exists is dropped: it becomes null, or its child row is
// omitted. The reply lists dropped references in `meta.dropped`. If the other record is restored
// later, the reference is set then (owed-references.ts).
import { sql } from 'kysely'
import type { ForeignKey, Relations } from '../../../db/dialect.ts'
import type { EventBase } from '../../contract/types.ts'
import { type Context, now } from '../context.ts'
import { Problem, ValidationErrors } from '../errors.ts'
import { withoutVisibility } from '../query/visibility.ts'
import type { Changed, Dropped, OnRestore, Resource, Restored } from '../resource/definition.ts'
import { capital } from '../values/format.ts'
import { checkIfMatch } from '../write/etag.ts'
import type { Snapshot } from '../write/events.ts'
import { emitOnly, transaction, write } from '../write/write.ts'
import {
  type Archived,
  type ArchivedRow,
  chunks,
  lastArchive,
  pointerOf,
  type Row,
  relationsOf,
  restoreDays,
  wasArchiveSeen,
} from './archive.ts'
import { bumpReferrers, relink } from './backreferences.ts'
import { createOwedReferences, type OwedReferences } from './owed-references.ts'

/** The maximum number of records that a restore brings back at once. A job restores more. */
const maxAtOnce = 200

interface About<Reply> {
  resource: Omit<Resource<Reply, never>, 'restore'>
  id: number
  onRestore: OnRestore | undefined
  onChange: ((ctx: Context, id: number, change: Changed<Reply>) => Promise<void>) | undefined
  /**
   * Returns the API representation of the restored record, even if its owner is not visible to the
   * caller.
   */
  written: (ctx: Context) => Promise<Reply>
}

/**
 * Restores a record. Throws 404 when there is no archive that the caller may restore. Throws 409
 * `state_conflict` when the record exists or requires a record that no longer exists. Throws 409
 * `unique_violation` when another record has taken a unique value of the record.
 */
export async function restore<Reply>(ctx: Context, about: About<Reply>): Promise<Restored<Reply>> {
  const { resource, id } = about
  const { noun, entity, table } = resource
  return transaction(ctx, async (ctx) => {
    if (await resource.exists(ctx, id)) {
      await resource.assertVisible(ctx, id)
      throw new Problem('state_conflict', `The ${noun} ${id} exists; only what was deleted can be restored.`)
    }
    const kept = await lastArchive(ctx, entity, id)
    const isMerged = kept && (await resource.merges?.into(ctx, id)) != null
    if (!kept || !(await wasArchiveSeen(ctx, resource.sight.records, kept.id)))
      throw new Problem('not_found', `No ${noun} with id ${id} was deleted in the last ${restoreDays} days.`)
    if (isMerged)
      throw new Problem('state_conflict', `The ${noun} ${id} was merged into another one; take the merge back instead.`)
    const { version } = kept.rows[0]?.row ?? {}
    if (typeof version === 'number') checkIfMatch(ctx, version)
    const relations = await relationsOf(ctx)
    const dropped: Dropped[] = []
    await assertNotTaken(ctx, relations, about, kept)
    const owed = createOwedReferences(relations)
    const own = await repairRow(ctx, relations, about, kept, { dropped, owed })
    await write(ctx, resource.events.create, { entity, input: kept.snapshot, id, restored: true }, async (ctx) => {
      await insert(ctx, relations, { table, row: own })
      const { companions } = kept
      const brought = companions.length <= maxAtOnce ? await restoreCompanions(ctx, companions, dropped) : []
      if (companions.length > maxAtOnce) await ctx.services.slices.restoreLater(ctx, companions)
      await bringRows(ctx, relations, kept, { dropped, owed })
      for (const pointer of await relink(ctx, kept.pointers)) owed.addValues(pointer)
      await owed.store(ctx)
      await bumpReferrers(ctx, { entity, table, id }, brought)
      return { id, entity: (await about.written(ctx)) as Snapshot }
    })
    const data = await about.written(ctx)
    const event = resource.events.create.replace(/create$/, 'restore') as EventBase
    await emitOnly(ctx, event, { entity, id, shown: data as Snapshot, restored: true })
    await about.onChange?.(ctx, id, { after: data, isRestored: true })
    return { data, dropped }
  })
}

/** Returns the handler of `POST /…/{id}/restore`. */
export const restoreHandler =
  <Reply>({ restore, noun }: Pick<Resource<Reply, never>, 'restore' | 'noun'>) =>
  async (ctx: Context, { params }: { params: { id: number } }) => {
    const { data, dropped } = await restore(ctx, params.id)
    return { data, message: `${capital(noun)} restored.`, meta: { dropped } }
  }

/** Returns whether a foreign key of the row refers to a missing record. */
type IsMissing = (key: ForeignKey, row: Row) => boolean

const keysOf = ({ foreignKeys }: Relations, table: string): ForeignKey[] =>
  foreignKeys.filter((key) => key.table === table)

/**
 * Reads which referenced records exist, with one query per table. Returns a predicate for
 * references to missing records.
 */
async function goneFor(ctx: Context, relations: Relations, rows: readonly ArchivedRow[]): Promise<IsMissing> {
  const named = new Map<string, Set<number>>()
  for (const { table, row } of rows) {
    for (const { column, parent } of keysOf(relations, table)) {
      const id = row[column]
      if (typeof id === 'number') named.set(parent, (named.get(parent) ?? new Set()).add(id))
    }
  }
  const present = new Set<string>()
  for (const [table, ids] of named) {
    for (const part of chunks([...ids])) {
      const found = sql<{ id: number }>`select id from ${sql.table(table)} where id in (${sql.join(part)})`
      for (const { id } of (await found.execute(ctx.db)).rows) present.add(`${table} ${id}`)
    }
  }
  return ({ parent, column }, row) => row[column] != null && !present.has(`${parent} ${row[column]}`)
}

/**
 * Returns the name of a table in replies: the entity of its resource. For a table without a
 * resource, returns its last word, such as `stages` for `lead_pipeline_stages`.
 */
function entityOf({ services }: Context, table: string): string {
  for (const resource of services.resources.values()) if (resource.table === table) return resource.entity
  return table.split('_').at(-1) ?? table
}

/** Throws 409 with every unique value of the archived row that another record has taken since. */
async function assertNotTaken<Reply>(
  ctx: Context,
  relations: Relations,
  { resource: { table, entity, noun, visibleIds: seen } }: About<Reply>,
  { rows }: Archived,
): Promise<void> {
  const errors = new ValidationErrors()
  const taken = async (field: string, other: number): Promise<void> =>
    errors.taken(field, entity, (await seen(ctx, [other])).has(other) ? other : null, `Another ${noun} has this value.`)
  for (const archived of rows)
    for (const { columns, isPrimary } of relations.uniqueKeys.filter((key) => key.table === archived.table)) {
      const values = columns.map((column) => archived.row[column])
      if (isPrimary || values.some((value) => value == null)) continue
      // A child row names the record that has it.
      const id =
        archived.table === table
          ? 'id'
          : keysOf(relations, archived.table).find(({ parent }) => parent === table)?.column
      if (id === undefined || columns.includes(id)) continue
      const same = columns.map((column, index) => sql`${sql.ref(column)} = ${values[index]}`)
      // A row that a merge has moved to another record exists already.
      const isItself =
        archived.table !== table && typeof archived.row.id === 'number' ? sql` and id <> ${archived.row.id}` : sql``
      const other = sql<{ id: number }>`select ${sql.ref(id)} as id from ${sql.table(archived.table)}
        where ${sql.join(same, sql` and `)}${isItself}`
      for (const row of (await other.execute(ctx.db)).rows)
        await taken(columns.join('_').replace(/_key$/, ''), Number(row.id))
    }
  errors.throwIfAny()
}

/**
 * Returns the record's own row as it will be inserted: with the next version and without references
 * to missing records.
 */
async function repairRow<Reply>(
  ctx: Context,
  relations: Relations,
  { resource: { table, noun }, onRestore }: About<Reply>,
  { rows, snapshot }: Archived,
  { dropped, owed }: Losses,
): Promise<Row> {
  const row = rows[0]?.row ?? {}
  const isGone = await goneFor(ctx, relations, rows.slice(0, 1))
  const gone = keysOf(relations, table).filter((key) => isGone(key, row))
  for (const { column, parent } of gone)
    dropped.push({ entity_type: entityOf(ctx, parent), id: Number(row[column]), field: column })
  const vanished = new Set(gone.map(({ column }) => column))
  const replaced = (await onRestore?.(ctx, { row, snapshot, vanished, drop: (what) => dropped.push(what) })) ?? {}
  const repaired: Row = { ...row, ...Object.fromEntries(gone.map(({ column }) => [column, null])), ...replaced }
  for (const key of gone) {
    const { column, parent, isNullable } = key
    if (repaired[column] !== null) continue
    if (isNullable) {
      owed.addPointer(parent, pointerOf(relations, key, Number(row[column]), [row]))
      continue
    }
    const what = `${entityOf(ctx, parent)} ${row[column]}`
    throw new Problem('state_conflict', `This ${noun} cannot be without its ${column}, and ${what} is gone.`)
  }
  if (typeof row.version === 'number') repaired.version = row.version + 1
  return { ...repaired, updated_at: now(ctx) }
}

/** Inserts a row unless the row exists already. */
async function insert(ctx: Context, relations: Relations, { table, row }: ArchivedRow): Promise<void> {
  const known = relations.columns.get(table)
  const columns = Object.keys(row).filter((column) => known?.has(column))
  const names = sql.join(columns.map((column) => sql.ref(column)))
  const values = sql.join(columns.map((column) => row[column]))
  await sql`insert into ${sql.table(table)} (${names}) values (${values}) on conflict do nothing`.execute(ctx.db)
}

/** The references that a restore cannot set, for the reply and for the archives. */
interface Losses {
  dropped: Dropped[]
  owed: OwedReferences
}

type Brought = { table: string; id: number }

/**
 * Restores the other records that the deletion also deleted. Skips a record that was restored or
 * deleted again since.
 */
export async function restoreCompanions(
  ctx: Context,
  companions: Archived['companions'],
  dropped: Dropped[],
): Promise<Brought[]> {
  const brought: Brought[] = []
  for (const { entity, id, event } of companions) {
    const resource = ctx.services.resources.get(entity)
    if (!resource || (await resource.exists(ctx, id))) continue
    if ((await lastArchive(ctx, entity, id))?.event !== event) continue
    // The deletion did not check the visibility of these records, so the restore does not check it.
    dropped.push(...(await resource.restore(withoutVisibility(ctx), id)).dropped)
    brought.push({ table: resource.table, id })
  }
  return brought
}

/** Inserts the child rows in archive order. A row is dropped when its parent row was dropped. */
async function bringRows(
  ctx: Context,
  relations: Relations,
  { rows }: Archived,
  { dropped, owed }: Losses,
): Promise<void> {
  // The lost rows, each with the missing record that would bring it back.
  const lost = new Map<string, { table: string; id: number }>()
  const isGone = await goneFor(ctx, relations, rows)
  const archived = new Set(rows.map(({ table, row }) => `${table} ${row.id}`))
  for (const { table, row } of rows.slice(1)) {
    // The slice's `onRestore` has already checked and written these values.
    if (table === 'unique_values') continue
    // An archive of an earlier version may have rows of a table that is gone.
    if (!relations.columns.has(table)) continue
    const name = ({ parent, column }: ForeignKey): string => `${parent} ${row[column]}`
    const gone = keysOf(relations, table).filter((key) =>
      archived.has(name(key)) ? lost.has(name(key)) : isGone(key, row),
    )
    const kept: Row = { ...row }
    const nulled: ForeignKey[] = []
    let missing: { table: string; id: number } | undefined
    for (const key of gone) {
      const entity = entityOf(ctx, key.parent)
      // Sets the reference to null, as the foreign key would have done.
      if (key.isNullable && key.onDelete !== 'cascade') {
        kept[key.column] = null
        nulled.push(key)
      } else missing ??= lost.get(name(key)) ?? { table: key.parent, id: Number(row[key.column]) }
      // A row whose parent row was dropped is not listed as dropped.
      if (archived.has(name(key))) continue
      const field = typeof row.id === 'number' ? `${table}.${key.column}` : entity
      dropped.push({ entity_type: entity, id: Number(row[key.column]), field })
    }
    if (missing) {
      lost.set(`${table} ${row.id}`, missing)
      owed.addRow(missing, { table, row })
      continue
    }
    for (const key of nulled) owed.addPointer(key.parent, pointerOf(relations, key, Number(row[key.column]), [row]))
    await insert(ctx, relations, { table, row: kept })
  }
}
