// Reads the event log of one record, for its history and for the changes in its
// timeline. field-changes.ts computes the changed fields of an event.
import { type SqlBool, sql } from 'kysely'
import { followUps } from '../../contract/bare-verbs.ts'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../context.ts'
import { notFound } from '../errors.ts'
import { sightOf, wasSeen } from '../query/event-visibility.ts'
import { conditionField, conditions, type Fields, type QueryValues, valueField } from '../query/filter.ts'
import { page } from '../query/page.ts'
import type { Resource } from '../resource/definition.ts'
import { derivedKeysOf } from '../write/event-log.ts'
import type { Snapshot } from '../write/events.ts'
import { asSeen, type Change, changesOf, type Labels, type Logged, labelOf } from './field-changes.ts'
import { type SilentChange, silentChanges } from './silent-changes.ts'

type Recorded = Pick<
  Resource<unknown, never>,
  'noun' | 'entity' | 'events' | 'visibleIds' | 'exists' | 'sight' | 'merges'
>

/** Returns the handler of `GET /…/{id}/history`. */
export const historyHandler =
  (resource: Recorded) =>
  async (
    ctx: Context,
    { params, query }: { params: { id: number }; query: QueryValues },
  ): Promise<Schema<'HistoryPage'>> => {
    await locatePast(ctx, resource, params.id)
    return historyPage(ctx, resource.entity, params.id, query)
  }

/**
 * Throws 404 when the caller may not see the record. A deleted record is visible if the caller
 * could see it when it was deleted.
 */
async function locatePast(
  ctx: Context,
  { noun, entity, visibleIds: seen, exists, sight, merges }: Recorded,
  id: number,
): Promise<void> {
  if ((await seen(ctx, [id])).has(id)) return
  // The events of a merged record are in the history of the other one.
  if (((await merges?.into(ctx, id)) ?? null) !== null) throw notFound(noun, id)
  if ((await exists(ctx, id)) || !(await wasSeen(ctx, entity, sight.records, id))) throw notFound(noun, id)
}

/** The filters that the feed and the histories share. */
export const logFields = ({ services }: Context): Fields => ({
  token_id: valueField('events.token_id'),
  origin: valueField('events.origin'),
  changed: conditionField(
    (keys) =>
      sql<SqlBool>`exists (select 1 from ${services.store.dialect.jsonTexts('events.changed', 'field')}
        where field.value in (${sql.join(keys)}))`,
  ),
})

/**
 * Returns one page of a record's events, newest first. `id` is null for a singleton, such as the
 * configuration.
 */
export async function historyPage(
  ctx: Context,
  entity: string,
  id: number | null,
  query: QueryValues,
): Promise<Schema<'HistoryPage'>> {
  const { changed, 'changed[not]': kept, ...others } = query
  const silent = id === null ? new Map<number, SilentChange[]>() : await silentChanges(ctx, entity, id)
  const names = (keys: unknown, { key }: SilentChange): boolean =>
    [key, key.replace(/_id$/, '')].some((each) => [keys].flat().includes(each))
  // A silent change is in the event of another record, with the changed fields of that record.
  for (const [event, changes] of silent)
    if (!changes.some((each) => (changed === undefined || names(changed, each)) && !names(kept, each)))
      silent.delete(event)
  const merged = id === null ? [] : ((await ctx.services.resources.get(entity)?.merges?.of(ctx, id)) ?? [])
  const filters = logFields(ctx)
  const byFields = Object.entries({ changed, 'changed[not]': kept }).filter(([, keys]) => keys !== undefined)
  const rows = ctx.db
    .selectFrom('events')
    .leftJoin('tokens', 'tokens.id', 'events.token_id')
    .selectAll('events')
    .select('tokens.name as token_name')
    .where((where) => {
      const own = where.and([
        where('events.entity_type', '=', entity),
        id === null ? where('events.entity_id', 'is', null) : where('events.entity_id', 'in', [id, ...merged]),
        // Follow-up events repeat the fields of the create or update events before them.
        ...followUps.map((word) => where('events.name', 'not like', `%.${word}`)),
        ...conditions(ctx, Object.fromEntries(byFields), filters, []),
      ])
      return where.and([
        silent.size === 0 ? own : where.or([own, where('events.id', 'in', [...silent.keys()])]),
        ...conditions(ctx, others, filters, []),
      ])
    })
  const { rows: shown, links, meta } = await page(ctx, rows, query, { id: 'events.id' }, 'events.id')
  const labels = await ctx.services.fieldLabels(ctx, entity)
  const runIds = shown.flatMap(({ workflow_run_id }) => workflow_run_id ?? [])
  const workflows = await ctx.services.workflowsOf(ctx, runIds)
  return {
    data: shown.map((row) => ({
      id: row.id,
      name: row.name,
      actor: { type: row.actor_type === 'user' ? 'user' : 'system', id: row.actor_id, name: row.actor_name },
      token: row.token_id === null ? null : { id: row.token_id, name: row.token_name },
      workflow: workflows.get(row.workflow_run_id ?? 0) ?? null,
      origin: row.origin,
      restored: row.restored === 1 && !silent.has(row.id),
      occurred_at: row.created_at,
      changes: silent.get(row.id)?.map(shownChange(row, labels)) ?? changesOf(read(ctx, entity, row), labels),
    })),
    links,
    meta,
  }
}

/** Returns the change of a reference by the deletion or restore of the record that it named. */
const shownChange =
  ({ before, after }: { before: string | null; after: string | null }, labels: Labels) =>
  ({ key, isBack }: SilentChange): Change => {
    const other = asSeen(JSON.parse((isBack ? after : before) ?? 'null'))
    return { key, label: labelOf(key, labels), old: isBack ? null : other, new: isBack ? other : null }
  }

function read(
  ctx: Context,
  entity: string,
  row: { before: string | null; after: string | null; changed: string },
): Logged {
  const { asRead = (_ctx, whole) => whole } = sightOf(ctx, entity)
  const snapshot = (text: string | null) => (text === null ? null : asRead(ctx, JSON.parse(text) as Snapshot))
  return {
    entity,
    before: snapshot(row.before),
    after: snapshot(row.after),
    changed: JSON.parse(row.changed) as string[],
    derivedKeys: derivedKeysOf(ctx, entity),
  }
}

/**
 * One line of the change log. It is either the creation of the record (`key` is null) or the change
 * of one field.
 */
export interface Line {
  /** The id of the line, unique across all events. */
  id: number
  event_id: number
  key: string | null
  created_at: string
}

const linesPerEvent = 1000

/**
 * Returns the change log of one record as a query with one row per changed field. The caller sorts,
 * pages and unites this query with others, then loads the details of the rows with `describe`. A
 * field and its reference (`user_id` and `user`) share one row.
 */
export function changeLog(ctx: Context, { entity, events }: Pick<Recorded, 'entity' | 'events'>, id: number) {
  const { dialect } = ctx.services.store
  const of = (...names: string[]) =>
    ctx.db
      .selectFrom('events')
      .where('events.entity_type', '=', entity)
      .where('events.entity_id', '=', id)
      .where(
        'events.name',
        'in',
        names.map((name) => `${name}.after`),
      )
      .select(['events.id as event_id', 'events.created_at'])
  const shows = sql<SqlBool>`(twin.value = field.value || '_id' or twin.value like '%\\_' || field.value || '\\_id' escape '\\'
    or twin.value = substr(field.value, 1, length(field.value) - 1) || '_ids')`
  const created = of(events.create)
    .select(sql<number>`events.id * ${sql.lit(linesPerEvent)}`.as('id'))
    .select(sql<string | null>`cast(null as text)`.as('key'))
  const updated = of(...['update', 'merge', 'unmerge'].map((verb) => events.update.replace(/update$/, verb)))
    .innerJoin(dialect.jsonTexts('events.changed', 'field'), (join) => join.onTrue())
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom(dialect.jsonTexts('events.changed', 'twin')).select('twin.key').where(shows))),
    )
    .select(sql<number>`events.id * ${sql.lit(linesPerEvent)} + field.key`.as('id'))
    .select(sql<string | null>`field.value`.as('key'))
  return created.unionAll(updated)
}

export interface Described extends Line {
  actor: { id: number | null; name: string | null }
  /** Whether this creation is the restore of a deleted record. */
  isRestored: boolean
  /** The changed field; null for the creation of the record. */
  change: Change | null
}

/**
 * Returns the details of change-log lines of one entity, by line id. Reads all their events with
 * one query.
 */
export async function describe(ctx: Context, entity: string, lines: readonly Line[]): Promise<Map<number, Described>> {
  const ids = [...new Set(lines.map((line) => line.event_id))]
  if (ids.length === 0) return new Map()
  const rows = await ctx.db.selectFrom('events').selectAll().where('id', 'in', ids).execute()
  const labels = await ctx.services.fieldLabels(ctx, entity)
  const events = new Map(rows.map((row) => [row.id, row]))
  return new Map(
    lines.flatMap((line): [number, Described][] => {
      const row = events.get(line.event_id)
      if (!row) return []
      const changes = line.key === null ? [] : changesOf(read(ctx, entity, row), labels)
      const change = changes.find(({ key }) => key === line.key) ?? null
      return [
        [
          line.id,
          { ...line, actor: { id: row.actor_id, name: row.actor_name }, isRestored: row.restored === 1, change },
        ],
      ]
    }),
  )
}
