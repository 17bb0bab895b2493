// The event log as its readers see it (DOMAIN 17.4): filtered, behind a place, oldest first. What a reader may not see is passed over,
// and the place moves on all the same, so that nothing is missed and nothing repeated.
import { type Expression, type SqlBool, sql } from 'kysely'
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact, Query, Schema } from '../../contract/types.ts'
import { asSeen } from '../../kernel/changes.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import { matcher, type Snapshot } from '../../kernel/events.ts'
import { conditions, exists, time, value } from '../../kernel/filter.ts'
import { type EventRow, openTypes, seenOf } from './sight.ts'

type Entry = Schema<'Event'>
type Condition = Expression<SqlBool>

/** Rows that are looked through for one answer, however few of them may be shown. */
const mostLookedAt = 1000
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
  const known = texts.map(matcher).flatMap((matches) => stored.filter(matches))
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
      entity_type: value('events.entity_type'),
      entity_id: value('events.entity_id'),
      actor_id: value('events.actor_id'),
      request_id: value('events.request_id'),
      created_at: time('events.created_at'),
    },
    [],
  )

/** The next entries behind a place. Visibility is asked of `ctx`, which a long reader renews. */
export async function readPart(
  ctx: Context,
  filters: readonly Condition[],
  after: number,
  size: number,
): Promise<Part> {
  const types = openTypes(ctx)
  // Ids grow in the order of commits, so what is there now and was passed over need never be looked at again.
  const end = Math.max(after, await newestOf(ctx))
  const found: EventRow[] = []
  let place = after
  for (let looked = 0; looked < mostLookedAt && types.length > 0; looked += atOnce) {
    const rows = await rowsBehind(ctx, place, [...filters, ofTypes(types)])
    found.push(...(await seenOf(ctx, rows)))
    const next = found[size - 1]
    if (found.length > size && next)
      return { entries: found.slice(0, size).map((row) => presentEntry(ctx, row)), next: next.id, hasMore: true }
    place = rows.at(-1)?.id ?? place
    if (rows.length < atOnce) break
    if (looked + atOnce >= mostLookedAt)
      return { entries: found.map((row) => presentEntry(ctx, row)), next: place, hasMore: true }
  }
  return { entries: found.map((row) => presentEntry(ctx, row)), next: Math.max(place, end), hasMore: false }
}

/** No bare column: an index of types would be read whole and sorted, where the log in its order ends after a page. */
const ofTypes = (types: readonly string[]): Condition =>
  sql<SqlBool>`(events.entity_type || '') in (${sql.join([...types])})`

/** First the ids, which an index may serve, then the rows, which are large. */
async function rowsBehind({ db }: Context, place: number, conditions: readonly Condition[]): Promise<EventRow[]> {
  let query = db.selectFrom('events').select('id').where('id', '>', place)
  for (const condition of conditions) query = query.where(condition)
  const ids = (await query.orderBy('id').limit(atOnce).execute()).map(({ id }) => id)
  return ids.length === 0 ? [] : db.selectFrom('events').selectAll().where('id', 'in', ids).orderBy('id').execute()
}

export async function newestOf({ db }: Pick<Context, 'db'>): Promise<number> {
  const row = await db.selectFrom('events').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst()
  return row?.id ?? 0
}

export async function oldestOf({ db }: Context): Promise<number | null> {
  const row = await db.selectFrom('events').select('id').orderBy('id').limit(1).executeTakeFirst()
  return row?.id ?? null
}

/** Throws 422 for a place before the oldest event that is kept: what lies between is gone. 0 is no place, but the beginning. */
export function checkPlace(field: string, after: number, oldest: number | null): void {
  if (after === 0 || oldest === null || after >= oldest - 1) return
  throw new Problem('validation_failed', undefined, {
    errors: { [field]: [`Events are kept from ${oldest} on; what came before is gone.`] },
    oldest_id: oldest,
  })
}

function presentEntry(ctx: Context, row: EventRow): Entry {
  return {
    id: row.id,
    name: row.name,
    entity_type: row.entity_type,
    entity_id: row.entity_id,
    related_type: row.related_type,
    related_id: row.related_id,
    actor: { type: row.actor_type === 'user' ? 'user' : 'system', id: row.actor_id, name: row.actor_name },
    token_id: row.token_id,
    request_id: row.request_id,
    origin: row.origin,
    before: snapshotOf(ctx, row.before),
    after: snapshotOf(ctx, row.after),
    changed: JSON.parse(row.changed) as string[],
    restored: row.restored === 1,
    created_at: row.created_at,
  }
}

/** The writer may have seen more than the reader: other records are cut down to references, counts of them are left out. */
function snapshotOf({ user }: Context, text: string | null): Entry['before'] {
  if (text === null) return null
  const isLimited = user !== null && user.visibleOwners !== null
  const entries = Object.entries(JSON.parse(text) as Snapshot)
    .filter(([key]) => !(isLimited && key.endsWith('_count')))
    .map(([key, each]) => [key, asSeen(each)])
  return Object.fromEntries(entries) as Entry['before']
}
