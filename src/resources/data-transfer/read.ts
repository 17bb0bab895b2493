// The rows of an uploaded table, one by one, whatever its size: separated values (RFC 4180, UTF-8) or the first sheet of an
// XLSX. All cells are texts. What is wrong with a row is told by others; what makes a file no table is thrown as `Unreadable`.

import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { CsvError, type Parser, parse } from 'csv-parse'
import type { Source } from '../../kernel/files/download.ts'
import { yieldIfDue } from '../../kernel/runtime/cooperative.ts'
import { sheetRows } from './sheet.ts'
import { Unreadable } from './unreadable.ts'

/** DOMAIN 21.1. */
export const maxRows = 100_000
/** With the empty ones, which cost time as well. */
const maxLines = 2 * maxRows
const maxColumns = 1000
const pieceBytes = 4096
/** Characters of one row; the longest text of a field is 65,535. */
const maxRowLength = 1024 * 1024
const workbook = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

export interface SheetRow {
  /** As a person counts them: the header is 1. */
  row: number
  cells: readonly string[]
}

/** The header first, then all rows that are not empty. */
export async function* readRows(
  source: Source,
  about: { contentType: string; separator: string },
): AsyncGenerator<SheetRow> {
  const rows =
    about.contentType === workbook
      ? numbered(sheetRows(await buffer(source.read(0, source.size - 1))))
      : separatedRows(source.read(0, source.size - 1), about.separator)
  let found = 0
  for await (const some of rows)
    for (const { row, cells } of some) {
      requireLines(row)
      if (found > 0 && cells.every((cell) => cell.trim() === '')) continue
      if (++found > maxRows + 1) throw new Unreadable(`A file may have at most ${maxRows} rows.`, undefined, row)
      if (cells.length > maxColumns)
        throw new Unreadable(`A file may have at most ${maxColumns} columns.`, undefined, row)
      yield { row, cells }
    }
}

/** Throws `Unreadable` for more than a table can have with empty rows here and there. */
function requireLines(lines: number): void {
  if (lines > maxLines)
    throw new Unreadable(`A file may have at most ${maxLines} lines, empty ones included.`, undefined, maxLines)
}

async function* numbered(rows: AsyncIterable<string[]>): AsyncGenerator<SheetRow[]> {
  let row = 0
  for await (const cells of rows) yield [{ row: ++row, cells }]
}

/** Some rows at a time. Empty lines are passed over and counted. */
async function* separatedRows(bytes: Readable, separator: string): AsyncGenerator<SheetRow[]> {
  let records = 0
  const rows: SheetRow[] = []
  const parser = parse({
    delimiter: separator,
    // To find out which of them it is would cost more than the reading.
    record_delimiter: ['\r\n', '\n', '\r'],
    // Which rows are too short or too long is for others to say.
    relax_column_count: true,
    // A quote inside a text that does not begin with one is a character like others, as in spreadsheets.
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: maxRowLength,
    on_record: (cells: string[], { empty_lines }) => {
      rows.push({ row: ++records + empty_lines, cells })
      // Rows of another length than the first cost an error each, with a stack, also when they are allowed: each is the first.
      ;(parser.info as { records: number }).records = 0
      return null
    },
  })
  // Told by `feed`.
  parser.on('error', () => undefined)
  try {
    for await (const text of decoded(bytes)) {
      await feed(parser, text)
      requireLines(records + parser.info.empty_lines)
      yield rows.splice(0)
      await yieldIfDue()
    }
    await feed(parser, null)
    requireLines(records + parser.info.empty_lines)
    yield rows.splice(0)
  } catch (cause) {
    throw cause instanceof CsvError ? unreadable(cause) : cause
  } finally {
    bytes.destroy()
    parser.destroy()
  }
}

/** Hands on a piece, or says that it was the last one. Throws what the parser has against it. */
const feed = (parser: Parser, text: string | null): Promise<void> =>
  new Promise((resolve, reject) => {
    const done = (cause?: Error | null): void => (cause ? reject(cause) : resolve())
    if (text === null) parser.end(done)
    else parser.write(text, done)
  })

/** In pieces that take a moment each: what is in a piece is parsed at a stretch. */
async function* decoded(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (chunk?: Buffer): string => {
    try {
      return chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode()
    } catch (cause) {
      throw new Unreadable('The file is not valid UTF-8. Save it as "CSV UTF-8".', cause)
    }
  }
  for await (const chunk of bytes)
    for (let at = 0; at < chunk.length; at += pieceBytes) yield decode(chunk.subarray(at, at + pieceBytes))
  yield decode()
}

function unreadable(cause: CsvError): Unreadable {
  const { lines } = cause as CsvError & { lines?: number }
  const at = typeof lines === 'number' ? lines : 1
  if (cause.code === 'CSV_QUOTE_NOT_CLOSED')
    return new Unreadable('A quotation mark is opened and never closed.', cause, at)
  if (cause.code === 'CSV_MAX_RECORD_SIZE')
    return new Unreadable('A row has more than 1 MiB; is a quotation mark left open?', cause, at)
  return new Unreadable('The file cannot be read as separated values.', cause, at)
}
