// Archives the rows that a deletion removes: the record's row and its child rows, whose foreign
// keys have `on delete cascade`. The record can then be restored for `restoreDays` days.

import { type SqlBool, sql } from 'kysely'
import type { ForeignKey, Relations } from '../../../db/dialect.ts'
import { type Context, now } from '../context.ts'
import type { Records } from '../query/event-visibility.ts'
import { daysAfter, stamp } from '../runtime/clock.ts'
import { perOwner } from '../runtime/per-owner.ts'
import { textKey } from '../values/names.ts'
import { readInSlices } from '../write/row-slices.ts'

/** The number of days during which a deleted record can be restored. */
export const restoreDays = 30

export type Row = Record<string, string | number | null>

export interface ArchivedRow {
  table: string
  row: Row
}

/**
 * References that the deletion of a record set to null. The rows with these `ids` in `table` had
 * the value `to` in `column`.
 */
export interface Pointer {
  table: string
  column: string
  to: number
  ids: number[]
  /** For child rows: the records that the rows with `ids` belong to, in the same order. */
  owners?: { table: string; ids: number[] }
}

export interface Archive {
  /**
   * The archived rows: first the record's own row, then its child rows, with each parent before its
   * children.
   */
  rows: ArchivedRow[]
  pointers: Pointer[]
  /**
   * Other records that the deletion also deleted, with the ids of their deletion events. Each of
   * these records has its own archive.
   */
  companions: { entity: string; id: number; event: number }[]
}

const relations = perOwner((_store: object): { known?: Relations } => ({}))

/**
 * Returns the foreign keys, columns and unique keys of all tables. They are read once per process.
 */
export async function relationsOf({ db, services: { store } }: Context): Promise<Relations> {
  const kept = relations(store)
  kept.known ??= await store.dialect.relations(db as never)
  return kept.known
}

const atOnce = 500

/** Splits `values` into chunks that are small enough for the parameters of one SQL statement. */
export function chunks<T>(values: readonly T[], size = atOnce): T[][] {
  const found: T[][] = []
  for (let from = 0; from < values.length; from += size) found.push(values.slice(from, from + size))
  return found
}

/** Returns a key that identifies the row: its table and primary key. */
export const rowNameOf = (relations: Relations, { table, row }: ArchivedRow): string =>
  JSON.stringify([table, ...primaryKey(relations, table).map((column) => row[column])])

/** Returns rows of a table by the values of a column. */
export async function rowsBy(
  ctx: Context,
  relations: Relations,
  columns: readonly string[] | 'all',
  { table, column, values }: { table: string; column: string; values: readonly number[] },
): Promise<Row[]> {
  const shown = columns === 'all' ? sql`*` : sql.join(columns.map((each) => sql.ref(each)))
  const found: Row[] = []
  for (const part of chunks(values)) {
    const where = sql<SqlBool>`${sql.ref(column)} in (${sql.join(part)})`
    const rows = relations.columns.get(table)?.has('id')
      ? await readInSlices<Row>(ctx, { table, where }, shown)
      : (await sql<Row>`select ${shown} from ${sql.table(table)} where ${where}`.execute(ctx.db)).rows
    for (const row of rows) found.push(row)
  }
  return found
}

export const primaryKey = ({ uniqueKeys }: Relations, table: string): string[] =>
  uniqueKeys.find((key) => key.isPrimary && key.table === table)?.columns ?? ['id']

/** Returns the foreign key that names the record of a child row; undefined for other tables. */
const ownerKeyOf = ({ foreignKeys }: Relations, table: string): ForeignKey | undefined =>
  foreignKeys.find((key) => key.table === table && key.onDelete === 'cascade' && !key.isNullable)

/** Returns a pointer for rows with the value `to` in the column of a foreign key. */
export function pointerOf(
  relations: Relations,
  { table, column }: Pick<ForeignKey, 'table' | 'column'>,
  to: number,
  rows: readonly Row[],
): Pointer {
  const owner = ownerKeyOf(relations, table)
  return {
    table,
    column,
    to,
    ids: rows.map(({ id }) => Number(id)),
    ...(owner && { owners: { table: owner.parent, ids: rows.map((row) => Number(row[owner.column])) } }),
  }
}

async function pointersAt(
  ctx: Context,
  relations: Relations,
  key: ForeignKey,
  ids: readonly number[],
): Promise<Pointer[]> {
  const { table, column } = key
  const owner = ownerKeyOf(relations, table)
  const columns = ['id', column, ...(owner ? [owner.column] : [])]
  const found = await rowsBy(ctx, relations, columns, { table, column, values: ids })
  const byTarget = new Map<number, Row[]>()
  for (const row of found) {
    const to = Number(row[column])
    const rows = byTarget.get(to)
    if (rows) rows.push(row)
    else byTarget.set(to, [row])
  }
  return [...byTarget].map(([to, rows]) => pointerOf(relations, key, to, rows))
}

/**
 * Returns the record's row, all its child rows, and the references that its deletion sets to null.
 */
async function capture(ctx: Context, entity: string, table: string, id: number): Promise<Omit<Archive, 'companions'>> {
  const relations = await relationsOf(ctx)
  const rows = new Map<string, ArchivedRow>()
  const pointers: Pointer[] = []
  const keep = (table: string, row: Row): void => {
    const name = rowNameOf(relations, { table, row })
    // A row with two parents is found twice. It moves to the end, so that it comes after both
    // parents.
    rows.delete(name)
    rows.set(name, { table, row })
  }
  const follow = async (parent: string, ids: readonly number[]): Promise<void> => {
    for (const key of relations.foreignKeys.filter((key) => key.parent === parent)) {
      const { table, column, onDelete } = key
      if (onDelete === 'set null') pointers.push(...(await pointersAt(ctx, relations, key, ids)))
      if (onDelete !== 'cascade') continue
      const found = await rowsBy(ctx, relations, 'all', { table, column, values: ids })
      for (const row of found) keep(table, row)
      const below = found.flatMap((row) => (typeof row.id === 'number' ? [row.id] : []))
      if (below.length > 0) await follow(table, below)
    }
  }
  for (const row of await rowsBy(ctx, relations, 'all', { table, column: 'id', values: [id] })) keep(table, row)
  await follow(table, [id])
  // The unique values of custom attributes refer to their record without a foreign key.
  const unique = ctx.db.selectFrom('unique_values').selectAll().where(sql.ref('entity_type'), '=', entity)
  for (const row of await unique.where('entity_id', '=', id).execute()) keep('unique_values', { ...row })
  return { rows: [...rows.values()], pointers }
}

/**
 * Runs a deletion (`remove`). Stores an archive with the rows that the deletion removes and the ids
 * of other records that the deletion deletes. The caller must be in the transaction of the
 * deletion.
 */
export async function archiveThenDelete(
  ctx: Context,
  { entity, table, id }: { entity: string; table: string; id: number },
  remove: () => Promise<{ eventId: number | null }>,
  keptDays = restoreDays,
): Promise<void> {
  const { rows, pointers } = await capture(ctx, entity, table, id)
  const before = ctx.unit?.archived.length ?? 0
  const { eventId } = await remove()
  if (eventId === null) return
  const cascaded = ctx.unit?.archived.slice(before) ?? []
  // The archive outlives its event when the log is kept for a shorter time.
  const event = await ctx.db
    .selectFrom('events')
    .select(['before', 'owner_id', 'lead_owners'])
    .where('id', '=', eventId)
    .executeTakeFirstOrThrow()
  await ctx.db
    .insertInto('archives')
    .values({
      ...event,
      event_id: eventId,
      entity_type: entity,
      entity_id: id,
      rows: JSON.stringify(rows),
      pointers: JSON.stringify(pointers),
      companions: JSON.stringify(cascaded),
      created_at: now(ctx),
      expires_at: daysAfter(ctx.time, keptDays),
    })
    .execute()
  ctx.unit?.archived.push({ entity, id, event: eventId })
}

/**
 * Adds the other records that were deleted with the same request id to the archive of a record, so
 * that its restore brings them back.
 */
export async function adoptArchives(ctx: Context, entity: string, id: number): Promise<void> {
  const own = await lastArchive(ctx, entity, id)
  if (!own) return
  const others = await ctx.db
    .selectFrom('archives')
    .innerJoin('events', 'events.id', 'archives.event_id')
    .select(['archives.entity_type as entity', 'archives.entity_id as id', 'archives.event_id as event'])
    .where('events.request_id', '=', ctx.requestId)
    .where('archives.id', '<', own.id)
    .orderBy('archives.id')
    .execute()
  const companions = JSON.stringify([...others, ...own.companions])
  await ctx.db.updateTable('archives').set({ companions }).where('id', '=', own.id).execute()
}

export interface Archived extends Archive {
  id: number
  event: number
  /** The API representation of the record before the deletion. */
  snapshot: Record<string, unknown>
}

const lastOf = ({ db, time }: Context, entity: string, id: number) =>
  db
    .selectFrom('archives')
    .where('archives.entity_type', '=', entity)
    .where('archives.entity_id', '=', id)
    .where('archives.expires_at', '>=', stamp(time))
    .orderBy('archives.id', 'desc')
    .limit(1)

/** Returns whether the caller could see the record of the archive when it was deleted. */
export async function wasArchiveSeen(ctx: Context, records: Records, archiveId: number): Promise<boolean> {
  const seen = await ctx.db
    .selectFrom('archives as known')
    .select('known.id')
    .where('known.id', '=', archiveId)
    .where(records.wasInSight(ctx))
    .executeTakeFirst()
  return seen !== undefined
}

/** Changes the archive of a record's last deletion, unless that has expired. */
export async function amendArchive(
  ctx: Context,
  entity: string,
  id: number,
  amend: (archive: Pick<Archive, 'rows' | 'pointers'>) => void,
): Promise<void> {
  const found = await lastOf(ctx, entity, id).select(['id', 'rows', 'pointers']).executeTakeFirst()
  if (!found) return
  const archive = { rows: archivedRows(found.rows), pointers: JSON.parse(found.pointers) as Pointer[] }
  amend(archive)
  const amended = { rows: JSON.stringify(archive.rows), pointers: JSON.stringify(archive.pointers) }
  await ctx.db.updateTable('archives').set(amended).where('id', '=', found.id).execute()
}

const named = ['name', 'title', 'subject', 'job_title', 'contact_name', 'sku'] as const

/** Returns the rows of an archive. Former versions folded the keys of names by other rules. */
function archivedRows(text: string): ArchivedRow[] {
  const rows = JSON.parse(text) as ArchivedRow[]
  for (const { row } of rows)
    for (const column of named) {
      const name = row[column]
      if (typeof name === 'string' && typeof row[`${column}_key`] === 'string') row[`${column}_key`] = textKey(name)
    }
  return rows
}

/**
 * Returns the archive of a record's last deletion; undefined when no archive exists or the archive
 * is older than `restoreDays`.
 */
export async function lastArchive(ctx: Context, entity: string, id: number): Promise<Archived | undefined> {
  const columns = ['id', 'event_id', 'before', 'rows', 'pointers', 'companions'] as const
  const found = await lastOf(ctx, entity, id).select(columns).executeTakeFirst()
  if (!found) return undefined
  return {
    id: found.id,
    rows: archivedRows(found.rows),
    pointers: JSON.parse(found.pointers) as Pointer[],
    companions: JSON.parse(found.companions) as Archive['companions'],
    event: found.event_id,
    snapshot: JSON.parse(found.before ?? '{}') as Archived['snapshot'],
  }
}
