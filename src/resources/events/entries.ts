// The event log as its readers see it (DOMAIN 17.4): filtered, behind a place, oldest first. What a reader may not see is passed over,
// and the place moves on all the same, so that nothing is missed and nothing repeated.
import { type Expression, type SqlBool, sql } from 'kysely'
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact, Query, Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { asSeen } from '../../kernel/history/field-changes.ts'
import { type EventEntity, sightOf } from '../../kernel/query/event-visibility.ts'
import { conditions, exists, time, value } from '../../kernel/query/filter.ts'
import { newestEvent } from '../../kernel/write/event-log.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { eventMatcher } from '../system/event-patterns.ts'
import { type EventRow, knownOf, openTypes } from './event-visibility.ts'

type Entry = Schema<'EventEntry'>
type Condition = Expression<SqlBool>

/** For one answer: ids that are searched for what the filters mean, and rows of these whose visibility is asked. */
const most = { searched: 10_000, looked: 1000 }
const atOnce = 100

export interface Part {
  entries: Entry[]
  /** Everything up to this id has been looked at. */
  next: number
  hasMore: boolean
}

/** Every name that is stored: a pair by its `.after`, bare ones as they are. */
const stored: readonly string[] = [
  ...new Set(Object.values(operations).flatMap(({ events }: OperationFact) => events)),
].flatMap((base) => [`${base}.after`, base])

/** The names that patterns mean; a name that no operation has any more may still be in the log. */
function namesOf(patterns: readonly (string | number)[]): string[] {
  const texts = patterns.map(String)
  const known = texts.map(eventMatcher).flatMap((matches) => stored.filter(matches))
  return [...new Set([...known, ...texts.filter((text) => !text.includes('*'))])]
}

/** The filters of a request as conditions on rows of `events`. */
export const conditionsOf = (ctx: Context, query: Query<'listEvents'>): Condition[] =>
  conditions(
    ctx,
    query as Record<string, unknown>,
    {
      name: exists((patterns) =>
        patterns.includes('*') ? sql<SqlBool>`1 = 1` : sql<SqlBool>`events.name in (${sql.join(namesOf(patterns))})`,
      ),
      // One record is found by the index; a type alone is not looked for there.
      entity_type: query.entity_id === undefined ? exists(ofTypes) : value('events.entity_type'),
      entity_id: value('events.entity_id'),
      actor_id: value('events.actor_id'),
      request_id: value('events.request_id'),
      created_at: time('events.created_at'),
    },
    [],
  )

/**
 * The next entries behind a place. An entry waits for the disk: after a power cut another event could get its id, and readers that have
 * passed that id would miss it. Visibility is asked of `ctx`, which a long reader renews.
 */
export async function readPart(
  ctx: Context,
  filters: readonly Condition[],
  after: number,
  size: number,
): Promise<Part> {
  const types = openTypes(ctx)
  const newest = Math.max(after, await newestEvent(ctx))
  await ctx.services.store.whenDurable()
  const begin = Math.max(after, ((await oldestOf(ctx)) ?? 1) - 1)
  // Ids grow in the order of commits, so what is there now and was passed over need never be looked at again.
  const end = types.length === 0 ? newest : Math.min(newest, begin + most.searched)
  const found: EventRow[] = []
  let place = begin
  for (let looked = 0; place < end && types.length > 0; looked += atOnce) {
    if (looked === most.looked) return { entries: presented(ctx, found), next: place, hasMore: true }
    const rows = await rowsWithin(ctx, { place, end }, [...filters, ofTypes(types)])
    found.push(...(await knownOf(ctx, rows)))
    const next = found[size - 1]
    if (found.length > size && next)
      return { entries: presented(ctx, found.slice(0, size)), next: next.id, hasMore: true }
    place = rows.length < atOnce ? end : (rows.at(-1)?.id ?? end)
  }
  return { entries: presented(ctx, found), next: end, hasMore: end < newest }
}

const presented = (ctx: Context, rows: readonly EventRow[]): Entry[] => rows.map((row) => presentEntry(ctx, row))

/** No bare column: an index of types would be read whole and sorted, where the log in its order ends after a page. */
const ofTypes = (types: readonly (string | number)[]): Condition =>
  sql<SqlBool>`(events.entity_type || '') in (${sql.join([...types])})`

/** First the ids, which an index may serve, then the rows, which are large. */
async function rowsWithin(
  { db }: Context,
  { place, end }: { place: number; end: number },
  conditions: readonly Condition[],
): Promise<EventRow[]> {
  let query = db.selectFrom('events').select('id').where('id', '>', place).where('id', '<=', end)
  for (const condition of conditions) query = query.where(condition)
  const ids = (await query.orderBy('id').limit(atOnce).execute()).map(({ id }) => id)
  return ids.length === 0 ? [] : db.selectFrom('events').selectAll().where('id', 'in', ids).orderBy('id').execute()
}

export async function oldestOf({ db }: Context): Promise<number | null> {
  const row = await db.selectFrom('events').select('id').orderBy('id').limit(1).executeTakeFirst()
  return row?.id ?? null
}

/**
 * Throws 422 for a place before the oldest event that is kept: what lies between is gone; and for one that the log has not come to,
 * as after a restored backup: who waited there would miss what comes until then. 0 is no place, but the beginning.
 */
export async function checkPlace(ctx: Context, field: string, after: number, oldest: number | null): Promise<void> {
  if (after === 0) return
  const refuse = (sentence: string): Problem =>
    new Problem('validation_failed', undefined, {
      errors: { [field]: [sentence] },
      ...(oldest !== null && { oldest_id: oldest }),
    })
  if (oldest !== null && after < oldest - 1)
    throw refuse(`Events are kept from ${oldest} on; what came before is gone.`)
  const newest = await lastId(ctx)
  if (after > newest) throw refuse(`The newest event is ${newest}; whoever has read further has read another log.`)
}

/** The newest id that is known; readers remember it of events that are not kept any more. */
async function lastId(ctx: Context): Promise<number> {
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

/** The writer may have seen more than the reader: other records are cut down to references, counts of them are left out. */
function snapshotOf(ctx: Context, type: string, text: string | null): Entry['before'] {
  if (text === null) return null
  const isLimited = (ctx.user?.visibleOwners ?? null) !== null
  const { asRead = (_ctx, whole) => whole } = sightOf(ctx, type)
  const entries = Object.entries(asRead(ctx, JSON.parse(text) as Snapshot))
    .filter(([key]) => !(isLimited && key.endsWith('_count')))
    .map(([key, each]) => [key, asSeen(each)])
  return Object.fromEntries(entries) as Entry['before']
}
