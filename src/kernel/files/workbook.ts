// Writes tables as XLSX workbooks, row by row and with little memory. This file writes the XML
// parts of a workbook; yazl compresses them. Text cells have a text type, so programs do not treat
// them as formulas.
import { once } from 'node:events'
import { Readable } from 'node:stream'

export const workbookType = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

/** A date, or a date with a time, as a calendar and a clock on the wall show it: read as UTC. */
export interface WorkbookTime {
  shown: number
  isDate: boolean
}
type Value = string | number | boolean | WorkbookTime | null
export type WorkbookRow = readonly Value[]

/** The limits of spreadsheet programs. */
const maxSheetRows = 1_048_576
const maxCellLength = 32_767

/** A fixed modification time, so that equal rows produce equal bytes. */
const entryOptions = { mtime: new Date('1980-01-02T00:00:00Z') }

const declaration = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
const office = 'http://schemas.openxmlformats.org'
const main = `${office}/spreadsheetml/2006/main`
const relations = `${office}/officeDocument/2006/relationships`

/**
 * Yields the bytes of a workbook. `rows` yields groups of rows. The first row is the header, which
 * each sheet repeats. A text is cut to `maxCellLength` characters.
 */
export async function* writeWorkbook(
  rows: AsyncIterable<readonly WorkbookRow[]>,
  { maxRows = maxSheetRows }: { maxRows?: number } = {},
): AsyncGenerator<Buffer> {
  const { default: yazl } = await import('yazl')
  const zip = new yazl.ZipFile()
  const output = zip.outputStream as Readable
  zip.on('error', (error) => output.destroy(error))
  const source = rowReader(rows)
  let sheet: Readable | undefined

  /** Adds the sheets one after another. Then adds the parts that contain the number of sheets. */
  async function addParts(): Promise<void> {
    const header = await source.next()
    let count = 0
    do {
      sheet = Readable.from(sheetParts(header ?? [], source, maxRows), { objectMode: false })
      zip.addReadStream(sheet, `xl/worksheets/sheet${++count}.xml`, entryOptions)
      await once(sheet, 'end')
    } while (await source.hasMore())
    for (const [name, content] of Object.entries(bookParts(count)))
      zip.addBuffer(Buffer.from(content), name, entryOptions)
    zip.end()
  }

  const added = addParts().catch((error: Error) => void output.destroy(error))
  try {
    for await (const chunk of output) yield chunk as Buffer
    await added
  } finally {
    sheet?.destroy()
    await source.close()
  }
}

interface RowReader {
  next(): Promise<WorkbookRow | undefined>
  hasMore(): Promise<boolean>
  close(): Promise<void>
}

/** Reads groups of rows one row at a time. */
function rowReader(groups: AsyncIterable<readonly WorkbookRow[]>): RowReader {
  const iterator = groups[Symbol.asyncIterator]()
  let ahead: WorkbookRow[] = []
  const hasMore = async (): Promise<boolean> => {
    while (ahead.length === 0) {
      const { done, value } = await iterator.next()
      if (done) return false
      ahead = [...value]
    }
    return true
  }
  return {
    hasMore,
    next: async () => ((await hasMore()) ? ahead.shift() : undefined),
    close: async () => void (await iterator.return?.()),
  }
}

/** The number of rows in one chunk of XML. */
const chunkRows = 100

async function* sheetParts(header: WorkbookRow, rows: RowReader, maxRows: number): AsyncGenerator<string> {
  yield `${declaration}<worksheet xmlns="${main}"><sheetData>${rowXml(header, 1)}`
  let xml = ''
  for (let count = 1; count < maxRows; count++) {
    const row = await rows.next()
    if (row === undefined) break
    xml += rowXml(row, count + 1)
    if (count % chunkRows !== 0) continue
    yield xml
    xml = ''
  }
  yield `${xml}</sheetData></worksheet>`
}

const rowXml = (cells: WorkbookRow, row: number): string =>
  `<row r="${row}">${cells.map((value, column) => cellXml(value, `${columnName(column)}${row}`)).join('')}</row>`

/** Returns the name of a column: A, B … Z, AA … */
function columnName(index: number): string {
  const letter = String.fromCharCode(65 + (index % 26))
  return index < 26 ? letter : columnName(Math.floor(index / 26) - 1) + letter
}

function cellXml(value: Value, at: string): string {
  if (value === null || value === '') return ''
  if (typeof value === 'number') return Number.isFinite(value) ? `<c r="${at}"><v>${value}</v></c>` : ''
  if (typeof value === 'boolean') return `<c r="${at}" t="b"><v>${Number(value)}</v></c>`
  if (typeof value === 'object') return `<c r="${at}" s="${value.isDate ? 1 : 2}"><v>${dayNumber(value.shown)}</v></c>`
  const text = xmlText(value.slice(0, maxCellLength))
  return `<c r="${at}" t="inlineStr"><is><t xml:space="preserve">${text}</t></is></c>`
}

/** Returns the days since 1899-12-30, by which workbooks store times. */
const dayNumber = (time: number): number => time / 86_400_000 + 25_569

/** The formats of dates and times, which programs show as usual in the country of their user. */
const cellFormats = [0, 14, 22]

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '\r': '&#13;' }
/**
 * Matches characters that XML cannot contain, and texts that look like their escape form `_x0001_`
 * (ISO 29500, ST_Xstring).
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
const unwritable = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|_(?=x[0-9a-f]{4}_)/gi

const xmlText = (text: string): string =>
  text
    .replaceAll(/\p{Surrogate}/gu, '\ufffd')
    .replaceAll(unwritable, (char) => `_x${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`)
    .replaceAll(/[&<>\r]/g, (char) => entities[char] ?? char)

/** Returns the parts of the workbook other than its sheets, by path. */
function bookParts(sheets: number): Record<string, string> {
  const numbers = Array.from({ length: sheets }, (_, index) => index + 1)
  const type = 'application/vnd.openxmlformats-officedocument.spreadsheetml'
  const relation = (id: number, kind: string, target: string): string =>
    `<Relationship Id="rId${id}" Type="${relations}/${kind}" Target="${target}"/>`
  const related = (entries: string[]): string =>
    `${declaration}<Relationships xmlns="${office}/package/2006/relationships">${entries.join('')}</Relationships>`
  const override = (name: string, kind: string): string =>
    `<Override PartName="/xl/${name}.xml" ContentType="${type}.${kind}+xml"/>`
  return {
    '[Content_Types].xml': `${declaration}<Types xmlns="${office}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>${override('workbook', 'sheet.main')}${override('styles', 'styles')}${numbers.map((each) => override(`worksheets/sheet${each}`, 'worksheet')).join('')}</Types>`,
    '_rels/.rels': related([relation(1, 'officeDocument', 'xl/workbook.xml')]),
    'xl/workbook.xml': `${declaration}<workbook xmlns="${main}" xmlns:r="${relations}"><sheets>${numbers.map((each) => `<sheet name="Sheet${each}" sheetId="${each}" r:id="rId${each}"/>`).join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': related([
      ...numbers.map((each) => relation(each, 'worksheet', `worksheets/sheet${each}.xml`)),
      relation(sheets + 1, 'styles', 'styles.xml'),
    ]),
    'xl/styles.xml': `${declaration}<styleSheet xmlns="${main}"><fonts count="1"><font/></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="${cellFormats.length}">${cellFormats.map((format) => `<xf numFmtId="${format}" applyNumberFormat="1"/>`).join('')}</cellXfs></styleSheet>`,
  }
}
