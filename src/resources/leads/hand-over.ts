// Hand-over: leads get new owners, together with the person, organization, quotes and open
// activities that had the owner of their lead.
import { type RawBuilder, sql } from 'kysely'
import type { Reply, Schema } from '../../contract/types.ts'
import { assertCanCall, type Context } from '../../kernel/context.ts'
import { notFound, ValidationErrors } from '../../kernel/errors.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import { checkReferences } from '../../kernel/resource/references.ts'
import { transaction } from '../../kernel/write/write.ts'
import { activeUsers } from '../users/owner.ts'
import { users } from '../users/resource.ts'
import { leads } from './resource.ts'

type Kind = Schema<'HandOverKind'>
type Counts = Reply<'handOverLeads'>['data']

const atOnce = 100

/** The records that can go with a lead: table, operation that changes them, ids. */
const companions = {
  person: {
    table: 'persons',
    operation: 'updatePerson',
    of: (lead) => sql`select person_id from leads where id = ${lead}`,
  },
  organization: {
    table: 'organizations',
    operation: 'updateOrganization',
    of: (lead) =>
      sql`select persons.organization_id from leads join persons on persons.id = leads.person_id where leads.id = ${lead}`,
  },
  quotes: {
    table: 'quotes',
    operation: 'updateQuote',
    of: (lead) => sql`select quote_id from lead_quotes where lead_id = ${lead}`,
  },
  activities: {
    table: 'activities',
    operation: 'updateActivity',
    of: (lead) =>
      sql`select activities.id from lead_activities join activities on activities.id = lead_activities.activity_id where lead_id = ${lead} and not activities.is_done`,
  },
} as const satisfies Record<
  Kind,
  { table: string; operation: Parameters<typeof assertCanCall>[1]; of: (lead: number) => RawBuilder<unknown> }
>

/** Returns the ids of the records of a kind that have the owner of their lead. */
async function companionsOf(
  { db }: Context,
  kind: Kind,
  lead: { id: number; user_id: number | null },
): Promise<number[]> {
  const { table, of } = companions[kind]
  const rows = db
    .selectFrom(table)
    .select('id')
    .where(sql.ref('id'), 'in', sql<number>`(${of(lead.id)})`)
    .where('user_id', lead.user_id === null ? 'is' : '=', lead.user_id)
  return (await rows.orderBy('id').execute()).map(({ id }) => id)
}

/** Hands the leads over. Must run in a transaction. */
async function handOver(
  ctx: Context,
  ids: readonly number[],
  { user_ids: owners, with: kinds = [] }: Schema<'HandOver'>,
): Promise<Counts> {
  for (const kind of kinds) assertCanCall(ctx, companions[kind].operation)
  const counts: Counts = { leads: 0, persons: 0, organizations: 0, quotes: 0, activities: 0, remaining: 0 }
  if (ids.length === 0) return counts
  const ownerOf = new Map<string, number>()
  const rows = await ctx.db
    .selectFrom('leads')
    .select(['id', 'user_id', 'person_id'])
    .where('id', 'in', [...ids])
    .orderBy('id')
    .execute()
  // A record may go out of view before the next change of it.
  const all = withoutVisibility(ctx)
  for (const lead of rows) {
    const key = lead.person_id === null ? `lead ${lead.id}` : `person ${lead.person_id}`
    const user_id = ownerOf.get(key) ?? (owners[ownerOf.size % owners.length] as number)
    ownerOf.set(key, user_id)
    if (user_id === lead.user_id) continue
    for (const kind of kinds) {
      const { table } = companions[kind]
      const body = { user_id, ...(kind === 'activities' && { allow_overlap: true }) }
      for (const id of await companionsOf(ctx, kind, lead)) {
        await ctx.services.resources.get(table)?.update(all, id, body as never)
        counts[table]++
      }
    }
    await leads.update(all, lead.id, { user_id })
    counts.leads++
  }
  return counts
}

const replyOf = (data: Counts): Reply<'handOverLeads'> => ({
  data,
  message: `${data.leads} ${data.leads === 1 ? 'lead' : 'leads'} handed over.`,
})

async function checkOwners(ctx: Context, errors: ValidationErrors, owners: readonly number[]): Promise<void> {
  const active = await activeUsers(ctx, owners)
  for (const [index, id] of owners.entries())
    if (!active.has(id)) errors.invalid(`user_ids.${index}`, `No active user has id ${id}.`)
}

export const handOverHandlers = {
  handOverLeads: (ctx, { body }) =>
    transaction(ctx, async (ctx) => {
      const errors = new ValidationErrors()
      await checkReferences({ ctx, errors }, 'lead_ids', body.lead_ids, leads)
      await checkOwners(ctx, errors, body.user_ids)
      errors.throwIfAny()
      return replyOf(await handOver(ctx, body.lead_ids, body))
    }),
  handOverUser: (ctx, { params: { id }, body }) =>
    transaction(ctx, async (ctx) => {
      if (!(await users.exists(ctx, id))) throw notFound('user', id)
      const errors = new ValidationErrors()
      await checkOwners(ctx, errors, body.user_ids)
      errors.throwIfAny()
      const owned = (await leads.query(ctx, { user_id: [id] })).clearSelect().clearOrderBy()
      const { total } = await owned.select(({ fn }) => fn.countAll<number>().as('total')).executeTakeFirstOrThrow()
      const first = owned.select(sql<number>`leads.id`.as('id')).orderBy('leads.id').limit(atOnce)
      const user_ids = body.user_ids.filter((each) => each !== id)
      const rows = user_ids.length === 0 ? [] : await first.execute()
      const ids = rows.map((row) => row.id)
      const counts = await handOver(ctx, ids, { ...body, user_ids })
      return replyOf({ ...counts, remaining: Number(total) - counts.leads })
    }),
} satisfies Partial<Handlers>
