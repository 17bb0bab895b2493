// Which leads a quote is for (DOMAIN 9.5, 12.3): one link with one pair of events, whichever side it is made from. A link is a
// change of its own, of both records.
import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { notFound, ValidationErrors } from '../../kernel/errors.ts'
import type { HandlersFor } from '../../kernel/handler.ts'
import { visible } from '../../kernel/query/visibility.ts'
import { checkReference, expandReferences } from '../../kernel/resource/references.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { leads } from '../leads/resource.ts'
import { quotes } from './resource.ts'

interface Link {
  leadId: number
  quoteId: number
}

export async function isLinked(ctx: Context, { leadId, quoteId }: Link): Promise<boolean> {
  const row = await ctx.db
    .selectFrom('lead_quotes')
    .select('lead_id')
    .where('lead_id', '=', leadId)
    .where('quote_id', '=', quoteId)
    .executeTakeFirst()
  return row !== undefined
}

async function about(ctx: Context, { leadId, quoteId }: Link) {
  const quote = await ctx.db
    .selectFrom('quotes')
    .select(['id', 'subject'])
    .where('id', '=', quoteId)
    .executeTakeFirstOrThrow()
  const link = { lead_id: leadId, quote_id: quoteId, quote }
  return { link, target: { entity: 'leads', related: { type: 'quotes', id: quoteId } } }
}

/** True when they were not linked before. The lead changes with it; the quote is the caller's to touch. */
export async function linkLead(ctx: Context, { leadId, quoteId }: Link): Promise<boolean> {
  if (await isLinked(ctx, { leadId, quoteId })) return false
  const { link, target } = await about(ctx, { leadId, quoteId })
  await write(ctx, 'leads.quote.create', { ...target, input: { quote_id: quoteId } }, async (ctx) => {
    await ctx.db.insertInto('lead_quotes').values({ lead_id: leadId, quote_id: quoteId }).execute()
    return { id: leadId, entity: link }
  })
  await leads.touch(ctx, leadId)
  return true
}

/** Throws 404 when they are not linked, or the caller does not see both (DOMAIN 9.5). Both change. */
async function unlink(ctx: Context, { leadId, quoteId }: Link, missing: Error): Promise<void> {
  if (!(await isLinked(ctx, { leadId, quoteId }))) throw missing
  if (!(await quotes.visibleIds(ctx, [quoteId])).has(quoteId) || !(await leads.visibleIds(ctx, [leadId])).has(leadId))
    throw missing
  const { link, target } = await about(ctx, { leadId, quoteId })
  await write(ctx, 'leads.quote.delete', { ...target, input: {}, id: leadId, before: link }, async (ctx) => {
    await ctx.db.deleteFrom('lead_quotes').where('lead_id', '=', leadId).where('quote_id', '=', quoteId).execute()
    return { id: leadId, entity: null }
  })
  await leads.touch(ctx, leadId)
  await quotes.touch(ctx, quoteId)
}

/** Links what is not linked yet. What a body names anew must be in the caller's sight. */
async function attach(ctx: Context, link: Link, named: 'lead_id' | 'quote_id'): Promise<void> {
  if (await isLinked(ctx, link)) return
  const found = new ValidationErrors()
  if (named === 'lead_id') await checkReference({ ctx, found }, named, link.leadId, leads)
  else await checkReference({ ctx, found }, named, link.quoteId, quotes)
  found.throwIfAny()
  await linkLead(ctx, link)
  await quotes.touch(ctx, link.quoteId)
}

export const handlers: HandlersFor<
  'attachQuoteLead' | 'detachQuoteLead' | 'attachLeadQuote' | 'detachLeadQuote' | 'listQuoteLeads'
> = {
  attachQuoteLead: (ctx, { params, body }) =>
    transaction(ctx, async (ctx) => {
      await quotes.assertVisible(ctx, params.id)
      await attach(ctx, { leadId: body.lead_id, quoteId: params.id }, 'lead_id')
      return { data: await quotes.get(ctx, params.id), message: 'Quote linked to the lead.' }
    }),
  attachLeadQuote: (ctx, { params, body }) =>
    transaction(ctx, async (ctx) => {
      await leads.assertVisible(ctx, params.id)
      await attach(ctx, { leadId: params.id, quoteId: body.quote_id }, 'quote_id')
      return { data: await leads.get(ctx, params.id), message: 'Quote linked to the lead.' }
    }),
  detachQuoteLead: (ctx, { params }) =>
    transaction(ctx, async (ctx) => {
      await quotes.assertVisible(ctx, params.id)
      await unlink(ctx, { leadId: params.lead_id, quoteId: params.id }, notFound('linked lead', params.lead_id))
      return { message: 'Quote unlinked from the lead.' }
    }),
  detachLeadQuote: (ctx, { params }) =>
    transaction(ctx, async (ctx) => {
      await leads.assertVisible(ctx, params.id)
      await unlink(ctx, { leadId: params.id, quoteId: params.quote_id }, notFound('linked quote', params.quote_id))
      return { message: 'Quote unlinked from the lead.' }
    }),
  listQuoteLeads: async (ctx, { params, query }) => {
    await quotes.assertVisible(ctx, params.id)
    return leads.list(ctx, query, (rows) =>
      rows.where(
        'leads.id',
        'in',
        ctx.db.selectFrom('lead_quotes').select('lead_id').where('quote_id', '=', params.id),
      ),
    )
  },
}

/** Fills `leads` of a page of quotes, with one query. References are shown whoever owns their record. */
export async function gatherLeads(ctx: Context, replies: readonly Schema<'Quote'>[]): Promise<void> {
  const rows = await ctx.db
    .selectFrom('lead_quotes')
    .innerJoin('leads', 'leads.id', 'lead_quotes.lead_id')
    .select(['lead_quotes.quote_id', 'leads.id', 'leads.title'])
    .where(
      'lead_quotes.quote_id',
      'in',
      replies.map(({ id }) => id),
    )
    .orderBy('leads.id')
    .execute()
  for (const reply of replies)
    reply.leads = rows.filter(({ quote_id }) => quote_id === reply.id).map(({ id, title }) => ({ id, title }))
}

/** `include=quotes` of a page of leads: one query for the references, and those for the quotes themselves. */
export async function includeQuotes(ctx: Context, replies: readonly Schema<'Lead'>[]): Promise<void> {
  const rows = await ctx.db
    .selectFrom('lead_quotes')
    .innerJoin('quotes', 'quotes.id', 'lead_quotes.quote_id')
    .select(['lead_quotes.lead_id', 'quotes.id', 'quotes.subject'])
    .where(
      'lead_quotes.lead_id',
      'in',
      replies.map(({ id }) => id),
    )
    .orderBy('quotes.id')
    .execute()
  for (const reply of replies)
    reply.quotes = rows.filter(({ lead_id }) => lead_id === reply.id).map(({ id, subject }) => ({ id, subject }))
  await expandReferences(ctx, replies, ['quotes'], { quotes: () => quotes })
}

/** Of the quotes linked to a lead, how many the caller may see. */
export const quotesCount = (ctx: Context) =>
  sql<number>`(select count(*) from lead_quotes as link join quotes on quotes.id = link.quote_id where link.lead_id = leads.id and ${visible(ctx, 'quotes.user_id')})`.as(
    'quotes_count',
  )
