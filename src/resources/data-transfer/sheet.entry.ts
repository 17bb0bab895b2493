// A child process that reads the first sheet of an XLSX file from standard input and writes each
// row as a line of JSON. The library trusts sizes that the file declares, so sheet.ts limits memory
// and time.
import { once } from 'node:events'
import { inflateRawSync } from 'node:zlib'
import { readSheet } from 'read-excel-file/universal'

/** The bytes of one sheet within the workbook. */
export interface SheetPart {
  from: number
  to: number
  isPacked: boolean
}

/** A row, the end of the sheet, or the reason why the sheet cannot be read. */
export type SheetLine = string[] | { end: true } | { error: string }

/** Rounds a number to the 15 digits that spreadsheets show. Files store 17 digits. */
const numberText = (text: string): string =>
  /^-?\d{1,15}$/.test(text) ? text : String(Number(Number(text).toPrecision(15)))

/** Formats a date, or a local date and time without a zone, rounded to the second. */
function dateText(date: Date): string {
  const rounded = Math.round(date.getTime() / 1000) * 1000
  if (!Number.isFinite(rounded) || Math.abs(rounded) > 8.64e15) return ''
  const [day = '', time] = new Date(rounded).toISOString().slice(0, -5).split('T')
  return time === '00:00:00' ? day : `${day}T${time}`
}

const cellText = (value: unknown): string =>
  value === null ? '' : value instanceof Date ? dateText(value) : String(value)

async function write(value: SheetLine): Promise<void> {
  if (!process.stdout.write(`${JSON.stringify(value)}\n`)) await once(process.stdout, 'drain')
}

/**
 * Throws for a cell far outside a normal sheet. The library creates all rows and columns before a
 * cell, so a single such cell could exhaust the memory.
 */
function checkPlaces(bytes: Buffer, parts: readonly SheetPart[]): void {
  const place = /<(?:[\w.-]+:)?(?:row|c)\s(?:[^<>]*?\s)?r\s*=\s*["']([^"'<>]*)["']/g
  for (const { from, to, isPacked } of parts) {
    const part = bytes.subarray(from, to)
    const xml = (isPacked ? inflateRawSync(part, { maxOutputLength: maxBytes }) : part).toString('latin1')
    for (const [, at = ''] of xml.matchAll(place)) {
      const [, column = '', row] = /^([A-Z]{0,3})(\d{1,7})$/.exec(at) ?? []
      if (row === undefined || Number(row) > maxRow || (column.length === 3 && column > 'ALL'))
        throw new Error(`A cell stands at ${at}.`)
    }
  }
}
/** The number of the last row that a sheet can have. */
const maxRow = 1_048_576
const maxBytes = 200 * 1024 * 1024

const chunks: Buffer[] = []
for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
const bytes = Buffer.concat(chunks)
try {
  checkPlaces(bytes, JSON.parse(process.argv[2] ?? '[]') as SheetPart[])
  const input = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)
  const rows = await readSheet(input, 1, { parseNumber: numberText })
  for (const row of rows) await write(row.map(cellText))
  await write({ end: true })
} catch (error) {
  await write({ error: error instanceof Error ? error.message : String(error) })
}
