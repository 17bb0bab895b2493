// Exports all records of a list from one snapshot of the database, as JSON lines, CSV or XLSX.
// Rows are read and sent in small batches. Memory use is therefore constant, and other requests
// run in between.

import { stringify } from 'csv-stringify/sync'
import { sql } from 'kysely'
import { DateTime } from 'luxon'
import { oldNamesOf, recordWithOldNames } from '../../contract/old-names.ts'
import { renewed } from '../auth/sessions.ts'
import type { Context, Services } from '../context.ts'
import { Problem } from '../errors.ts'
import { preferred } from '../files/content-negotiation.ts'
import { type Download, download } from '../files/download.ts'
import { type WorkbookRow, workbookType, writeWorkbook } from '../files/workbook.ts'
import { adaptiveBatches, yieldToEventLoop } from '../runtime/cooperative.ts'
import { perOwner } from '../runtime/per-owner.ts'
import { today } from '../values/format.ts'
import { emitOnly } from '../write/write.ts'
import { type Cell, type CsvColumn, escapeFormula, unescapeFormula } from './csv-cells.ts'
import type { Resource } from './define-resource.ts'
import type { Include } from './definition.ts'
import { patienceOf } from './export-stall.ts'

type Exported<Reply> = Pick<Resource<Reply, never>, 'entity' | 'table' | 'query' | 'getMany'>
type Format = 'ndjson' | 'csv' | 'xlsx'
/** The query of an export. All but `format` is for CSV files. */
export type ExportQuery = {
  format?: Format
  separator?: ',' | ';' | '\t'
  bom?: boolean
  timezone?: 'utc' | 'installation'
}
type ColumnsOf<Reply> = (ctx: Context) => CsvColumn<Reply>[] | Promise<CsvColumn<Reply>[]>
const ndjsonType = 'application/x-ndjson'
const formats = { [ndjsonType]: 'ndjson', 'text/csv': 'csv', [workbookType]: 'xlsx' } as const
const mediaTypes: Record<Format, string> = { ndjson: ndjsonType, csv: 'text/csv; charset=utf-8', xlsx: workbookType }

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
 * The running exports of each server, one object per export. `p-limit` does not fit: it queues work
 * above the maximum, but an export above the maximum is refused.
 */
const running = perOwner((_services: Services) => new Set<object>())

/**
 * Returns the handler of an export. Each CSV or XLSX export calls `columns` once, because some
 * columns, such as custom attributes, are known only at run time.
 */
export const exportOf =
  <Reply>(resource: Exported<Reply>, columns: ColumnsOf<Reply>) =>
  async (ctx: Context, { query }: { query: ExportQuery }): Promise<Download> => {
    // Builds the query only to report errors in the query parameters before the first byte is sent.
    await resource.query(ctx, query)
    const format = query.format ?? formats[preferred(ctx, [ndjsonType, 'text/csv', workbookType])]
    const release = takePlace(ctx.services)
    const day = today(ctx.time, ctx.services.config.timezone)
    const from: Export<Reply> = { ctx, resource, query, release }
    return download({
      mediaType: mediaTypes[format],
      name: `${resource.entity}-${day}.${format}`,
      body: placed<string | Buffer>(bodies[format](from, columns), release),
      beforeBody: () => announce(from, format),
    })
  }

/** Emits the event that tells who took which list, in which format and with which filters. */
async function announce<Reply>({ ctx, resource, query, release }: Export<Reply>, format: Format): Promise<void> {
  const { format: _format, separator: _separator, bom: _bom, timezone: _timezone, ...filters } = query
  try {
    await emitOnly(ctx, 'data_transfer.exports.started', {
      entity: 'exports',
      id: null,
      shown: { entity_type: resource.entity, format, filters },
    })
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'unavailable') {
      release()
      throw error
    }
    // Reads go on while nothing can be written. The log then says who took the list.
    ctx.services.log.warn({ user_id: ctx.user?.id, list: resource.entity, format }, 'An export left no event.')
  }
}

/**
 * Occupies one of the slots and returns a function that frees the slot. Throws 503 when
 * all slots are occupied.
 */
function takePlace(services: Services): () => void {
  const underWay = running(services)
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
 * Makes `rows` call `release` when its consumer ends it early. Returns `rows`. A generator that is
 * ended before its first row runs no code, not even `finally`.
 */
export function placed<Chunk>(rows: AsyncGenerator<Chunk>, release: () => void): AsyncGenerator<Chunk> {
  for (const way of ['return', 'throw'] as const) {
    const end = rows[way].bind(rows)
    rows[way] = (sent) => {
      release()
      return end(sent)
    }
  }
  return rows
}

interface Export<Reply> {
  ctx: Context
  resource: Exported<Reply>
  query: ExportQuery
  release: () => void
}

async function* ndjson<Reply>(from: Export<Reply>): AsyncGenerator<string> {
  const write = (replies: readonly Reply[]): string[] => replies.map((reply) => `${JSON.stringify(reply)}\n`)
  for await (const texts of batches(from, write)) yield texts.join('')
}

async function* csv<Reply>(from: Export<Reply>, columnsOf: ColumnsOf<Reply>): AsyncGenerator<string> {
  const columns = await withOldColumns(from, columnsOf)
  const { separator = ',', bom = separator === ';', timezone } = from.query
  const shown = timezone === 'installation' ? wallClock(from.ctx.services.config.timezone) : undefined
  yield (bom ? '\ufeff' : '') + lines([columns.map(({ name }) => name)], separator)
  const write = (replies: readonly Reply[]): string[] => [
    lines(
      replies.map((reply) =>
        columns.map(({ cell, format }) =>
          shown && format === 'date-time' ? asLocalTime(cell(reply), shown) : cell(reply),
        ),
      ),
      separator,
    ),
  ]
  for await (const texts of batches(from, write, includedBy(columns))) yield texts.join('')
}

async function* table<Reply>(from: Export<Reply>, columnsOf: ColumnsOf<Reply>): AsyncGenerator<WorkbookRow[]> {
  const columns = await withOldColumns(from, columnsOf)
  yield [columns.map(({ name }) => name)]
  const shown = wallClock(from.ctx.services.config.timezone)
  const write = (replies: readonly Reply[]): WorkbookRow[] =>
    replies.map((reply) =>
      columns.map(({ cell, format }) => {
        const value = cell(reply)
        return typeof value === 'string' && format ? asTime(value, format, shown) : asWorkbookCell(value)
      }),
    )
  yield* batches(from, write, includedBy(columns))
}

/** Returns the columns, and after them a column for each old name. */
async function withOldColumns<Reply>(
  { ctx, resource }: Export<Reply>,
  columnsOf: ColumnsOf<Reply>,
): Promise<CsvColumn<Reply>[]> {
  const columns = await columnsOf(ctx)
  const operation = ctx.services.resources.get(resource.entity)?.getOperation
  const names = operation ? oldNamesOf(ctx.services.contract, operation) : new Map<string, string>()
  return [...columns, ...columns.flatMap(({ name, ...rest }) => [{ ...rest, name: names.get(name) ?? '' }])].filter(
    ({ name }) => name !== '',
  )
}

const includedBy = (columns: readonly { include?: string }[]): Include =>
  columns.flatMap(({ include }) => include ?? [])

/**
 * Workbook cells need no apostrophe against formulas, but an import removes one. A text that
 * already has such an apostrophe therefore gets a second one.
 */
const asWorkbookCell = (cell: Cell): Cell =>
  typeof cell === 'string' && unescapeFormula(cell) !== cell ? escapeFormula(cell) : cell

/** Returns a timestamp as the time that a clock of the zone shows. */
function asLocalTime(cell: Cell, shown: (time: number) => number | null): Cell {
  const time = typeof cell === 'string' ? shown(Date.parse(cell)) : null
  if (time === null || Number.isNaN(time)) return cell
  return new Date(time)
    .toISOString()
    .replace('T', ' ')
    .replace(/(\.000)?Z$/, '')
}

/** The first day that workbooks have: their calendar counts a 29 February 1900. */
const firstDay = Date.UTC(1900, 2, 1)

/**
 * Returns a date as such, and a timestamp as the time in the zone of the installation, which an
 * import reads. Earlier times, and those of an hour that occurs twice, stay texts.
 */
function asTime(text: string, format: 'date' | 'date-time', shown: (time: number) => number | null) {
  const time = format === 'date' ? Date.parse(text) : shown(Date.parse(text))
  return time === null || Number.isNaN(time) || time < firstDay ? text : { shown: time, isDate: format === 'date' }
}

/**
 * Returns the function that gives the local time of a timestamp, both in milliseconds; null for the
 * second of two times that a clock shows alike. Offsets change at quarters of an hour only.
 */
function wallClock(zone: string): (time: number) => number | null {
  const quarter = 900_000
  const offsets = new Map<number, number | null>()
  return (time) => {
    const from = Math.floor(time / quarter) * quarter
    let offset = offsets.get(from)
    if (offset === undefined) {
      const at = DateTime.fromMillis(from, { zone })
      const isFirst = at.getPossibleOffsets()[0]?.toMillis() === from
      offset = isFirst ? at.offset * 60_000 : null
      if (offsets.size < 100_000) offsets.set(from, offset)
    }
    return offset === null ? null : time + offset
  }
}

const bodies: Record<
  Format,
  <Reply>(from: Export<Reply>, columns: ColumnsOf<Reply>) => AsyncGenerator<string | Buffer>
> = { ndjson, csv, xlsx: (from, columns) => writeWorkbook(table(from, columns)) }

/**
 * Returns CSV lines (RFC 4180). Cells that a spreadsheet would treat as a formula get a leading
 * apostrophe.
 */
export const lines = (rows: readonly (readonly Cell[])[], delimiter = ','): string =>
  stringify(rows as Cell[][], {
    delimiter,
    record_delimiter: '\r\n',
    quote_record_delimiter: true,
    cast: { boolean: String, string: escapeFormula },
  })

/**
 * Yields the records, converted by `write`, in the order of the query. Closes the snapshot when the
 * export ends, fails or takes too long, or when its client stops reading.
 */
async function* batches<Reply, Piece>(
  { ctx, resource, query, release }: Export<Reply>,
  write: (replies: readonly Reply[]) => Piece[],
  include: Include = [],
): AsyncGenerator<Piece[]> {
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
  const written = async (ids: readonly number[]): Promise<Piece[]> => {
    const replies = await resource.getMany(inside, ids, include)
    const { contract, resources } = ctx.services
    const operation = resources.get(resource.entity)?.getOperation
    return write(ids.flatMap((each) => recordWithOldNames(contract, operation, replies.get(each)) ?? []))
  }
  try {
    // Opening the connection and reading the database schema has already taken a whole time slice.
    await yieldToEventLoop()
    const id = sql.ref<number>(`${resource.table}.id`).as('id')
    const rows = (await resource.query(inside, query)).clearSelect().select(id)
    for await (const ids of chunks(snapshot.each<{ id: number }>(rows))) {
      // The caller has lost the right to read. The error breaks the connection, so that the client
      // does not mistake a partial export for a complete one.
      if (ctx.operation && !(await renewed(ctx, ctx.operation))) throw new Problem('unauthenticated')
      const pieces: Piece[] = []
      for (let from = 0, to = 0; from < ids.length; from = to) {
        to = from + some.size()
        pieces.push(...(await some.run(Math.min(to, ids.length) - from, () => written(ids.slice(from, to)))))
        await yieldToEventLoop()
      }
      patience.waits()
      yield pieces
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
