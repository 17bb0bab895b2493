// Handlers of the links between quotes and leads. A link can be added and removed from
// the quote and from the lead. Also lists the leads of a quote.
import type { Context } from '../../kernel/context.ts'
import { notFound, ValidationErrors } from '../../kernel/errors.ts'
import type { Handlers } from '../../kernel/handler.ts'
import { checkReference } from '../../kernel/resource/references.ts'
import { transaction, write } from '../../kernel/write/write.ts'
import { leads } from '../leads/resource.ts'
import { describeLink, isLinked, type LeadQuote, linkLead } from './lead-links.ts'
import { quotes } from './resource.ts'

/**
 * Removes a link and raises the version of the lead and the quote. Throws the error `missing` when
 * the link does not exist or the caller may not see both records.
 */
async function unlink(ctx: Context, { leadId, quoteId }: LeadQuote, missing: Error): Promise<void> {
  if (!(await isLinked(ctx, { leadId, quoteId }))) throw missing
  if (!(await quotes.visibleIds(ctx, [quoteId])).has(quoteId) || !(await leads.visibleIds(ctx, [leadId])).has(leadId))
    throw missing
  const { link, target } = await describeLink(ctx, { leadId, quoteId })
  await write(ctx, 'leads.quote.delete', { ...target, input: {}, id: leadId, before: link }, async (ctx) => {
    await ctx.db.deleteFrom('lead_quotes').where('lead_id', '=', leadId).where('quote_id', '=', quoteId).execute()
    return { id: leadId, entity: null }
  })
  await leads.touch(ctx, leadId)
  await quotes.touch(ctx, quoteId)
}

/**
 * Links a lead and a quote, unless the link exists. `named` is the body field with the id of the
 * linked record. Throws 422 when the caller may not see that record.
 */
async function attach(ctx: Context, link: LeadQuote, named: 'lead_id' | 'quote_id'): Promise<void> {
  if (await isLinked(ctx, link)) return
  const errors = new ValidationErrors()
  if (named === 'lead_id') await checkReference({ ctx, errors }, named, link.leadId, leads)
  else await checkReference({ ctx, errors }, named, link.quoteId, quotes)
  errors.throwIfAny()
  await linkLead(ctx, link)
  await quotes.touch(ctx, link.quoteId)
}

export const linkHandlers = {
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
} satisfies Partial<Handlers>
