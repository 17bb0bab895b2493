// Lists a record's activities, e-mails and changes in one timeline. One SQL query
// combines, sorts and pages the keys of all entries. Each source then loads the entries of the
// page.
import { type RawBuilder, sql } from 'kysely'
import type { Query, Schema } from '../../contract/types.ts'
import { type Context, canCall } from '../../kernel/context.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { changeLog, type Line } from '../../kernel/history/history.ts'
import { conditions, flagField, valueField } from '../../kernel/query/filter.ts'
import { page, type Rows } from '../../kernel/query/page.ts'
import type { Resource } from '../../kernel/resource/define-resource.ts'
import { leads } from '../leads/resource.ts'
import { organizations } from '../organizations/resource.ts'
import { persons } from '../persons/resource.ts'
import { products } from '../products/resource.ts'
import { quotes } from '../quotes/resource.ts'
import { warehouses } from '../warehouses/resource.ts'
import { isLinkedTo, type LinkedEntity, visibleActivity } from './links.ts'
import { activities } from './resource.ts'
import { changeEntries } from './timeline-changes.ts'
import { emailEntries, emailKeys } from './timeline-emails.ts'

type Entry = Schema<'TimelineEntry'>

/**
 * The key of a timeline entry, with the columns for filters and sorting. `event_id` and `key`
 * identify a line of the change log and are null for other sources.
 */
interface Key extends Omit<Line, 'event_id'> {
  source: Entry['source']
  type: Entry['type']
  is_done: number
  event_id: number | null
}

type Parent = Pick<Resource<unknown, never>, 'entity' | 'events' | 'assertVisible'>

const activityKeys = (ctx: Context, kind: LinkedEntity, id: number): RawBuilder<Key> =>
  sql`select 'activity' as source, activities.id, activities.created_at, activities.type, activities.is_done, cast(null as bigint) as event_id, cast(null as text) as key from activities where ${isLinkedTo(kind, id)} and ${visibleActivity(ctx)}`

const changeKeys = (ctx: Context, parent: Parent, id: number): RawBuilder<Key> =>
  sql`select 'event' as source, line.id, line.created_at, 'system' as type, ${sql.raw(ctx.services.store.dialect.flagLiteral(true))} as is_done, line.event_id, line.key from (${changeLog(ctx, parent, id)}) as line`

/**
 * Selects the keys of all timeline entries that the caller may see. The query leaves out sources
 * that the role or token may not read.
 */
function keysOf(ctx: Context, kind: LinkedEntity, parent: Parent, id: number): Rows<Key> {
  const sources = [
    ...(canCall(ctx, activities.listOperation) ? [activityKeys(ctx, kind, id)] : []),
    ...emailKeys<Key>(ctx, kind, id),
    changeKeys(ctx, parent, id),
  ]
  return ctx.db.selectFrom(sql<Key>`(${sql.join(sources, sql` union all `)})`.as('entries')).selectAll('entries')
}

const columns = { created_at: 'entries.created_at', id: 'entries.id', source: 'entries.source' }
const filters = {
  type: valueField('entries.type'),
  is_done: flagField('entries.is_done'),
  source: valueField('entries.source'),
}

function timelineOf(kind: LinkedEntity, parentOf: () => Parent) {
  return async (
    ctx: Context,
    { params: { id }, query }: { params: { id: number }; query: Query<'listLeadActivities'> },
  ): Promise<Schema<'TimelinePage'>> => {
    const parent = parentOf()
    await parent.assertVisible(ctx, id)
    const wanted = conditions(ctx, query, filters, [])
    const rows = wanted.reduce((rows, condition) => rows.where(condition), keysOf(ctx, kind, parent, id))
    // An id is unique only within its source, so sorting also uses the source.
    const order = { ...query, sort: ['-created_at', '-id', '-source'] }
    const { rows: keys, links, meta } = await page(ctx, rows, order, columns, columns.source)
    return { data: await entriesOf(ctx, parent, keys), links, meta }
  }
}

/** Returns the entries of a page, in the order of the keys. */
async function entriesOf(ctx: Context, { entity }: Parent, keys: readonly Key[]): Promise<Entry[]> {
  const of = (source: Key['source']): Key[] => keys.filter((key) => key.source === source)
  const ids = (source: Key['source']): number[] => of(source).map(({ id }) => id)
  const found: Record<Key['source'], Map<number, Entry>> = {
    activity: await activityEntries(ctx, ids('activity')),
    email: await emailEntries(ctx, ids('email')),
    event: await changeEntries(ctx, entity, of('event') as Line[]),
  }
  return keys.flatMap(({ source, id }) => found[source].get(id) ?? [])
}

async function activityEntries(ctx: Context, ids: readonly number[]): Promise<Map<number, Entry>> {
  const found = await activities.getMany(ctx, ids)
  // `getMany` without `include` returns related records as references.
  return new Map([...found].map(([id, activity]) => [id, { source: 'activity', ...activity } as Entry]))
}

export const timelines = {
  listLeadActivities: timelineOf('leads', () => leads),
  listPersonActivities: timelineOf('persons', () => persons),
  listOrganizationActivities: timelineOf('organizations', () => organizations),
  listProductActivities: timelineOf('products', () => products),
  listWarehouseActivities: timelineOf('warehouses', () => warehouses),
  listQuoteActivities: timelineOf('quotes', () => quotes),
} satisfies Partial<Handlers>
