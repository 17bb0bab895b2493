// The quotes of a lead: the column `quotes_count`, and `include=quotes`. The quotes resource
// imports leads, so this file gets the quotes resource from the services.

import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import { expandReferences } from '../../kernel/resource/references.ts'

/**
 * Adds the quotes of a page of leads, for `include=quotes`. One query loads the links for all
 * leads.
 */
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
  const quotes = ctx.services.resources.get('quotes')
  if (quotes) await expandReferences(ctx, replies, ['quotes'], { quotes: () => quotes })
}

/**
 * A column for queries of leads: the number of the lead's quotes. A caller who sees a lead sees all
 * of them.
 */
export const quotesCount = sql<number>`(select count(*) from lead_quotes as link where link.lead_id = leads.id)`.as(
  'quotes_count',
)
