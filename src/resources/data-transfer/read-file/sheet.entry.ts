// A child process that reads a sheet of an XLSX file and yields its rows. The library trusts sizes
// that the file declares, so this file checks them, and sheet.ts limits memory and time.
import { unzipSync } from 'fflate'
import { readSheet } from 'read-excel-file/universal'
import { processInput, yieldFromProcess } from '../../../../db/entry-file.ts'

/**
 * A row, the names of the sheets, a sentence that says why the sheet is not read, or an error of
 * the reading.
 */
export type SheetValue = string[] | { sheets: string[] } | { refused: string } | { error: string }

/** The error for a workbook that is not read. Users see its message. */
class Refusal extends Error {}

interface Sheet {
  name: string
  isHidden: boolean
  /** The name of its part. */
  part: string
}

/** Rounds a number to the 15 digits that spreadsheets show. Files store 17 digits. */
const numberText = (text: string): string =>
  /^-?\d{1,15}$/.test(text) ? text : String(Number(Number(text).toPrecision(15)))

/** Formats a date, or a local date and time without a zone, rounded to the millisecond. */
function dateText(date: Date): string {
  const rounded = Math.round(date.getTime())
  if (!Number.isFinite(rounded) || Math.abs(rounded) > 8.64e15) return ''
  const [day = '', time = ''] = new Date(rounded)
    .toISOString()
    .replace(/(\.000)?Z$/, '')
    .split('T')
  return time === '00:00:00' ? day : `${day}T${time}`
}

const cellText = (value: unknown): string =>
  value === null ? '' : value instanceof Date ? dateText(value) : String(value)

const write: (value: SheetValue) => Promise<void> = yieldFromProcess

const maxUnpacked = 200 * 1024 * 1024
/**
 * The maximum compression ratio. Spreadsheet XML shrinks to about a tenth, so a much higher ratio
 * indicates an attack.
 */
const maxRatio = 250
const smallUnpacked = 16 * 1024 * 1024
const maxParts = 1000
const maxNameLength = 255

/**
 * Returns the names of the parts. Throws for a workbook that would become too large. The library
 * unpacks with the same reader, and never more than the sizes in the directory.
 */
function checkedParts(bytes: Buffer): string[] {
  const names: string[] = []
  let unpacked = 0
  unzipSync(bytes, {
    filter: ({ name, originalSize }) => {
      if (name.length > maxNameLength) throw new Error('The name of a part is too long.')
      if (names.push(name) > maxParts) throw new Refusal(`The workbook consists of more than ${maxParts} parts.`)
      unpacked += originalSize
      return false
    },
  })
  if (unpacked > maxUnpacked || (unpacked > smallUnpacked && unpacked > bytes.length * maxRatio))
    throw new Refusal('The workbook would become too large when it is unpacked.')
  // A flag of the first part.
  if ((bytes.readUInt16LE(6) & 1) === 1) throw new Refusal('The workbook is protected by a password.')
  return names
}

/**
 * Throws for a cell far outside a normal sheet. The library creates all rows and columns before a
 * cell, so a single such cell could exhaust the memory.
 */
function checkPlaces(bytes: Buffer, parts: readonly string[]): void {
  const place = /<(?:[\w.-]+:)?(?:row|c)\s(?:[^<>]*?\s)?r\s*=\s*["']([^"'<>]*)["']/g
  for (const part of parts.filter(isSheet)) {
    const xml = xmlOf(bytes, part).toString('latin1')
    for (const [, at = ''] of xml.matchAll(place)) {
      const [, column = '', row] = /^([A-Z]{0,3})(\d{1,7})$/.exec(at) ?? []
      if (row === undefined || Number(row) > maxRow || (column.length === 3 && column > 'ALL'))
        throw new Error(`A cell stands at ${at}.`)
    }
  }
}
/** The number of the last row that a sheet can have. */
const maxRow = 1_048_576

const isSheet = (part: string): boolean => /^\/?xl\/worksheets\/(?!_rels\/)/i.test(part)

function xmlOf(bytes: Buffer, part: string): Buffer {
  const { buffer, byteOffset, length } = unzipSync(bytes, { filter: ({ name }) => name === part })[part] ?? Buffer.of()
  return Buffer.from(buffer, byteOffset, length)
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Returns the attributes of a tag, without the prefixes of their names. */
const attributesOf = (tag: string): Record<string, string> =>
  Object.fromEntries(
    [...tag.matchAll(/(?<![\w:.-])([\w:.-]+)=(?:"([^"]*)"|'([^']*)')/g)].map(([, name = '', double, single]) => [
      name.replace(/^.*:/, ''),
      (double ?? single ?? '').replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (all, digits, hex, word) =>
        word ? (entities[word] ?? all) : String.fromCodePoint(digits ? Number(digits) : Number.parseInt(hex, 16)),
      ),
    ]),
  )

/** Returns the sheets in their order; none if the workbook describes them in an unknown way. */
function sheetsOf(bytes: Buffer, parts: readonly string[]): Sheet[] {
  const text = (pattern: RegExp): string => {
    const part = parts.find((name) => pattern.test(name))
    return part ? xmlOf(bytes, part).toString('utf8') : ''
  }
  const targets = new Map(
    [...text(/^\/?xl\/_rels\/workbook\.xml\.rels$/i).matchAll(/<(?:\w+:)?Relationship\s[^>]*>/g)].map(([tag]) => {
      const { Id = '', Target = '' } = attributesOf(tag)
      return [Id, Target.startsWith('/') ? Target.slice(1) : `xl/${Target}`]
    }),
  )
  return [...text(/^\/?xl\/workbook\.xml$/i).matchAll(/<(?:\w+:)?sheet\s[^>]*>/g)].map(([tag]) => {
    const { name = '', state = 'visible', id = '' } = attributesOf(tag)
    return { name, isHidden: state !== 'visible', part: targets.get(id) ?? '' }
  })
}

/** Returns the number of digits of each style that shows zeros before a number, such as `00000`. */
function zeroStyles(bytes: Buffer, parts: readonly string[]): Map<number, number> {
  const part = parts.find((name) => /^\/?xl\/styles\.xml$/i.test(name))
  const xml = part ? xmlOf(bytes, part).toString('utf8') : ''
  const codes = new Map(
    [...xml.matchAll(/<(?:\w+:)?numFmt\s[^>]*>/g)].map(([tag]) => {
      const { numFmtId = '', formatCode = '' } = attributesOf(tag)
      return [
        numFmtId,
        /^0{2,}$/.test((formatCode.split(';')[0] ?? '').replace(/\\.|"[^"]*"/g, ''))
          ? (formatCode.split(';')[0]?.length ?? 0)
          : 0,
      ]
    }),
  )
  const [, formats = ''] = /<(?:\w+:)?cellXfs[\s>]([\s\S]*?)<\/(?:\w+:)?cellXfs>/.exec(xml) ?? []
  const styles = [...formats.matchAll(/<(?:\w+:)?xf\s[^>]*>/g)].map(([tag]) =>
    codes.get(attributesOf(tag).numFmtId ?? ''),
  )
  return new Map(styles.flatMap((digits, style) => (digits ? [[style, digits] as const] : [])))
}

/** Adds the zeros that the sheet shows before numbers, such as those of a postal code. */
function addZeros(rows: (string | null)[][], bytes: Buffer, parts: readonly string[], sheet: Sheet | undefined): void {
  const styles = zeroStyles(bytes, parts)
  const own = parts.filter(isSheet)
  const part = own.find((name) => name.replace(/^\//, '') === sheet?.part) ?? (own.length === 1 ? own[0] : undefined)
  if (styles.size === 0 || !part) return
  const xml = xmlOf(bytes, part).toString('utf8')
  for (const [tag] of xml.matchAll(/<(?:\w+:)?c\s[^>]*>/g)) {
    const { r = '', s = '' } = attributesOf(tag)
    const digits = styles.get(Number(s))
    const [, letters = '', row] = /^([A-Z]+)(\d+)$/.exec(r) ?? []
    const cells = digits === undefined ? undefined : rows[Number(row) - 1]
    const at = [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
    const text = cells?.[at]
    if (cells && typeof text === 'string' && /^\d+$/.test(text)) cells[at] = text.padStart(digits ?? 0, '0')
  }
}

const { bytes, sheet: wanted } = await processInput<{ bytes: Buffer<ArrayBuffer>; sheet: string }>()
try {
  const parts = checkedParts(bytes)
  checkPlaces(bytes, parts)
  const sheets = sheetsOf(bytes, parts)
  const visible = sheets.filter(({ isHidden }) => !isHidden)
  await write({ sheets: visible.map(({ name }) => name) })
  const sheet = wanted === '' ? (visible[0] ?? sheets[0]) : sheets.find(({ name }) => name === wanted)
  if (wanted !== '' && !sheet) throw new Refusal(`The workbook has no sheet ${wanted}.`)
  const input = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)
  const read = await readSheet(input, sheet ? sheets.indexOf(sheet) + 1 : 1, { parseNumber: numberText })
  const rows = read.map((row) => row.map(cellText))
  addZeros(rows, bytes, parts, sheet)
  for (const row of rows) await write(row)
} catch (error) {
  if (error instanceof Refusal) await write({ refused: error.message })
  else await write({ error: error instanceof Error ? error.message : String(error) })
}
