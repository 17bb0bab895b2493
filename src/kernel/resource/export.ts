// Exports all records of a list from one snapshot of the database, as JSON lines or CSV (DOMAIN
// 21.2). Rows are read and sent in small batches. Memory use is therefore constant, and other
// requests run in between.
import { stringify } from 'csv-stringify/sync'
import { sql } from 'kysely'
import { renewed } from '../auth/sessions.ts'
import type { Context, Services } from '../context.ts'
import { Problem } from '../errors.ts'
import { preferred } from '../files/content-negotiation.ts'
import { type Download, download } from '../files/download.ts'
import { adaptiveBatches, yieldToEventLoop } from '../runtime/cooperative.ts'
import { today } from '../values/format.ts'
import { type Cell, type CsvColumn, escapeFormula } from './csv-cells.ts'
import type { Resource } from './define-resource.ts'
import { patienceOf } from './export-stall.ts'

type Exported<Reply> = Pick<Resource<Reply, never>, 'entity' | 'table' | 'query' | 'getMany'>
type Query = { format?: 'ndjson' | 'csv' }
const formats = { 'application/x-ndjson': 'ndjson', 'text/csv': 'csv' } as const

const batch = 200
/** The minimum number of rows per batch, because each query has a fixed cost. */
const fewest = 10
const first = 50
const maxExportMs = 15 * 60_000
/**
 * The maximum number of concurrent exports per server. Each export occupies a database connection.
 */
export const maxExportsAtOnce = 4
/**
 * The running exports of each server, one object per export. `p-limit` does not fit, because it
 * makes an export above the maximum wait, and this export is refused.
 */
const running = new WeakMap<Services, Set<object>>()

/**
 * Returns the handler of an export. `columns` is called once per CSV file, because some columns are
 * known only at run time.
 */
export const exportOf =
  <Reply>(resource: Exported<Reply>, columns: (ctx: Context) => CsvColumn<Reply>[] | Promise<CsvColumn<Reply>[]>) =>
  async (ctx: Context, { query }: { query: Query }): Promise<Download> => {
    // Builds the query only to report errors in the query parameters before the first byte is sent.
    await resource.query(ctx, query)
    const format = query.format ?? formats[preferred(ctx, ['application/x-ndjson', 'text/csv'])]
    const release = takePlace(ctx.services)
    const day = today(ctx.time, ctx.services.config.timezone)
    return download({
      mediaType: format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson',
      name: `${resource.entity}-${day}.${format}`,
      body: placed(
        format === 'csv' ? csv(ctx, resource, query, columns, release) : ndjson(ctx, resource, query, release),
        release,
      ),
    })
  }

/**
 * Occupies one of the slots and returns a function that frees the slot. Throws 503 when
 * all slots are occupied.
 */
function takePlace(services: Services): () => void {
  const underWay = running.get(services) ?? new Set()
  running.set(services, underWay)
  if (underWay.size >= maxExportsAtOnce)
    throw new Problem('unavailable', 'Other exports are under way.', { headers: { 'retry-after': '30' } })
  const place = {}
  underWay.add(place)
  const longest = setTimeout(() => underWay.delete(place), maxExportMs).unref()
  return () => {
    clearTimeout(longest)
    underWay.delete(place)
  }
}

/**
 * Returns `rows`, changed to call `release` when the generator is ended from outside. A generator
 * that ends before its first row runs none of its code, not even `finally`.
 */
export function placed(rows: AsyncGenerator<string>, release: () => void): AsyncGenerator<string> {
  for (const way of ['return', 'throw'] as const) {
    const end = rows[way].bind(rows)
    rows[way] = (sent) => {
      release()
      return end(sent)
    }
  }
  return rows
}

async function* ndjson<Reply>(
  ctx: Context,
  resource: Exported<Reply>,
  query: Query,
  release: () => void,
): AsyncGenerator<string> {
  const write = (replies: readonly Reply[]): string => replies.map((reply) => `${JSON.stringify(reply)}\n`).join('')
  yield* batches(ctx, resource, query, write, release)
}

async function* csv<Reply>(
  ctx: Context,
  resource: Exported<Reply>,
  query: Query,
  columnsOf: (ctx: Context) => CsvColumn<Reply>[] | Promise<CsvColumn<Reply>[]>,
  release: () => void,
): AsyncGenerator<string> {
  const columns = await columnsOf(ctx)
  yield lines([columns.map(({ name }) => name)])
  const write = (replies: readonly Reply[]): string =>
    lines(replies.map((reply) => columns.map(({ cell }) => cell(reply))))
  yield* batches(ctx, resource, query, write, release)
}

/**
 * Returns CSV lines (RFC 4180). Cells that a spreadsheet would treat as a formula get a leading
 * apostrophe.
 */
export const lines = (rows: readonly (readonly Cell[])[]): string =>
  stringify(rows as Cell[][], {
    record_delimiter: '\r\n',
    quote_record_delimiter: true,
    cast: { boolean: String, string: escapeFormula },
  })

/**
 * Yields texts with the records, in the order of the query and in the form that `get` returns.
 * Closes the snapshot when the export ends, fails or takes too long, or when its client stops
 * reading.
 */
async function* batches<Reply>(
  ctx: Context,
  resource: Exported<Reply>,
  query: Query,
  write: (replies: readonly Reply[]) => string,
  release: () => void,
): AsyncGenerator<string> {
  const snapshot = await ctx.services.store.snapshot({ onReplica: true })
  const inside: Context = { ...ctx, db: snapshot.db }
  let closed: Promise<void> | undefined
  const close = (): Promise<void> => {
    release()
    closed ??= snapshot.close()
    return closed
  }
  const limit = setTimeout(() => void close(), maxExportMs).unref()
  const patience = patienceOf(ctx, () => void close())
  const some = adaptiveBatches(fewest, batch, first)
  const written = async (ids: readonly number[]): Promise<string> => {
    const replies = await resource.getMany(inside, ids)
    return write(ids.flatMap((each) => replies.get(each) ?? []))
  }
  try {
    // Opening the connection and reading the database schema has already taken a whole time slice.
    await yieldToEventLoop()
    const id = sql.ref<number>(`${resource.table}.id`).as('id')
    const rows = (await resource.query(inside, query)).clearSelect().select(id)
    for await (const ids of chunks(snapshot.each<{ id: number }>(rows))) {
      // The error breaks the connection, so that the client does not mistake a partial export for a
      // complete one.
      if (ctx.operation && !(await renewed(ctx, ctx.operation))) throw new Problem('unauthenticated')
      let text = ''
      for (let from = 0, to = 0; from < ids.length; from = to) {
        to = from + some.size()
        text += await some.run(Math.min(to, ids.length) - from, () => written(ids.slice(from, to)))
        await yieldToEventLoop()
      }
      patience.waits()
      yield text
      patience.taken()
    }
  } finally {
    clearTimeout(limit)
    patience.taken()
    await close()
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
