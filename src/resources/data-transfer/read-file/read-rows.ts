// Streams the rows of a text file (RFC 4180), a vCard file or a sheet of an XLSX workbook. The
// functions throw for a file that is not a table. row-drafts.ts reports the errors of single rows.
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { CsvError, type Parser, parse } from 'csv-parse'
import type { Source } from '../../../kernel/files/download.ts'
import { workbookType } from '../../../kernel/files/workbook.ts'
import { yieldIfDue } from '../../../kernel/runtime/cooperative.ts'
import { unreadable } from '../errors.ts'
import { cardRows, unfoldedBytes } from './cards.ts'
import { decodedText } from './encodings.ts'
import { sheetRows } from './sheet.ts'

/** The maximum number of rows without the header. */
export const maxRows = 100_000
/** The maximum number of lines. Empty lines count too, because reading them also takes time. */
const maxLines = 2 * maxRows
const maxColumns = 1000
/** The maximum length of a row in characters. The longest field has 65,535 characters. */
const maxRowLength = 1024 * 1024

/** The media type of vCard files. */
export const cardType = 'text/vcard'

/** Facts about a file. Its reader sets them while it reads the rows. */
export interface Findings {
  /** The rows below the table, such as the notes of a report. */
  footers: number
  /** The lines that are not in the encoding of the others. */
  strayLines: number
  /** The visible sheets of a workbook. */
  sheets: readonly string[]
}

export const createFindings = (): Findings => ({ footers: 0, strayLines: 0, sheets: [] })

interface FileReading {
  contentType: string
  separator: string
  encoding: string
  headerRow?: number | null
  sheet?: string | null
  findings?: Findings
}

export const isWorkbook = (contentType: string): boolean => contentType === workbookType

export interface SheetRow {
  /** The row number in the file. The header is row 1. */
  row: number
  cells: readonly string[]
}

/** Yields the header, then all rows that are not empty. */
export async function* readRows(source: Source, about: FileReading): AsyncGenerator<SheetRow> {
  const findings = about.findings ?? createFindings()
  const file = { ...about, findings }
  let found = 0
  for await (const some of withoutFooters(tableRows(source, file), file))
    for (const { row, cells } of some) {
      checkLineCount(row)
      if (found > 0 && cells.every((cell) => cell.trim() === '')) continue
      if (++found > maxRows + 1) throw unreadable(`A file may have at most ${maxRows} rows.`, row)
      if (cells.length > maxColumns) throw unreadable(`A file may have at most ${maxColumns} columns.`, row)
      yield { row, cells }
    }
}

type FileAbout = FileReading & { findings: Findings }

/** Yields the rows from the header on, a few at a time. */
async function* tableRows(source: Source, about: FileAbout): AsyncGenerator<SheetRow[]> {
  const bytes = source.read(0, source.size - 1)
  const from = about.headerRow ?? 1
  if (about.contentType === cardType)
    return yield* numbered(cardRows(decodedText(unfoldedBytes(bytes), about.encoding, about.findings)))
  const rows = isWorkbook(about.contentType)
    ? numbered(sheetRows(await buffer(bytes), about))
    : separatedRows(bytes, about)
  for await (const some of rows) yield some.filter(({ row, cells }) => row >= from && !isHint(row, cells, about))
}

/** Returns whether the row is the line `sep=;`, which Excel reads and writes above the header. */
const isHint = (row: number, cells: readonly string[], { separator, contentType }: FileReading): boolean =>
  row === 1 && !isWorkbook(contentType) && /^sep=.?$/i.test(cells.join(separator).trim())

/** The maximum number of rows that a footer may have. */
const maxFooter = 50

/**
 * Leaves out the rows at the end of the file that follow an empty row and have one cell, although
 * the header has more: the notes below a report.
 */
async function* withoutFooters(
  rows: AsyncGenerator<SheetRow[]>,
  { findings, contentType }: FileAbout,
): AsyncGenerator<SheetRow[]> {
  let width = 0
  let last = 0
  let hasGap = false
  let held: SheetRow[] = []
  const isSingle = (cells: readonly string[]): boolean =>
    isWorkbook(contentType)
      ? width > 2 && (cells[0] ?? '').trim() !== '' && cells.slice(1).every((cell) => cell.trim() === '')
      : cells.length === 1
  for await (const some of rows) {
    const passed: SheetRow[] = []
    for (const row of some) {
      const isEmpty = row.cells.every((cell) => cell.trim() === '')
      if (width === 0) width = isEmpty ? 0 : row.cells.length
      else if (width > 1) {
        hasGap ||= isEmpty || row.row > last + 1
        if (hasGap && !isEmpty && isSingle(row.cells) && held.length < maxFooter) {
          held.push(row)
          last = row.row
          continue
        }
        if (!isEmpty) {
          passed.push(...held.splice(0))
          hasGap = false
        }
      }
      last = row.row
      passed.push(row)
    }
    yield passed
  }
  findings.footers = held.length
  held = []
}

/** Throws when the file has too many lines. */
function checkLineCount(lines: number): void {
  if (lines > maxLines) throw unreadable(`A file may have at most ${maxLines} lines, empty ones included.`, maxLines)
}

async function* numbered(rows: AsyncIterable<string[]>): AsyncGenerator<SheetRow[]> {
  let row = 0
  for await (const cells of rows) yield [{ row: ++row, cells }]
}

/** Yields a few rows at a time. Skips empty lines but counts them in row numbers. */
async function* separatedRows(
  bytes: Readable,
  { separator, encoding, findings }: FileAbout,
): AsyncGenerator<SheetRow[]> {
  let records = 0
  const rows: SheetRow[] = []
  const parser = parse({
    delimiter: separator,
    // The parser is faster with all three line endings than with automatic detection.
    record_delimiter: ['\r\n', '\n', '\r'],
    // `parseRow` reports each row of the wrong length.
    relax_column_count: true,
    // A quote inside an unquoted text is a normal character, as in spreadsheets.
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: maxRowLength,
    on_record: (cells: string[], { empty_lines }) => {
      rows.push({ row: ++records + empty_lines, cells })
      // The parser creates an Error with a stack for each row whose length differs from the first
      // row, which is slow. With the count reset to 0, the parser treats each row as the first.
      ;(parser.info as { records: number }).records = 0
      return null
    },
  })
  // Prevents an uncaught error event. `feed` throws the parser's error.
  parser.on('error', () => undefined)
  try {
    for await (const text of decodedText(bytes, encoding, findings)) {
      await feed(parser, text)
      checkLineCount(records + parser.info.empty_lines)
      yield rows.splice(0)
      await yieldIfDue()
    }
    await feed(parser, null)
    checkLineCount(records + parser.info.empty_lines)
    yield rows.splice(0)
  } catch (cause) {
    throw cause instanceof CsvError ? unparsable(cause) : cause
  } finally {
    bytes.destroy()
    parser.destroy()
  }
}

/** Writes a chunk to the parser. Null ends the input. Throws the parser's error. */
const feed = (parser: Parser, text: string | null): Promise<void> =>
  new Promise((resolve, reject) => {
    const done = (cause?: Error | null): void => (cause ? reject(cause) : resolve())
    if (text === null) parser.end(done)
    else parser.write(text, done)
  })

function unparsable(cause: CsvError): Error {
  const { lines } = cause as CsvError & { lines?: number }
  const at = typeof lines === 'number' ? lines : 1
  if (cause.code === 'CSV_QUOTE_NOT_CLOSED')
    return unreadable('A quotation mark is opened and never closed.', at, cause)
  if (cause.code === 'CSV_MAX_RECORD_SIZE')
    return unreadable('A row has more than 1 MiB; is a quotation mark left open?', at, cause)
  return unreadable('The file cannot be read as separated values.', at, cause)
}
