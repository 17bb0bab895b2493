// Makes a quote of a lead: its person, the address of the organization, its products and amounts.
import type { Schema } from '../../contract/types.ts'
import { assertCanCall, type Context, canCall, warn } from '../../kernel/context.ts'
import type { Handler } from '../../kernel/handler.ts'
import { newBody } from '../../kernel/resource/external-ids.ts'
import { daysMs } from '../../kernel/runtime/clock.ts'
import { addressParts, readAddress } from '../../kernel/values/address.ts'
import { transaction } from '../../kernel/write/write.ts'
import { quoteValidDays } from '../configuration/company.ts'
import { leads } from '../leads/resource.ts'
import { organizations } from '../organizations/resource.ts'
import { type QuoteBody, quotes } from './resource.ts'
import { todayOf } from './status.ts'

type Sent = Schema<'LeadQuoteConvert'>

export const convertLeadToQuote: Handler<'convertLeadToQuote'> = (ctx, { params, body }) =>
  transaction(ctx, async (ctx) => {
    assertCanCall(ctx, leads.getOperation)
    assertCanCall(ctx, quotes.getOperation)
    await leads.assertVisible(ctx, params.id)
    const lead = await leads.get(ctx, params.id)
    const sent = body as Sent
    const items = sent.items ?? itemsOf(lead)
    if (sent.items === undefined && lead.products.length > 0 && lead.products_amount !== lead.lead_value)
      warn(
        ctx,
        'items',
        `The products of the lead come to ${lead.products_amount}, and its value is ${lead.lead_value}.`,
      )
    const address = await billingAddress(ctx, sent.person_id ?? lead.person_id)
    const filled = {
      subject: lead.title,
      description: lead.description,
      ...(lead.person_id !== null && { person_id: lead.person_id }),
      ...(await ownerOf(ctx, lead)),
      expiry_date: await expiryDate(ctx),
      ...sent,
      billing_address: sent.billing_address === null ? null : { ...address, ...sent.billing_address },
      items,
      lead_id: lead.id,
    }
    const data = await quotes.create(ctx, newBody(ctx, 'createQuote', filled) as QuoteBody)
    return { data, message: 'Quote created.' }
  })

/** Returns one item for each product of the lead, or one for its value. */
function itemsOf({ title, lead_value: value, products }: Schema<'Lead'>): Schema<'QuoteItemInput'>[] {
  if (products.length === 0) return value > 0 ? [{ name: title, price: value }] : []
  return products.map(({ product_id, name, quantity, price }) => ({ product_id, name, quantity, price }))
}

/** Returns the parts of the address of the person's organization, if the caller may read it. */
async function billingAddress(ctx: Context, personId: number | null): Promise<Partial<Schema<'Address'>>> {
  if (personId === null || !canCall(ctx, organizations.getOperation)) return {}
  const row = await ctx.db
    .selectFrom('persons')
    .innerJoin('organizations', 'organizations.id', 'persons.organization_id')
    .select(['organizations.id', 'organizations.address'])
    .where('persons.id', '=', personId)
    .executeTakeFirst()
  if (!row || !(await organizations.visibleIds(ctx, [row.id])).has(row.id)) return {}
  const address = readAddress(row.address)
  return Object.fromEntries(addressParts.flatMap((part) => (address?.[part] ? [[part, address[part]]] : [])))
}

/** Returns the owner of the lead; nothing, which means the caller, when the owner is not active. */
async function ownerOf({ db }: Context, { user_id: id }: Schema<'Lead'>): Promise<{ user_id?: number }> {
  if (id === null) return {}
  const owner = await db.selectFrom('users').select('is_active').where('id', '=', id).executeTakeFirst()
  return owner?.is_active === 1 ? { user_id: id } : {}
}

async function expiryDate(ctx: Context): Promise<string> {
  const day = Date.parse(todayOf(ctx)) + daysMs(await quoteValidDays(ctx))
  return new Date(day).toISOString().slice(0, 10)
}
