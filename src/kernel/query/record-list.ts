// Returns pages of records that have no resource: jobs, workflow runs, deliveries, mails of a
// campaign. Filters, sort and pages work as in all lists. The caller builds the replies.

import type { Context } from '../context.ts'
import { conditions, type Fields, type QueryValues, type SearchField } from './filter.ts'
import { type Paged, page, type Rows, type SortColumn } from './page.ts'

interface Ledger<Row, Reply> {
  fields: Fields
  search?: readonly SearchField[]
  sort: Record<string, SortColumn>
  /**
   * The id column, which orders rows with equal sort keys. By default the newest record comes
   * first.
   */
  id: string
  /**
   * Converts the rows of a page to replies. Called once per page, so that each kind of reference
   * needs only one query.
   */
  present: (rows: Row[]) => Reply[] | Promise<Reply[]>
}

/** Returns one page of `rows`, filtered and sorted by the query parameters. */
export async function recordPage<Row extends object, Reply>(
  ctx: Context,
  rows: Rows<Row>,
  query: QueryValues,
  { fields, search = [], sort, id, present }: Ledger<Row, Reply>,
): Promise<{ data: Reply[] } & Pick<Paged<Row>, 'links' | 'meta'>> {
  const wanted = conditions(ctx, query, fields, search).reduce((some, condition) => some.where(condition), rows)
  const { rows: shown, links, meta } = await page(ctx, wanted, query, sort, id)
  return { data: await present(shown), links, meta }
}
