// Handlers of quotes besides list, get, create, update and delete: mass deletion, export, tags,
// links to leads, the PDF, revisions, and the lists of the quotes of a lead or person.

import type { Handlers } from '../../kernel/handler.ts'
import { exportOf } from '../../kernel/resource/export.ts'
import { massDelete } from '../../kernel/resource/mass.ts'
import { leads } from '../leads/resource.ts'
import { persons } from '../persons/resource.ts'
import { createTagHandlers } from '../tags/tag-handlers.ts'
import { quoteColumns } from './columns.ts'
import { convertLeadToQuote } from './convert.ts'
import { linkHandlers } from './link-handlers.ts'
import { printQuote } from './print.ts'
import { quotes } from './resource.ts'
import { reviseQuote } from './revise.ts'

const tagged = createTagHandlers('quotes', quotes)

export const handlers = {
  massDeleteQuotes: massDelete(quotes),
  exportQuotes: exportOf(quotes, quoteColumns),
  printQuote,
  reviseQuote,
  listQuoteTags: tagged.list,
  attachQuoteTag: tagged.attach,
  detachQuoteTag: tagged.detach,
  ...linkHandlers,
} satisfies Partial<Handlers>

/** Handlers below a lead or person, which must be visible to the caller. */
export const subLists = {
  convertLeadToQuote,
  listLeadQuotes: async (ctx, { params, query }) => {
    await leads.assertVisible(ctx, params.id)
    return quotes.list(ctx, query, (rows) =>
      rows.where(
        'quotes.id',
        'in',
        ctx.db.selectFrom('lead_quotes').select('quote_id').where('lead_id', '=', params.id),
      ),
    )
  },
  listPersonQuotes: async (ctx, { params, query }) => {
    await persons.assertVisible(ctx, params.id)
    return quotes.list(ctx, query, (rows) => rows.where('quotes.person_id', '=', params.id))
  },
} satisfies Partial<Handlers>
