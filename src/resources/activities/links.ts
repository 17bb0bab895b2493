// Links from activities to leads, persons, organizations, products, warehouses and quotes. A link
// to a visible record can make the activity visible.

import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { SqlCaller } from '../../kernel/query/caller-query.ts'
import { allInSight, idsInSight, visible, visibleOwner } from '../../kernel/query/visibility.ts'
import type { Resource, Writing } from '../../kernel/resource/define-resource.ts'
import { whyMissing } from '../../kernel/resource/references.ts'
import { leads } from '../leads/resource.ts'
import { organizations } from '../organizations/resource.ts'
import { personRef } from '../persons/contacts.ts'
import { persons } from '../persons/resource.ts'
import { products } from '../products/resource.ts'
import { quotes } from '../quotes/resource.ts'
import { warehouses } from '../warehouses/resource.ts'

type Activity = Schema<'Activity'>
export type LinkedEntity = 'leads' | 'persons' | 'organizations' | 'products' | 'warehouses' | 'quotes'
export type Noun = 'lead' | 'person' | 'organization' | 'product' | 'warehouse' | 'quote'
/** The link fields of a body. `lead_ids` replaces all links to leads; `lead_id` adds one link. */
export type LinkInput = { [N in Noun as `${N}_id`]?: number } & { [N in Noun as `${N}_ids`]?: number[] }

/** Returns the link fields of a record without links, which `loadLinks` fills. */
export const noLinks = (): Record<`${Noun}_ids` | LinkedEntity, never[]> => ({
  lead_ids: [],
  person_ids: [],
  organization_ids: [],
  product_ids: [],
  warehouse_ids: [],
  quote_ids: [],
  leads: [],
  persons: [],
  organizations: [],
  products: [],
  warehouses: [],
  quotes: [],
})

interface Link {
  noun: Noun
  resource: () => Pick<Resource<unknown, never>, 'visibleIds' | 'noun'>
  /** The columns shown in a reference to the linked record. */
  label: readonly string[]
  /** Whether a user who sees the linked record also sees the activity. */
  reveals: boolean
}

const links: Record<LinkedEntity, Link> = {
  leads: { noun: 'lead', resource: () => leads, label: ['title'], reveals: true },
  persons: { noun: 'person', resource: () => persons, label: ['name', 'emails'], reveals: true },
  organizations: { noun: 'organization', resource: () => organizations, label: ['name'], reveals: true },
  products: { noun: 'product', resource: () => products, label: ['sku', 'name'], reveals: false },
  warehouses: { noun: 'warehouse', resource: () => warehouses, label: ['name'], reveals: false },
  quotes: { noun: 'quote', resource: () => quotes, label: ['subject'], reveals: true },
}

export const linkedEntities = Object.keys(links) as LinkedEntity[]
const tableOf = (kind: LinkedEntity): `${Noun}_activities` => `${links[kind].noun}_activities`
const columnOf = (kind: LinkedEntity): `${Noun}_id` => `${links[kind].noun}_id`
const setOf = (kind: LinkedEntity): `${Noun}_ids` => `${links[kind].noun}_ids`

/**
 * Returns the SQL condition for the activities that the caller may see: those with a visible owner
 * or participant, or with a link to a visible record.
 */
export function visibleActivity(ctx: SqlCaller): RawBuilder<SqlBool> {
  if (!ctx.user?.visibleOwners) return sql<SqlBool>`1 = 1`
  // SQLite reads the tables of a cross join in the given order. The link table comes first, because
  // an activity has few links but an owner may have many records.
  const through = (kind: LinkedEntity) =>
    sql`exists (select 1 from ${sql.table(tableOf(kind))} as link cross join ${sql.table(kind)} as target where link.activity_id = activities.id and target.id = ${sql.ref(`link.${columnOf(kind)}`)} and ${visible(ctx, 'target.user_id', kind)})`
  const participates = sql`exists (select 1 from activity_participants as part where part.activity_id = activities.id and ${visible(ctx, 'part.user_id')})`
  const ways = [
    visible(ctx, 'activities.user_id'),
    participates,
    ...linkedEntities.filter((kind) => links[kind].reveals).map(through),
  ]
  return sql<SqlBool>`(${sql.join(ways, sql` or `)})`
}

/** Returns subqueries of the ids of the activities of `visibleActivity`, one for each way. */
export const activitiesInSight = (ctx: SqlCaller): RawBuilder<unknown>[] => [
  ...idsInSight(ctx, 'activities'),
  sql`select part.activity_id from activity_participants as part where ${visibleOwner(ctx, sql.ref('part.user_id'))}`,
  ...linkedEntities
    .filter((kind) => links[kind].reveals)
    .map(
      (kind) =>
        sql`select link.activity_id from ${allInSight(ctx, kind)} as target cross join ${sql.table(tableOf(kind))} as link where ${sql.ref(`link.${columnOf(kind)}`)} = target.id`,
    ),
]

async function linkedIds(ctx: Context, kind: LinkedEntity, activityId: number): Promise<number[]> {
  const { rows } = await sql<{
    id: number
  }>`select ${sql.ref(columnOf(kind))} as id from ${sql.table(tableOf(kind))} where activity_id = ${activityId}`.execute(
    ctx.db,
  )
  return rows.map(({ id }) => id)
}

/**
 * Returns the ids of all linked records of one entity after the write. Returns undefined when the
 * body contains no links to this entity.
 */
function requestedLinks(body: LinkInput, kind: LinkedEntity, present: readonly number[]): Set<number> | undefined {
  const [many, one] = [body[setOf(kind)], body[columnOf(kind)]]
  if (many === undefined && one === undefined) return undefined
  return new Set([...(many ?? present), ...(one === undefined ? [] : [one])])
}

/**
 * Reports new links to records that do not exist or are not visible. Links that are already stored
 * are not checked again.
 */
export async function checkLinks({ ctx, current, errors }: Writing<{ id: number }>, body: LinkInput): Promise<void> {
  for (const kind of linkedEntities) {
    const sent = [
      ...(body[setOf(kind)] ?? []).map((id, index) => ({ field: `${setOf(kind)}.${index}`, id })),
      ...[body[columnOf(kind)] ?? []].flat().map((id) => ({ field: columnOf(kind) as string, id })),
    ]
    if (sent.length === 0) continue
    const present = new Set(current ? await linkedIds(ctx, kind, current.id) : [])
    const added = sent.filter(({ id }) => !present.has(id))
    const resource = links[kind].resource()
    const seen = await resource.visibleIds(
      ctx,
      added.map(({ id }) => id),
    )
    for (const { field, id } of added) if (!seen.has(id)) errors.invalid(field, await whyMissing(ctx, resource, id))
  }
}

/** Adds and removes stored links so that they match the body. */
export async function saveLinks(ctx: Context, activityId: number, body: LinkInput): Promise<void> {
  for (const kind of linkedEntities) {
    if (body[setOf(kind)] === undefined && body[columnOf(kind)] === undefined) continue
    const [table, column] = [sql.table(tableOf(kind)), sql.ref(columnOf(kind))]
    const present = await linkedIds(ctx, kind, activityId)
    const ids = requestedLinks(body, kind, present) ?? new Set()
    const gone = present.filter((id) => !ids.has(id))
    if (gone.length > 0)
      await sql`delete from ${table} where activity_id = ${activityId} and ${column} in (${sql.join(gone)})`.execute(
        ctx.db,
      )
    const added = [...ids].filter((id) => !present.includes(id))
    if (added.length === 0) continue
    await sql`insert into ${table} (${column}, activity_id) values ${sql.join(added.map((id) => sql`(${id}, ${activityId})`))}`.execute(
      ctx.db,
    )
  }
}

interface LinkRow {
  activity: number
  id: number
  title: string
  name: string
  emails: string
  sku: string
  subject: string
}

/**
 * Adds the links to each activity of a page, with one query per entity. References ignore
 * visibility.
 */
export async function loadLinks(ctx: Context, replies: readonly Activity[]): Promise<void> {
  const byId = new Map(replies.map((reply) => [reply.id, reply]))
  for (const kind of linkedEntities) {
    const { rows } =
      await sql<LinkRow>`select link.activity_id as activity, target.id, ${sql.join(links[kind].label.map((column) => sql.ref(`target.${column}`)))} from ${sql.table(tableOf(kind))} as link join ${sql.table(kind)} as target on target.id = ${sql.ref(`link.${columnOf(kind)}`)} where link.activity_id in (${sql.join([...byId.keys()])}) order by target.id`.execute(
        ctx.db,
      )
    for (const row of rows) {
      const reply = byId.get(row.activity)
      if (!reply) continue
      reply[setOf(kind)].push(row.id)
      pushReference[kind](reply, row)
    }
  }
}

const pushReference: Record<LinkedEntity, (reply: Activity, row: LinkRow) => void> = {
  leads: ({ leads }, { id, title }) => leads.push({ id, title }),
  persons: ({ persons }, { id, name, emails }) => persons.push(personRef(id, name, emails)),
  organizations: ({ organizations }, { id, name }) => organizations.push({ id, name }),
  products: ({ products }, { id, sku, name }) => products.push({ id, sku, name }),
  warehouses: ({ warehouses }, { id, name }) => warehouses.push({ id, name }),
  quotes: ({ quotes }, { id, subject }) => quotes.push({ id, subject }),
}

export const isLinkedTo = (kind: LinkedEntity, id: number): RawBuilder<SqlBool> =>
  sql<SqlBool>`activities.id in (select activity_id from ${sql.table(tableOf(kind))} where ${sql.ref(columnOf(kind))} = ${id})`

/** Returns the ids of the activities that are linked to this record and to no other record. */
export async function linkedOnlyTo(ctx: Context, kind: LinkedEntity, id: number): Promise<number[]> {
  const others = linkedEntities.map((each) => {
    const itself = each === kind ? sql` and ${sql.ref(`other.${columnOf(kind)}`)} <> ${id}` : sql``
    return sql`not exists (select 1 from ${sql.table(tableOf(each))} as other where other.activity_id = link.activity_id${itself})`
  })
  const { rows } = await sql<{
    id: number
  }>`select link.activity_id as id from ${sql.table(tableOf(kind))} as link where ${sql.ref(`link.${columnOf(kind)}`)} = ${id} and ${sql.join(others, sql` and `)} order by 1`.execute(
    ctx.db,
  )
  return rows.map((row) => row.id)
}
