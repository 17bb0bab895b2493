// Detects the settings for the import of a file: separator, encoding, formats of dates and numbers,
// and the field of each column. The encoding is detected from the whole file, everything else from
// the first rows.
import { LRUCache } from 'lru-cache'
import type { Schema } from '../../../contract/types.ts'
import type { Context } from '../../../kernel/context.ts'
import { readAll, type Source } from '../../../kernel/files/download.ts'
import { bookkeeping } from '../../../kernel/resource/csv-cells.ts'
import { stops } from '../errors.ts'
import { type ImportColumn, ignoredColumns, importColumns, missingColumns } from '../map-columns/columns.ts'
import { shortened } from '../map-columns/read-header.ts'
import { readFormattedDate } from '../read-cells/cell-formats.ts'
import { type CellReader, readDate, readDecimal, readMoment } from '../read-cells/cell-readers.ts'
import { unfoldedBytes } from '../read-file/cards.ts'
import { detectEncoding, type Encoding } from '../read-file/encodings.ts'
import { openFile } from '../read-file/open-file.ts'
import { cardType, createFindings, type Findings, isWorkbook, readRows, type SheetRow } from '../read-file/read-rows.ts'
import { addLeftOut, createNotices, warningsOf } from '../report/notices.ts'
import { type ImportRow, type ImportType, type Mapping, mappedFields, planOf } from '../settings.ts'
import {
  type ColumnValues,
  type Detected,
  type DetectedDates,
  detectDateFormat,
  detectDecimalSeparator,
} from './detect-formats.ts'
import type { Layout } from './layouts/layout.ts'
import { mappedByLayout, recognizeLayout } from './layouts/recognize.ts'
import { type Suggestion, suggestFields } from './suggest-fields.ts'

type Analysis = Schema<'ImportAnalysis'>
type Separator = Schema<'ImportFieldSeparator'>

const separators: readonly Separator[] = [',', ';', '\t', '|']
const maxRows = 1000
/** The maximum number of characters to read, over all cells. */
const maxLength = 1024 * 1024
const maxSamples = 5
const maxSampleLength = 100

interface FileSample extends Table {
  encoding: Encoding
  separator: Separator
  warnings: readonly string[]
}

interface Table {
  /** The header, then the first rows. */
  rows: readonly (readonly string[])[]
  /** The number of the row with the headers. Null is the first row. */
  headerRow: number | null
  findings: Findings
  /** Whether the file has more rows. */
  isCut: boolean
}

/** The settings of the import that decide how its file is read. */
interface Given {
  contentType: string
  encoding: Encoding
  separator: Separator
  headerRow: number | null
  sheet: string | null
}

/**
 * The samples of the files analyzed last, by the hash of the file. The encoding needs the whole
 * file, so a file is read once and not at each call. Two calls at the same time share the reading.
 */
const samples = new LRUCache<string, Promise<FileSample>>({ max: 8 })

/**
 * Throws when the stored file is missing. Problems with the content of the file
 * become warnings.
 */
export async function analyzeFile(ctx: Context, row: ImportRow): Promise<Analysis> {
  const { contentType, ...sample } = await readFirstRows(ctx, row)
  return analyze(ctx, row, contentType, sample)
}

/** Returns the columns of the first rows. */
export const sampleColumns = async (ctx: Context, row: ImportRow): Promise<ColumnValues[]> =>
  columnsOf((await readFirstRows(ctx, row)).rows)

const columnsOf = ([header = [], ...body]: FileSample['rows']): ColumnValues[] =>
  header.map((cell, index) => ({ header: cell.trim(), values: body.map((cells) => cells[index] ?? '') }))

async function readFirstRows(ctx: Context, row: ImportRow): Promise<FileSample & { contentType: string }> {
  const { file, source, contentType } = await openFile(ctx, row)
  const given: Given = {
    contentType,
    encoding: row.encoding as Encoding,
    separator: row.field_separator as Separator,
    headerRow: row.header_row,
    sheet: row.sheet,
  }
  const key = JSON.stringify([file.sha256, given])
  const sample = samples.get(key) ?? sampleOfFile(source, given)
  samples.set(key, sample)
  const read = await sample.catch((cause: unknown) => {
    samples.delete(key)
    throw cause
  })
  return { ...read, contentType }
}

async function analyze(
  ctx: Context,
  row: ImportRow,
  contentType: string,
  { encoding, separator, rows, headerRow, findings, isCut, ...read }: FileSample,
): Promise<Analysis> {
  const isBook = isWorkbook(contentType)
  const warnings = [...read.warnings]
  const [header = [], ...body] = rows
  const columns = columnsOf(rows)
  const plan = planOf(row)
  const fields = await importColumns(ctx, plan.type)
  const ignored = await ignoredColumns(ctx, plan.type)
  const headers = columns.map((column) => column.header)
  const isOwn = contentType === cardType || bookkeeping.every(({ name }) => headers.includes(name))
  const known = isOwn ? undefined : recognizeLayout(plan.type, headers)
  const layout = known?.type === plan.type ? known : undefined
  if (known && !layout) warnings.push(`The file looks like ${known.name}, which has records of the type ${known.type}.`)
  const suggested = suggestionsOf(plan.type, fields, columns, layout)
  const readBy = (...readers: CellReader[]): ColumnValues[] =>
    columns.filter((_, index) =>
      mappedFields(suggested[index]?.mapped ?? null).some((field) =>
        readers.includes(fields.get(field)?.read as CellReader),
      ),
    )
  const dates = detectDateFormat(readBy(readDate, readMoment))
  const decimals = isBook ? null : detectDecimalSeparator(readBy(readDecimal))
  const mapping = mappingOf(columns, suggested, ignored, warnings)
  warnings.push(...guessWarnings(headers, suggested, mapping))
  const mapped = new Set(Object.values(mapping).flatMap(mappedFields))
  const missing = missingColumns(plan, [...mapped])
  if (header.length > 0 && missing) warnings.push(`No column is recognized as ${missing.join(' or ')}.`)
  warnings.push(...formatWarnings(dates, decimals), ...leftOutWarnings(mapping, headers, body, findings, isCut))
  return {
    format: isBook ? 'xlsx' : 'csv',
    layout: contentType === cardType ? 'vcard' : (layout?.name ?? null),
    sheets: [...findings.sheets],
    settings: {
      field_separator: separator,
      encoding,
      date_format: dates.format,
      decimal_separator: decimals?.format ?? null,
      mapping,
      constants: layout?.constants ? { ...layout.constants } : null,
      header_row: headerRow,
      sheet: row.sheet,
      unknown_references: treatmentOf(mapped, fields),
      // A list of subscribers has only addresses.
      missing_names: plan.type === 'persons' && !mapped.has('name') ? 'fill' : 'refuse',
    },
    columns: columns.map(({ header, values }, index) => ({
      header,
      samples: samplesOf(values),
      field: mappedFields(suggested[index]?.mapped ?? null)[0] ?? suggested[index]?.proposed ?? null,
      confidence: suggested[index]?.confidence ?? 'none',
    })),
    warnings,
  }
}

/** Returns the suggestions of the layout, and for its unknown headers those that are exact. */
function suggestionsOf(
  type: ImportType,
  fields: ReadonlyMap<string, ImportColumn>,
  columns: readonly ColumnValues[],
  layout: Layout | undefined,
): Suggestion[] {
  const general = suggestFields(type, fields, columns)
  if (!layout) return general
  const headers = columns.map(({ header }) => header)
  const rules = headers.map((header) => mappedByLayout(layout, header, headers, fields))
  const used = new Set(rules.flatMap((rule) => mappedFields(rule ?? null)))
  return general.map((suggestion, index) => {
    const rule = rules[index]
    // A custom attribute that has the name of the column is meant for it.
    const [own] = mappedFields(suggestion.mapped)
    const isCustom = suggestion.confidence === 'exact' && fields.get(own ?? '')?.path[0] === 'custom_attributes'
    if (isCustom) return suggestion
    if (rule !== undefined) return { mapped: rule, confidence: rule === null ? 'none' : 'likely' }
    const isFree =
      suggestion.confidence === 'exact' && !mappedFields(suggestion.mapped).some((field) => used.has(field))
    return isFree ? suggestion : { mapped: null, confidence: 'none' }
  })
}

/** Suggests to import rows without names that no record has, and to create the persons of leads. */
function treatmentOf(
  mapped: ReadonlySet<string>,
  fields: ReadonlyMap<string, ImportColumn>,
): Schema<'ImportUnknownReferences'> {
  if (mapped.has('person') || (fields.has('person') && mapped.has('organization_name'))) return 'create'
  return [...mapped].some((field) => fields.get(field)?.isReference) ? 'omit' : 'refuse'
}

/** Returns sentences for the filled columns without a field, as far as the sample shows them. */
function leftOutWarnings(
  mapping: Mapping,
  headers: readonly string[],
  body: readonly (readonly string[])[],
  findings: Findings,
  isCut: boolean,
): string[] {
  const labels = new Set(
    Object.values(mapping).flatMap((mapped) => (typeof mapped === 'object' && mapped?.label_column) || []),
  )
  const places = headers.flatMap((header, index) => (mapping[header] === null && !labels.has(header) ? index : []))
  const notices = createNotices()
  for (const cells of body) addLeftOut(notices, headers, places, cells)
  const found = warningsOf(notices, isCut ? { ...findings, footers: 0 } : findings)
  return isCut && found.length > 0 ? [...found, `These numbers are of the first ${body.length} rows.`] : found
}

const bytesOf = (source: Source): AsyncIterable<Buffer> => readAll(source) as AsyncIterable<Buffer>

async function sampleOfFile(source: Source, given: Given): Promise<FileSample> {
  const detected = isWorkbook(given.contentType)
    ? { encoding: given.encoding, isUncertain: false }
    : await detectEncoding(given.contentType === cardType ? unfoldedBytes(bytesOf(source)) : bytesOf(source))
  const { encoding, isUncertain } = detected
  const warnings =
    isUncertain && encoding !== 'mixed'
      ? [`The encoding ${encoding} is a guess; look at the samples, and set encoding if they are wrong.`]
      : []
  try {
    return { encoding, warnings, ...(await readSample(source, { ...given, encoding })) }
  } catch (error) {
    if (!stops(error, 'file')) throw error
    const { separator, headerRow } = given
    return {
      encoding,
      separator,
      rows: [],
      headerRow,
      findings: createFindings(),
      isCut: false,
      warnings: [error.message],
    }
  }
}

/**
 * Tries each separator and returns the first rows as read with the best one (`scoreOf`). The usual
 * separator is tried first and also wins when no separator scores higher.
 */
async function readSample(source: Source, given: Given): Promise<Table & { separator: Separator }> {
  let best = { separator: given.separator, ...(await firstRows(source, given)), score: 0 }
  if (isWorkbook(given.contentType) || given.contentType === cardType) return best
  best.score = scoreOf(best.rows)
  for (const separator of separators) {
    if (separator === given.separator) continue
    const table = await firstRows(source, { ...given, separator }).catch(() => null)
    // A wrong separator makes lines above the table out of the first rows.
    const isLower = table?.headerRow !== best.headerRow
    const score = table ? scoreOf(table.rows) * (isLower && table.headerRow !== null ? 0.5 : 1) : 0
    if (table && score > best.score) best = { separator, ...table, score }
  }
  return best
}

async function firstRows(source: Source, given: Given): Promise<Table> {
  const findings = createFindings()
  const rows: SheetRow[] = []
  let length = 0
  let isCut = false
  for await (const row of readRows(source, { ...given, findings })) {
    rows.push(row)
    length += row.cells.reduce((sum, cell) => sum + cell.length, 0)
    isCut = rows.length > maxRows || length > maxLength
    if (isCut) break
  }
  const from = given.headerRow === null ? headerPlace(rows.map(({ cells }) => cells)) : 0
  const headerRow = from === 0 ? given.headerRow : (rows[from]?.row ?? null)
  return { rows: rows.slice(from).map(({ cells }) => cells), headerRow, findings, isCut }
}

const maxTitles = 20
const filledIn = (cells: readonly string[]): number => cells.filter((cell) => cell.trim() !== '').length

/**
 * Returns the index of the header. Titles above a table fill fewer cells than half of those that
 * the rows of the table fill.
 */
function headerPlace(rows: readonly (readonly string[])[]): number {
  const widest = Math.max(0, ...rows.slice(0, maxTitles * 2).map(filledIn))
  if (widest < 2 || filledIn(rows[0] ?? []) * 2 > widest) return 0
  const place = rows.slice(0, maxTitles).findIndex((cells) => filledIn(cells) >= 2 && filledIn(cells) * 2 > widest)
  const header = rows[place] ?? []
  // A header consists of words.
  const isWords = header.every((cell) => cell.trim() === '' || /^[^\d\p{Sc}+-]*\p{L}/u.test(cell.trim()))
  return place > 0 && isWords ? place : 0
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
  const fields = new Map<string, Mapping[string]>()
  for (const [index, { header }] of columns.entries()) {
    if (fields.has(header) && header !== '')
      warnings.push(`The header ${header} occurs more than once; its columns are left out.`)
    fields.set(header, fields.has(header) || header === '' ? null : (suggested[index]?.mapped ?? null))
  }
  // Columns that only exports have are ignored anyway, so they are not in the mapping.
  return Object.fromEntries([...fields].filter(([header, field]) => field !== null || !ignored.has(header)))
}

/** Returns a sentence for each column whose field its header does not name. */
function guessWarnings(headers: readonly string[], suggested: readonly Suggestion[], mapping: Mapping): string[] {
  return suggested.flatMap(({ mapped, proposed, basis }, index) => {
    const header = headers[index] ?? ''
    const field = mappedFields(mapped)[0] ?? proposed
    if (basis === undefined || field === undefined || !Object.hasOwn(mapping, header)) return []
    if (proposed === undefined && mapping[header] === null) return []
    const name = shortened(header)
    if (basis === 'similar') return `The column ${name} is read as ${field}, because the names are similar.`
    const sentence = `Only the values of the column ${name} suggest the field ${field}`
    return proposed === undefined ? `${sentence}; it is read so.` : `${sentence}; map it if that is right.`
  })
}

function formatWarnings(dates: DetectedDates, decimals: Detected<string> | null): string[] {
  const found: string[] = []
  const { short, format } = dates
  if (dates.open !== null) {
    const order = short ? 'the order of day, month and year' : 'whether the day or the month comes first'
    found.push(`The dates in ${dates.open} do not tell ${order}; set date_format.`)
  }
  if (short) {
    const shown =
      format === null
        ? ''
        : ` ${short.value} is read as ${readFormattedDate(short.value, { date: format, locale: 'en' })}.`
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
