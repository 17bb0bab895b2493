// Exports (DOMAIN 21.2): every record a list would show, from one moment of the database, as JSON lines or CSV. Rows are read
// and written in small batches: memory does not grow with them, and other requests get their turn in between.
import { setImmediate as turn } from 'node:timers/promises'
import { stringify } from 'csv-stringify/sync'
import { sql } from 'kysely'
import type { Cell, Column } from './cells.ts'
import type { Context } from './context.ts'
import { type Download, download } from './download.ts'
import { today } from './format.ts'
import type { Resource } from './resource.ts'

type Exported<Reply> = Pick<Resource<Reply, never>, 'entity' | 'table' | 'matching' | 'many'>
type Query = { format?: 'ndjson' | 'csv' }

const batch = 200
/** As long as an export is open the database keeps every page that was replaced: who takes nothing any more is let go. */
const patienceMs = 60_000

/** The handler of an export. `columns` is asked once for each CSV, as some are known at run time only. */
export const exportOf =
  <Reply>(resource: Exported<Reply>, columns: (ctx: Context) => Column<Reply>[] | Promise<Column<Reply>[]>) =>
  async (ctx: Context, { query }: { query: Query }): Promise<Download> => {
    // What is wrong with the query is said before the first byte.
    await resource.matching(ctx, query)
    const format = query.format ?? 'ndjson'
    const day = today(ctx.time, ctx.services.config.timezone)
    return download({
      mediaType: format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson',
      name: `${resource.entity}-${day}.${format}`,
      body: format === 'csv' ? csv(ctx, resource, query, columns) : ndjson(ctx, resource, query),
    })
  }

async function* ndjson<Reply>(ctx: Context, resource: Exported<Reply>, query: Query): AsyncGenerator<string> {
  for await (const replies of batches(ctx, resource, query))
    yield replies.map((reply) => `${JSON.stringify(reply)}\n`).join('')
}

async function* csv<Reply>(
  ctx: Context,
  resource: Exported<Reply>,
  query: Query,
  columnsOf: (ctx: Context) => Column<Reply>[] | Promise<Column<Reply>[]>,
): AsyncGenerator<string> {
  const columns = await columnsOf(ctx)
  yield lines([columns.map(({ name }) => name)])
  for await (const replies of batches(ctx, resource, query))
    yield lines(replies.map((reply) => columns.map(({ cell }) => cell(reply))))
}

/** RFC 4180. A text that a spreadsheet would compute begins with an apostrophe. */
const lines = (rows: Cell[][]): string =>
  stringify(rows, { record_delimiter: '\r\n', escape_formulas: true, cast: { boolean: String } })

/** The records in the order of the query, as `get` shows them. Closed when it ends, fails or is no longer read. */
async function* batches<Reply>(ctx: Context, resource: Exported<Reply>, query: Query): AsyncGenerator<Reply[]> {
  const snapshot = await ctx.services.store.snapshot()
  const inside: Context = { ...ctx, db: snapshot.db }
  let patience: NodeJS.Timeout | undefined
  try {
    const id = sql.ref<number>(`${resource.table}.id`).as('id')
    const rows = (await resource.matching(inside, query)).clearSelect().select(id)
    for await (const ids of chunks(snapshot.each<{ id: number }>(rows))) {
      const replies = await resource.many(inside, ids)
      await turn()
      patience = setTimeout(() => void snapshot.close(), patienceMs).unref()
      yield ids.flatMap((each) => replies.get(each) ?? [])
      clearTimeout(patience)
    }
  } finally {
    clearTimeout(patience)
    await snapshot.close()
  }
}

async function* chunks(rows: AsyncIterable<{ id: number }>): AsyncGenerator<number[]> {
  let ids: number[] = []
  for await (const { id } of rows) {
    ids.push(id)
    if (ids.length < batch) continue
    yield ids
    ids = []
  }
  if (ids.length > 0) yield ids
}
