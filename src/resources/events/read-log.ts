// Reads the event log for the change feed (DOMAIN 17.4): filtered, after a position, oldest first.
// Invisible events are skipped but advance the position, so that a reader neither misses nor
// repeats an event.
import { type Expression, type SqlBool, sql } from 'kysely'
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact, Query, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { asSeen } from '../../kernel/history/field-changes.ts'
import { always, type EventEntity, never, sightOf } from '../../kernel/query/event-visibility.ts'
import { conditions, exists, time, value } from '../../kernel/query/filter.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { eventMatcher } from '../system/event-patterns.ts'
import { type EventRow, filterVisible, listableTypes } from './event-visibility.ts'

type Entry = Schema<'EventEntry'>
type Condition = Expression<SqlBool>

/**
 * Limits of one call: the number of event ids that the filters search, and the number of events
 * checked for visibility.
 */
const maxPerCall = { searched: 10_000, looked: 1000 }
const rowsPerQuery = 100

export interface EntryBatch {
  entries: Entry[]
  /** The id of the last examined event, which is the position of the next call. */
  next: number
  hasMore: boolean
}

const named = (names: readonly string[]): Expression<SqlBool> =>
  names.length === 0 ? never : sql<SqlBool>`events.name in (${sql.join(names)})`

/**
 * All event names in the log. Events that come in pairs (before, after) are stored as `.after`,
 * single events under their own name.
 */
const storedNames: readonly string[] = [
  ...new Set(Object.values(operations).flatMap(({ events }: OperationFact) => events)),
].flatMap((base) => [`${base}.after`, base])

/**
 * Expands patterns to the event names they match. Exact names stay, because the log may contain
 * events of removed operations.
 */
function namesOf(patterns: readonly (string | number)[]): string[] {
  const texts = patterns.map(String)
  const known = texts.map(eventMatcher).flatMap((matches) => storedNames.filter(matches))
  return [...new Set([...known, ...texts.filter((text) => !text.includes('*'))])]
}

/** Converts the filters of a request to conditions on `events`. */
export const eventFilters = (ctx: Context, query: Query<'listEvents'>): Condition[] =>
  conditions(
    ctx,
    query as Record<string, unknown>,
    {
      name: exists((patterns) => (patterns.includes('*') ? always : named(namesOf(patterns)))),
      // A filter by record uses the database index. A filter by type alone must not (see
      // `ofTypes`).
      entity_type: query.entity_id === undefined ? exists(ofTypes) : value('events.entity_type'),
      entity_id: value('events.entity_id'),
      actor_id: value('events.actor_id'),
      request_id: value('events.request_id'),
      created_at: time('events.created_at'),
    },
    [],
  )

/**
 * Returns the next entries after a position. Reads only durable events: after a power failure
 * another event could get the id of a lost one, and readers would miss it. Visibility is checked
 * with `ctx`, which a stream renews.
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
  // Ids grow in commit order, so skipped events never need to be read again.
  const end = types.length === 0 ? newest : Math.min(newest, begin + maxPerCall.searched)
  const found: EventRow[] = []
  let place = begin
  for (let looked = 0; place < end && types.length > 0; looked += rowsPerQuery) {
    if (looked === maxPerCall.looked) return { entries: presentEntries(ctx, found), next: place, hasMore: true }
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
 * Written as an expression so that SQLite does not use the index on types: it would read and sort
 * all events of a type, while a scan of the log in id order stops after one page.
 */
const ofTypes = (types: readonly (string | number)[]): Condition =>
  sql<SqlBool>`(events.entity_type || '') in (${sql.join([...types])})`

/** Reads the ids first, which a database index can answer, and then the large rows. */
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
 * Throws 422 for a position before the oldest stored event, because the events between them are
 * gone. Throws 422 for a position beyond the newest event, as after restoring a backup. Position 0
 * is the beginning.
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
 * Returns the newest event id stored anywhere: event consumers keep ids of events that are deleted
 * since.
 */
async function findNewestId(ctx: Context): Promise<number> {
  const { last } = await ctx.db
    .selectFrom('event_readers')
    .select((eb) => eb.fn.max('last_event_id').as('last'))
    .executeTakeFirstOrThrow()
  return Math.max(await newestEvent(ctx), Number(last ?? 0))
}

function presentEntry(ctx: Context, row: EventRow): Entry {
  return {
    id: row.id,
    name: row.name,
    entity_type: row.entity_type as EventEntity,
    entity_id: row.entity_id,
    related_type: row.related_type as EventEntity | null,
    related_id: row.related_id,
    actor: { type: row.actor_type === 'user' ? 'user' : 'system', id: row.actor_id, name: row.actor_name },
    token_id: row.token_id,
    request_id: row.request_id,
    origin: row.origin,
    before: snapshotOf(ctx, row.entity_type, row.before),
    after: snapshotOf(ctx, row.entity_type, row.after),
    changed: JSON.parse(row.changed) as string[],
    restored: row.restored === 1,
    created_at: row.created_at,
  }
}

/**
 * Reduces a snapshot to the fields the reader may see: other records become references, and counts
 * are removed.
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
