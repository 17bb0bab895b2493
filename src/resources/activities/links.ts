// What activities are about: links to leads, persons, organizations and products, and who sees an activity because of them
// (DOMAIN 7.4, 13.2).
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { Resource, Writing } from '../../kernel/resource.ts'
import { visible } from '../../kernel/visibility.ts'
import { leads } from '../leads/resource.ts'
import { organizations } from '../organizations/resource.ts'
import { personRef } from '../persons/contacts.ts'
import { persons } from '../persons/resource.ts'
import { products } from '../products/resource.ts'

type Body = Schema<'ActivityUpdate'>
type Activity = Schema<'Activity'>
type Kind = 'leads' | 'persons' | 'organizations' | 'products'

interface Link {
  table: `${string}_activities`
  /** The column of the link table, and the key of a body that adds one link. */
  one: 'lead_id' | 'person_id' | 'organization_id' | 'product_id'
  many: 'lead_ids' | 'person_ids' | 'organization_ids' | 'product_ids'
  resource: () => Pick<Resource<unknown, never>, 'seen' | 'noun'>
  /** Columns of the target that its reference shows. */
  label: readonly string[]
}

const links: Record<Kind, Link> = {
  leads: { table: 'lead_activities', one: 'lead_id', many: 'lead_ids', resource: () => leads, label: ['title'] },
  persons: {
    table: 'person_activities',
    one: 'person_id',
    many: 'person_ids',
    resource: () => persons,
    label: ['name', 'emails'],
  },
  organizations: {
    table: 'organization_activities',
    one: 'organization_id',
    many: 'organization_ids',
    resource: () => organizations,
    label: ['name'],
  },
  products: {
    table: 'product_activities',
    one: 'product_id',
    many: 'product_ids',
    resource: () => products,
    label: ['sku', 'name'],
  },
}

const kinds = Object.keys(links) as Kind[]

/** The caller sees an activity of a visible owner or participant, or one about a visible record. */
export function visibleActivity(ctx: Context): RawBuilder<SqlBool> {
  if (!ctx.user?.visibleOwners) return sql<SqlBool>`1 = 1`
  const through = (kind: Kind) =>
    sql`exists (select 1 from ${sql.table(links[kind].table)} as link join ${sql.table(kind)} as target on target.id = ${sql.ref(`link.${links[kind].one}`)} where link.activity_id = activities.id and ${visible(ctx, 'target.user_id')})`
  const participates = sql`exists (select 1 from activity_participants as part where part.activity_id = activities.id and ${visible(ctx, 'part.user_id')})`
  const ways = [
    visible(ctx, 'activities.user_id'),
    participates,
    through('leads'),
    through('persons'),
    through('organizations'),
  ]
  return sql<SqlBool>`(${sql.join(ways, sql` or `)})`
}

async function linkedIds(ctx: Context, kind: Kind, activityId: number): Promise<number[]> {
  const { table, one } = links[kind]
  const { rows } = await sql<{
    id: number
  }>`select ${sql.ref(one)} as id from ${sql.table(table)} where activity_id = ${activityId}`.execute(ctx.db)
  return rows.map(({ id }) => id)
}

/** The complete set a body asks for; undefined when it says nothing about this kind. */
function wanted(body: Body, { one, many }: Link, present: readonly number[]): Set<number> | undefined {
  if (body[many] === undefined && body[one] === undefined) return undefined
  return new Set([...(body[many] ?? present), ...(body[one] === undefined ? [] : [body[one]])])
}

/** Finds new links to records that do not exist or are out of the caller's sight. Those that stay are not asked about. */
export async function checkLinks({ ctx, current, found }: Writing<{ id: number }>, body: Body): Promise<void> {
  for (const kind of kinds) {
    const link = links[kind]
    const sent = [
      ...(body[link.many] ?? []).map((id, index) => ({ field: `${link.many}.${index}`, id })),
      ...[body[link.one] ?? []].flat().map((id) => ({ field: link.one, id })),
    ]
    if (sent.length === 0) continue
    const present = new Set(current ? await linkedIds(ctx, kind, current.id) : [])
    const added = sent.filter(({ id }) => !present.has(id))
    const resource = link.resource()
    const seen = await resource.seen(
      ctx,
      added.map(({ id }) => id),
    )
    for (const { field, id } of added) if (!seen.has(id)) found.invalid(field, `No ${resource.noun} has id ${id}.`)
  }
}

/** Writes the difference between the links there are and those the body asks for. */
export async function settleLinks(ctx: Context, activityId: number, body: Body): Promise<void> {
  for (const kind of kinds) {
    const { table, one } = links[kind]
    const present = await linkedIds(ctx, kind, activityId)
    const ids = wanted(body, links[kind], present)
    if (!ids) continue
    const gone = present.filter((id) => !ids.has(id))
    if (gone.length > 0)
      await sql`delete from ${sql.table(table)} where activity_id = ${activityId} and ${sql.ref(one)} in (${sql.join(gone)})`.execute(
        ctx.db,
      )
    const added = [...ids].filter((id) => !present.includes(id))
    if (added.length === 0) continue
    await sql`insert into ${sql.table(table)} (${sql.ref(one)}, activity_id) values ${sql.join(added.map((id) => sql`(${id}, ${activityId})`))}`.execute(
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
}

/** Fills the links of a page of replies, with one query per kind. References are shown whoever owns their record. */
export async function gatherLinks(ctx: Context, replies: readonly Activity[]): Promise<void> {
  const byId = new Map(replies.map((reply) => [reply.id, reply]))
  for (const kind of kinds) {
    const { table, one, many, label } = links[kind]
    const { rows } =
      await sql<LinkRow>`select link.activity_id as activity, target.id, ${sql.join(label.map((column) => sql.ref(`target.${column}`)))} from ${sql.table(table)} as link join ${sql.table(kind)} as target on target.id = ${sql.ref(`link.${one}`)} where link.activity_id in (${sql.join([...byId.keys()])}) order by target.id`.execute(
        ctx.db,
      )
    for (const row of rows) {
      const reply = byId.get(row.activity)
      if (!reply) continue
      reply[many].push(row.id)
      if (kind === 'leads') reply.leads.push({ id: row.id, title: row.title })
      else if (kind === 'persons') reply.persons.push(personRef(row.id, row.name, row.emails))
      else if (kind === 'organizations') reply.organizations.push({ id: row.id, name: row.name })
      else reply.products.push({ id: row.id, sku: row.sku, name: row.name })
    }
  }
}

/** Activities that are about this record and about nothing else. */
export async function aboutOnly(ctx: Context, kind: Kind, id: number): Promise<number[]> {
  const { table, one } = links[kind]
  const others = kinds.map((each) => {
    const link = links[each]
    const itself = each === kind ? sql` and ${sql.ref(`other.${one}`)} <> ${id}` : sql``
    return sql`not exists (select 1 from ${sql.table(link.table)} as other where other.activity_id = link.activity_id${itself})`
  })
  const { rows } = await sql<{
    id: number
  }>`select link.activity_id as id from ${sql.table(table)} as link where ${sql.ref(`link.${one}`)} = ${id} and ${sql.join(others, sql` and `)} order by 1`.execute(
    ctx.db,
  )
  return rows.map((row) => row.id)
}
