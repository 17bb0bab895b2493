// Revises a quote: makes a draft with its content. Both quotes name each other.
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { Problem } from '../../kernel/errors.ts'
import type { Handler } from '../../kernel/handler.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import { transaction } from '../../kernel/write/write.ts'
import { customAttributes } from '../attributes/attribute-set.ts'
import { type QuoteBody, quotes } from './resource.ts'

export const reviseQuote: Handler<'reviseQuote'> = (ctx, { params }) =>
  transaction(ctx, async (ctx) => {
    await quotes.assertVisible(ctx, params.id)
    const quote = await quotes.get(ctx, params.id)
    if (quote.status === 'draft') throw new Problem('state_conflict', 'A draft can be changed itself.')
    if (quote.revised_by_id !== null)
      throw new Problem('state_conflict', `The quote ${quote.revised_by_id} revises this one already.`)
    // The caller need not see the person and the leads of the quote, which the draft shares.
    const free = withoutVisibility(ctx)
    const data = await quotes.create(free, await copyOf(ctx, quote))
    const link: QuoteBody = { revised_by_id: data.id }
    await quotes.update(free, quote.id, link)
    return { data, message: 'Quote revised.' }
  })

async function copyOf(ctx: Context, quote: Schema<'Quote'>): Promise<QuoteBody> {
  const unique = (await customAttributes(ctx, 'quotes')).filter(({ isUnique }) => isUnique).map(({ code }) => code)
  const values = Object.entries(quote.custom_attributes).filter(([code]) => !unique.includes(code))
  return {
    revises: { id: quote.id, revision: quote.revision, leadIds: quote.leads.map(({ id }) => id) },
    subject: quote.subject,
    description: quote.description,
    person_id: quote.person_id,
    ...(quote.user_id !== null && { user_id: quote.user_id }),
    billing_address: quote.billing_address,
    shipping_address: quote.shipping_address,
    expiry_date: quote.expiry_date,
    discount_percent: quote.discount_percent,
    adjustment_amount: quote.adjustment_amount,
    items: quote.items.map(copyOfItem),
    tag_ids: quote.tags.map(({ id }) => id),
    custom_attributes: Object.fromEntries(values),
  }
}

function copyOfItem(item: Schema<'QuoteItem'>): Schema<'QuoteItemInput'> {
  const { product_id, name, price, quantity, coupon_code, discount_percent, tax_percent, sort_order } = item
  const { discount_amount, tax_amount } = item
  const copied = { product_id, name, price, quantity, coupon_code, discount_percent, tax_percent, sort_order }
  return { ...copied, discount_amount, tax_amount }
}
