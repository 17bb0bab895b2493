// The rows of an uploaded table, one by one, whatever its size: separated values (RFC 4180, UTF-8) or the first sheet of an
// XLSX. All cells are texts. What is wrong with a row is told by others; what makes a file no table is thrown as `Unreadable`.

import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { CsvError, parse } from 'csv-parse'
import type { Source } from '../../kernel/download.ts'
import { sheetRows } from './sheet.ts'
import { Unreadable } from './unreadable.ts'

/** DOMAIN 21.1. */
export const mostRows = 100_000
/** Characters of one row; the longest text of a field is 65,535. */
const longestRow = 1024 * 1024
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
      ? sheetRows(await buffer(source.read(0, source.size - 1)))
      : separatedRows(source.read(0, source.size - 1), about.separator)
  let row = 0
  let found = 0
  for await (const cells of rows) {
    row++
    if (row > 1 && cells.every((cell) => cell.trim() === '')) continue
    if (++found > mostRows + 1) throw new Unreadable(`A file may have at most ${mostRows} rows.`, undefined, row)
    yield { row, cells }
  }
}

async function* separatedRows(bytes: Readable, separator: string): AsyncGenerator<string[]> {
  const texts = Readable.from(decoded(bytes))
  const parser = parse({
    delimiter: separator,
    // Which rows are too short or too long is for others to say.
    relax_column_count: true,
    // A quote inside a text that does not begin with one is a character like others, as in spreadsheets.
    relax_quotes: true,
    skip_empty_lines: false,
    max_record_size: longestRow,
  })
  texts.on('error', (cause) => parser.destroy(cause))
  texts.pipe(parser)
  try {
    for await (const cells of parser) yield cells as string[]
  } catch (cause) {
    throw cause instanceof CsvError ? unreadable(cause) : cause
  } finally {
    bytes.destroy()
    texts.destroy()
    parser.destroy()
  }
}

async function* decoded(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (chunk?: Buffer): string => {
    try {
      return chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode()
    } catch (cause) {
      throw new Unreadable('The file is not valid UTF-8. Save it as "CSV UTF-8".', cause)
    }
  }
  for await (const chunk of bytes) yield decode(chunk)
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
