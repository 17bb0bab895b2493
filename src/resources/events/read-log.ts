// Reads the event log for the change feed: the events after a position, oldest first.
// A position is an event id. Events that the caller may not see are left out, but the position
// advances past them. A client therefore gets each visible event exactly once.
import { type Expression, type SqlBool, sql } from 'kysely'
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact, Query, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { asSeen } from '../../kernel/history/field-changes.ts'
import { logFields } from '../../kernel/history/history.ts'
import { always, never, sightOf } from '../../kernel/query/event-visibility.ts'
import { conditionField, conditions, timeField, valueField } from '../../kernel/query/filter.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { eventMatcher } from '../system/event-patterns.ts'
import { eventWithOldNames, factsOf } from './event-facts.ts'
import { type EventRow, filterVisible, listableTypes } from './event-visibility.ts'

type Entry = Schema<'EventEntry'>
type Condition = Expression<SqlBool>

/**
 * Limits of one call of `readEntries`. `searched` is the number of event ids to which the filters
 * are applied. `looked` is the number of matching events that are checked for visibility.
 */
const maxPerCall = { searched: 10_000, checked: 1000 }
const rowsPerQuery = 100

export interface EntryBatch {
  entries: Entry[]
  /** The id of the last examined event. The next call continues after this id. */
  next: number
  hasMore: boolean
}

const named = (names: readonly string[]): Expression<SqlBool> =>
  names.length === 0 ? never : sql<SqlBool>`events.name in (${sql.join(names)})`

/**
 * All names under which the log can store events. Paired events (`.before`, `.after`) are stored
 * with the suffix `.after`, and single events without a suffix. The list has both forms of each
 * name.
 */
const storedNames: readonly string[] = [
  ...new Set(Object.values(operations).flatMap(({ events }: OperationFact) => events)),
].flatMap((base) => [`${base}.after`, base])

/**
 * Returns the event names that match at least one of the patterns. A pattern without `*` is always
 * included, because the log may contain events of operations that no longer exist.
 */
function namesOf(patterns: readonly (string | number)[]): string[] {
  const texts = patterns.map(String)
  const known = texts.map(eventMatcher).flatMap((matches) => storedNames.filter(matches))
  return [...new Set([...known, ...texts.filter((text) => !text.includes('*'))])]
}

/** Converts the query parameters of a request to SQL conditions on the table `events`. */
export const eventFilters = (ctx: Context, query: Query<'listEvents'>): Condition[] =>
  conditions(
    ctx,
    query as Record<string, unknown>,
    {
      name: conditionField((patterns) => (patterns.includes('*') ? always : named(namesOf(patterns)))),
      // A filter by type and record id may use the database index on both columns. A filter by type
      // alone must not use that index (see `ofTypes`).
      entity_type: query.entity_id === undefined ? conditionField(ofTypes) : valueField('events.entity_type'),
      entity_id: valueField('events.entity_id'),
      actor_id: valueField('events.actor_id'),
      ...logFields(ctx),
      request_id: valueField('events.request_id'),
      occurred_at: timeField('events.created_at'),
    },
    [],
  )

/**
 * Returns up to `size` entries after the position `after` that the caller may see. Reads only
 * events that are synced to disk. After a power failure, the id of a lost event is used again. A
 * client that had already read the lost event would miss the new event.
 */
export async function readEntries(
  ctx: Context,
  filters: readonly Condition[],
  after: number,
  size: number,
): Promise<EntryBatch> {
  const types = listableTypes(ctx)
  const newest = Math.max(after, await newestEvent(ctx))
  await ctx.services.store.whenDurable()
  const begin = Math.max(after, ((await findOldestId(ctx)) ?? 1) - 1)
  // Event ids grow in commit order, so no new event can appear at a position that was already read.
  const end = types.length === 0 ? newest : Math.min(newest, begin + maxPerCall.searched)
  const found: EventRow[] = []
  let place = begin
  for (let checked = 0; place < end && types.length > 0; checked += rowsPerQuery) {
    if (checked === maxPerCall.checked) return { entries: presentEntries(ctx, found), next: place, hasMore: true }
    const rows = await rowsWithin(ctx, { place, end }, [...filters, ofTypes(types)])
    found.push(...(await filterVisible(ctx, rows)))
    const next = found[size - 1]
    if (found.length > size && next)
      return { entries: presentEntries(ctx, found.slice(0, size)), next: next.id, hasMore: true }
    place = rows.length < rowsPerQuery ? end : (rows.at(-1)?.id ?? end)
  }
  return { entries: presentEntries(ctx, found), next: end, hasMore: end < newest }
}

const presentEntries = (ctx: Context, rows: readonly EventRow[]): Entry[] => rows.map((row) => presentEntry(ctx, row))

/**
 * Returns the condition that an event has one of the types. The concatenation keeps SQLite from
 * using the index on types, with which it would read and sort all events of a type. A scan in id
 * order can stop after one page.
 */
const ofTypes = (types: readonly (string | number)[]): Condition =>
  sql<SqlBool>`(events.entity_type || '') in (${sql.join([...types])})`

/**
 * Returns the next matching events with an id after `place` and up to `end`. The first query reads
 * only ids, for which a database index suffices. The second query reads the large rows of these
 * ids.
 */
async function rowsWithin(
  { db }: Context,
  { place, end }: { place: number; end: number },
  conditions: readonly Condition[],
): Promise<EventRow[]> {
  let query = db.selectFrom('events').select('id').where('id', '>', place).where('id', '<=', end)
  for (const condition of conditions) query = query.where(condition)
  const ids = (await query.orderBy('id').limit(rowsPerQuery).execute()).map(({ id }) => id)
  return ids.length === 0 ? [] : db.selectFrom('events').selectAll().where('id', 'in', ids).orderBy('id').execute()
}

export async function findOldestId({ db }: Context): Promise<number | null> {
  const row = await db.selectFrom('events').select('id').orderBy('id').limit(1).executeTakeFirst()
  return row?.id ?? null
}

/**
 * Throws 422 when events after the position were deleted, or when the position is beyond the newest
 * event. In the second case, the position belongs to another log, for example to the log before a
 * backup was restored. Position 0 is always valid.
 */
export async function checkPlace(ctx: Context, field: string, after: number, oldest: number | null): Promise<void> {
  if (after === 0) return
  const refuse = (sentence: string): Problem =>
    new Problem('validation_failed', undefined, {
      errors: { [field]: [sentence] },
      ...(oldest !== null && { oldest_id: oldest }),
    })
  if (oldest !== null && after < oldest - 1)
    throw refuse(`The log begins at event ${oldest}; earlier events were deleted.`)
  const newest = await findNewestId(ctx)
  if (after > newest) throw refuse(`The newest event is ${newest}; this id belongs to another log.`)
}

/**
 * Returns the highest known event id. The newest events may have been deleted from the log, but the
 * table event_readers still has the last id that each consumer read.
 */
async function findNewestId(ctx: Context): Promise<number> {
  const { last } = await ctx.db
    .selectFrom('event_readers')
    .select((eb) => eb.fn.max('last_event_id').as('last'))
    .executeTakeFirstOrThrow()
  return Math.max(await newestEvent(ctx), Number(last ?? 0))
}

function presentEntry(ctx: Context, row: EventRow): Entry {
  return eventWithOldNames(ctx, {
    ...factsOf(row, { changed: JSON.parse(row.changed) as string[], restored: row.restored === 1 }),
    before: snapshotOf(ctx, row.entity_type, row.before),
    after: snapshotOf(ctx, row.entity_type, row.after),
  })
}

/**
 * Returns a snapshot with only the fields that the caller may see. Other records in the snapshot
 * become references. Fields that count records are removed unless the caller sees all records.
 */
function snapshotOf(ctx: Context, type: string, text: string | null): Entry['before'] {
  if (text === null) return null
  const isLimited = (ctx.user?.visibleOwners ?? null) !== null
  const { asRead = (_ctx, whole) => whole } = sightOf(ctx, type)
  const entries = Object.entries(asRead(ctx, JSON.parse(text) as Snapshot))
    .filter(([key]) => !(isLimited && key.endsWith('_count')))
    .map(([key, each]) => [key, asSeen(each)])
  return Object.fromEntries(entries) as Entry['before']
}
