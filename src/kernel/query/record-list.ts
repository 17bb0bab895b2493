// Lists of records without a resource of their own: jobs, runs, deliveries, mails of a campaign.
// Filters, sort and pages work as everywhere; the caller builds the replies.

import type { Context } from '../context.ts'
import { conditions, type Fields, type Query, type SearchField } from './filter.ts'
import { type Paged, page, type Rows, type SortColumn } from './page.ts'

interface Ledger<Row, Reply> {
  fields: Fields
  search?: readonly SearchField[]
  sort: Record<string, SortColumn>
  /** Column of the id, the last tie-breaker; by default the newest record comes first. */
  id: string
  /** Called once per page, so that references take one query. */
  present: (rows: Row[]) => Reply[] | Promise<Reply[]>
}

/** One page of `rows` for a query. */
export async function recordPage<Row extends object, Reply>(
  ctx: Context,
  rows: Rows<Row>,
  query: Query,
  { fields, search = [], sort, id, present }: Ledger<Row, Reply>,
): Promise<{ data: Reply[] } & Pick<Paged<Row>, 'links' | 'meta'>> {
  const wanted = conditions(ctx, query, fields, search).reduce((some, condition) => some.where(condition), rows)
  const { rows: shown, links, meta } = await page(ctx, wanted, query, sort, id)
  return { data: await present(shown), links, meta }
}
