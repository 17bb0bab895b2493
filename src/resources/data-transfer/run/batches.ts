// Reads the rows of a file in batches: ahead, with pauses between batches so that other processes
// can use the database.
import { setTimeout } from 'node:timers/promises'
import type { Context } from '../../../kernel/context.ts'
import { fineStopwatch } from '../../../kernel/runtime/clock.ts'
import { yieldIfDue } from '../../../kernel/runtime/cooperative.ts'
import { type ImportLine, readLine } from '../apply-rows/read-row.ts'
import { unreadable } from '../errors.ts'
import { type FileHeader, readHeader } from '../map-columns/read-header.ts'
import type { CellFormats } from '../read-cells/cell-formats.ts'
import { countryReader } from '../read-cells/countries.ts'
import { openFile, openTable } from '../read-file/open-file.ts'
import { createFindings, type Findings, isWorkbook, type SheetRow } from '../read-file/read-rows.ts'
import { type ImportRow, planOf } from '../settings.ts'

export const batchSize = 100

export interface Batch {
  /** The number of file rows before the batch, without the header. */
  from: number
  lines: readonly ImportLine[]
}

export interface ImportTable extends FileHeader {
  findings: Findings
  batches: AsyncGenerator<Batch>
}

/**
 * Reads the header of the file and returns the columns, the header errors, and the rows in batches.
 * The batches leave out the first `skip` rows.
 */
export async function readTable(ctx: Context, row: ImportRow, skip = 0): Promise<ImportTable> {
  const { contentType } = await openFile(ctx, row)
  const findings = createFindings()
  const rows = await openTable(ctx, row, findings)
  const { value: header } = await rows.next()
  if (!header) throw unreadable('The file is empty.')
  const plan = planOf(row)
  const head = await readHeader(ctx, plan, (header as SheetRow).cells)
  const reading = {
    columns: head.columns,
    width: head.headers.length,
    formats: await formatsOf(ctx, row, contentType),
    fillsNames: plan.fillsNames,
  }
  return { ...head, findings, batches: inBatches(rows, skip, (row) => readLine(ctx, plan, row, reading)) }
}

const formatsOf = async (
  { services: { config } }: Context,
  row: ImportRow,
  contentType: string,
): Promise<CellFormats> => ({
  country: await countryReader(config.locale),
  locale: config.locale,
  currency: config.currency,
  date: row.date_format as CellFormats['date'],
  decimal: row.decimal_separator as CellFormats['decimal'],
  hasPlainNumbers: isWorkbook(contentType),
})

async function* inBatches(
  rows: AsyncGenerator<SheetRow>,
  skip: number,
  read: (row: SheetRow) => ImportLine,
): AsyncGenerator<Batch> {
  let count = 0
  let lines: ImportLine[] = []
  for await (const row of rows) {
    if (count++ < skip) continue
    await yieldIfDue()
    lines.push(read(row))
    if (lines.length < batchSize) continue
    yield { from: count - lines.length, lines }
    lines = []
  }
  if (lines.length > 0) yield { from: count - lines.length, lines }
}

/** The time in milliseconds that batches may use the database before a pause. */
const maxBusyMs = 100
/**
 * The length of a pause in milliseconds. The pause is longer than the longest retry interval of a
 * process that waits for the database (db/sqlite/busy-retry.ts), so the waiting process gets its
 * turn.
 */
const gapMs = 15
/**
 * The maximum number of batches to read ahead. Reading this many takes about as long as a pause and
 * uses a few megabytes at most.
 */
const maxAhead = 4

export interface BatchReader {
  /**
   * Returns the next batch, or undefined after the last one. Throws a read error only after all
   * batches before the error have been returned.
   */
  next(): Promise<Batch | undefined>
  /**
   * Pauses if a pause is due, and reads ahead during the pause. Must be called between two batches.
   */
  breathe(): Promise<void>
  close(): Promise<void>
}

export function readAhead(batches: AsyncGenerator<Batch>): BatchReader {
  const read: Promise<IteratorResult<Batch, undefined>>[] = []
  let held = fineStopwatch()

  /**
   * Reads one more batch and returns whether there was one. Never throws: `next` throws the error
   * when the caller reaches it.
   */
  async function readOne(): Promise<boolean> {
    const next = batches.next()
    read.push(next)
    return next.then(
      ({ done }) => done !== true,
      () => false,
    )
  }

  return {
    async next() {
      if (read.length === 0) await readOne()
      return (await read.shift())?.value
    },
    async breathe() {
      if (held() < maxBusyMs) return
      const gap = setTimeout(gapMs)
      while (read.length < maxAhead && (await readOne()));
      await gap
      held = fineStopwatch()
    },
    async close() {
      await batches.return(undefined)
    },
  }
}
