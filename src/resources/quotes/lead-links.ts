// Links between leads and quotes. A link can be made from the lead or from the
// quote. Both ways emit the same pair of events and raise the version of both records.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { write } from '../../kernel/write/write.ts'
import { leads } from '../leads/resource.ts'

export interface LeadQuote {
  leadId: number
  quoteId: number
}

export async function isLinked(ctx: Context, { leadId, quoteId }: LeadQuote): Promise<boolean> {
  const row = await ctx.db
    .selectFrom('lead_quotes')
    .select('lead_id')
    .where('lead_id', '=', leadId)
    .where('quote_id', '=', quoteId)
    .executeTakeFirst()
  return row !== undefined
}

export async function describeLink(ctx: Context, { leadId, quoteId }: LeadQuote) {
  const quote = await ctx.db
    .selectFrom('quotes')
    .select(['id', 'subject'])
    .where('id', '=', quoteId)
    .executeTakeFirstOrThrow()
  const link = { lead_id: leadId, quote_id: quoteId, quote }
  return { link, target: { entity: 'leads', related: { type: 'quotes', id: quoteId } } }
}

/**
 * Links a lead and a quote, and raises the version of the lead. Does nothing for an existing
 * link. The calling function must raise the version of the quote.
 */
export async function linkLead(ctx: Context, { leadId, quoteId }: LeadQuote): Promise<void> {
  if (await isLinked(ctx, { leadId, quoteId })) return
  const { link, target } = await describeLink(ctx, { leadId, quoteId })
  await write(ctx, 'leads.quote.create', { ...target, input: { quote_id: quoteId } }, async (ctx) => {
    await ctx.db.insertInto('lead_quotes').values({ lead_id: leadId, quote_id: quoteId }).execute()
    return { id: leadId, entity: link }
  })
  await leads.touch(ctx, leadId)
}

/**
 * Sets `leads` of a page of quotes, with one query. The references include leads that the caller
 * may not see, because a reference shows only id and title.
 */
export async function loadLeadRefs(ctx: Context, replies: readonly Schema<'Quote'>[]): Promise<void> {
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
