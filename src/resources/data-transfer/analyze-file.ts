// Detects the settings for the import of a file: separator, encoding, formats of dates and numbers,
// and the field of each column. The encoding is detected from the whole file, everything else from
// the first rows.

import { LRUCache } from 'lru-cache'
import type { Schema } from '../../contract/types.ts'
import type { Context } from '../../kernel/context.ts'
import type { Source } from '../../kernel/files/download.ts'
import { readFormattedDate } from './cell-formats.ts'
import type { CellReader } from './cell-readers.ts'
import { readDate, readDecimal, readMoment } from './cell-readers.ts'
import { ignoredColumns, importColumns, type Mapping, missingColumns } from './columns.ts'
import {
  type ColumnValues,
  type Detected,
  type DetectedDates,
  detectDateFormat,
  detectDecimalSeparator,
} from './detect-formats.ts'
import { detectEncoding, type Encoding } from './encodings.ts'
import { isWorkbook, readRows } from './read-rows.ts'
import { type ImportRow, openFile, planOf } from './run.ts'
import { type Suggestion, suggestFields } from './suggest-fields.ts'
import { UnreadableFile } from './unreadable-file.ts'

type Analysis = Schema<'ImportAnalysis'>
type Separator = Schema<'ImportFieldSeparator'>

const separators: readonly Separator[] = [',', ';', '\t', '|']
const maxRows = 1000
/** The maximum number of characters to read, over all cells. */
const maxLength = 1024 * 1024
const maxSamples = 5
const maxSampleLength = 100

interface FileSample {
  encoding: Encoding
  separator: Separator
  rows: readonly (readonly string[])[]
  warnings: readonly string[]
}

/**
 * The samples of the files analyzed last, by the hash of the file. The encoding needs the whole
 * file, so a file is read once and not at each call. Two calls at the same time share the reading.
 */
const samples = new LRUCache<string, Promise<FileSample>>({ max: 8 })

/**
 * Throws `UnreadableFile` when the stored file is missing. Problems with the content of the file
 * become warnings.
 */
export async function analyzeFile(ctx: Context, row: ImportRow): Promise<Analysis> {
  const { file, source, contentType } = await openFile(ctx, row)
  const isBook = isWorkbook(contentType)
  const given = { contentType, encoding: row.encoding as Encoding, separator: row.field_separator as Separator }
  const key = JSON.stringify([file.sha256, given])
  const sample = samples.get(key) ?? sampleOfFile(source, given)
  samples.set(key, sample)
  const { encoding, separator, rows, ...read } = await sample.catch((cause: unknown) => {
    samples.delete(key)
    throw cause
  })
  const warnings = [...read.warnings]
  const [header = [], ...body] = rows
  const columns = header.map(
    (cell, index): ColumnValues => ({
      header: cell.trim(),
      values: body.map((cells) => cells[index] ?? ''),
    }),
  )
  const plan = planOf(row)
  const fields = await importColumns(ctx, plan.type)
  const suggested = suggestFields(plan.type, fields, columns)
  const readBy = (...readers: CellReader[]): ColumnValues[] =>
    columns.filter((_, index) => readers.includes(fields.get(suggested[index]?.field ?? '')?.read as CellReader))
  const dates = detectDateFormat(readBy(readDate, readMoment))
  const decimals = isBook ? null : detectDecimalSeparator(readBy(readDecimal))
  const mapping = mappingOf(columns, suggested, await ignoredColumns(ctx, plan.type), warnings)
  const missing = missingColumns(plan, Object.values(mapping))
  if (header.length > 0 && missing) warnings.push(`No column is recognized as ${missing.join(' or ')}.`)
  warnings.push(...formatWarnings(dates, decimals))
  return {
    format: isBook ? 'xlsx' : 'csv',
    settings: {
      field_separator: separator,
      encoding,
      date_format: dates.format,
      decimal_separator: decimals?.format ?? null,
      mapping,
    },
    columns: columns.map(({ header, values }, index) => ({
      header,
      samples: samplesOf(values),
      ...(suggested[index] as Suggestion),
    })),
    warnings,
  }
}

async function sampleOfFile(
  source: Source,
  { contentType, separator, ...given }: { contentType: string; encoding: Encoding; separator: Separator },
): Promise<FileSample> {
  const encoding = isWorkbook(contentType) ? given.encoding : await detectEncoding(source)
  try {
    return { encoding, warnings: [], ...(await readSample(source, { contentType, encoding }, separator)) }
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error
    return { encoding, separator, rows: [], warnings: [error.message] }
  }
}

/**
 * Tries each separator and returns the first rows as read with the best one (`scoreOf`). `usual` is
 * tried first and also wins when no separator scores higher.
 */
async function readSample(
  source: Source,
  about: { contentType: string; encoding: string },
  usual: Separator,
): Promise<{ separator: Separator; rows: readonly (readonly string[])[] }> {
  let best = { separator: usual, rows: await firstRows(source, { ...about, separator: usual }), score: 0 }
  if (isWorkbook(about.contentType)) return best
  best.score = scoreOf(best.rows)
  for (const separator of separators) {
    if (separator === usual) continue
    const rows = await firstRows(source, { ...about, separator }).catch(() => [])
    const score = scoreOf(rows)
    if (score > best.score) best = { separator, rows, score }
  }
  return best
}

async function firstRows(
  source: Source,
  about: { contentType: string; encoding: string; separator: string },
): Promise<readonly (readonly string[])[]> {
  const rows: (readonly string[])[] = []
  let length = 0
  for await (const { cells } of readRows(source, about)) {
    rows.push(cells)
    length += cells.reduce((sum, cell) => sum + cell.length, 0)
    if (rows.length > maxRows || length > maxLength) break
  }
  return rows
}

/**
 * Returns the number of columns, weighted by the share of rows that have as many cells as the
 * header. Returns 0 for a single column.
 */
function scoreOf([header = [], ...rows]: readonly (readonly string[])[]): number {
  if (header.length < 2) return 0
  const equal = rows.filter(({ length }) => length === header.length).length
  return header.length * ((equal + 1) / (rows.length + 1)) ** 2
}

/**
 * Maps each header to its suggested field. A repeated or empty header maps to null, so its columns
 * are left out.
 */
function mappingOf(
  columns: readonly ColumnValues[],
  suggested: readonly Suggestion[],
  ignored: ReadonlySet<string>,
  warnings: string[],
): Mapping {
  const fields = new Map<string, string | null>()
  for (const [index, { header }] of columns.entries()) {
    if (fields.has(header) && header !== '')
      warnings.push(`The header ${header} occurs more than once; its columns are left out.`)
    fields.set(header, fields.has(header) || header === '' ? null : (suggested[index]?.field ?? null))
  }
  // Columns that only exports have are ignored anyway, so they are not in the mapping.
  return Object.fromEntries([...fields].filter(([header, field]) => field !== null || !ignored.has(header)))
}

function formatWarnings(dates: DetectedDates, decimals: Detected<string> | null): string[] {
  const found: string[] = []
  const { short, format } = dates
  if (dates.open !== null) {
    const order = short ? 'the order of day, month and year' : 'whether the day or the month comes first'
    found.push(`The dates in ${dates.open} do not tell ${order}; set date_format.`)
  }
  if (short) {
    const shown = format === null ? '' : ` ${short.value} is read as ${readFormattedDate(short.value, format)}.`
    found.push(
      `The dates in ${short.header} have years of two digits: 69 to 99 are read as 1969 to 1999, and 00 to 68 as ` +
        `2000 to 2068.${shown}`,
    )
  }
  if (dates.isMixed) found.push('The dates of the file have different orders of day, month and year.')
  if (decimals && decimals.open !== null)
    found.push(`The numbers in ${decimals.open} do not tell which character separates decimals; set decimal_separator.`)
  if (decimals?.isMixed) found.push('The numbers of the file have different decimal separators.')
  return found
}

const samplesOf = (values: readonly string[]): string[] =>
  [...new Set(values.map((value) => value.trim().slice(0, maxSampleLength)).filter((value) => value !== ''))].slice(
    0,
    maxSamples,
  )
