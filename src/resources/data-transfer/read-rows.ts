// Streams the rows of a file with separated values (RFC 4180), or of the first sheet of an XLSX
// workbook. Throws `UnreadableFile` for a file that is not a table. row-drafts.ts reports the
// errors of single rows.

import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { CsvError, type Parser, parse } from 'csv-parse'
import type { Source } from '../../kernel/files/download.ts'
import { workbookType } from '../../kernel/files/workbook.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { decodedText } from './encodings.ts'
import { sheetRows } from './sheet.ts'
import { UnreadableFile } from './unreadable-file.ts'

/** The maximum number of rows without the header. */
export const maxRows = 100_000
/** The maximum number of lines. Empty lines count too, because reading them also takes time. */
const maxLines = 2 * maxRows
const maxColumns = 1000
/** The maximum length of a row in characters. The longest field has 65,535 characters. */
const maxRowLength = 1024 * 1024

export const isWorkbook = (contentType: string): boolean => contentType === workbookType

export interface SheetRow {
  /** The row number in the file. The header is row 1. */
  row: number
  cells: readonly string[]
}

/** Yields the header, then all rows that are not empty. */
export async function* readRows(
  source: Source,
  about: { contentType: string; separator: string; encoding: string },
): AsyncGenerator<SheetRow> {
  const rows = isWorkbook(about.contentType)
    ? numbered(sheetRows(await buffer(source.read(0, source.size - 1))))
    : separatedRows(source.read(0, source.size - 1), about)
  let found = 0
  for await (const some of rows)
    for (const { row, cells } of some) {
      checkLineCount(row)
      if (found > 0 && cells.every((cell) => cell.trim() === '')) continue
      if (++found > maxRows + 1) throw new UnreadableFile(`A file may have at most ${maxRows} rows.`, undefined, row)
      if (cells.length > maxColumns)
        throw new UnreadableFile(`A file may have at most ${maxColumns} columns.`, undefined, row)
      yield { row, cells }
    }
}

/** Throws `UnreadableFile` when the file has too many lines. */
function checkLineCount(lines: number): void {
  if (lines > maxLines)
    throw new UnreadableFile(`A file may have at most ${maxLines} lines, empty ones included.`, undefined, maxLines)
}

async function* numbered(rows: AsyncIterable<string[]>): AsyncGenerator<SheetRow[]> {
  let row = 0
  for await (const cells of rows) yield [{ row: ++row, cells }]
}

/** Yields a few rows at a time. Skips empty lines but counts them in row numbers. */
async function* separatedRows(
  bytes: Readable,
  { separator, encoding }: { separator: string; encoding: string },
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
    for await (const text of decodedText(bytes, encoding)) {
      await feed(parser, text)
      checkLineCount(records + parser.info.empty_lines)
      yield rows.splice(0)
      await yieldIfDue()
    }
    await feed(parser, null)
    checkLineCount(records + parser.info.empty_lines)
    yield rows.splice(0)
  } catch (cause) {
    throw cause instanceof CsvError ? unreadable(cause) : cause
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

function unreadable(cause: CsvError): UnreadableFile {
  const { lines } = cause as CsvError & { lines?: number }
  const at = typeof lines === 'number' ? lines : 1
  if (cause.code === 'CSV_QUOTE_NOT_CLOSED')
    return new UnreadableFile('A quotation mark is opened and never closed.', cause, at)
  if (cause.code === 'CSV_MAX_RECORD_SIZE')
    return new UnreadableFile('A row has more than 1 MiB; is a quotation mark left open?', cause, at)
  return new UnreadableFile('The file cannot be read as separated values.', cause, at)
}
