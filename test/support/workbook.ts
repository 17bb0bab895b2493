// Builds XLSX files for tests, so that the repository needs no binary files. The sizes in the zip
// directory can be wrong on purpose.
import { crc32, deflateRawSync } from 'node:zlib'

type Cell = string | number | boolean | Date | null

const xml = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
const office = 'http://schemas.openxmlformats.org'
const escaped = (text: string): string => text.replace(/[&<>]/g, (char) => `&#${char.charCodeAt(0)};`)

function columnName(index: number): string {
  const letter = String.fromCharCode(65 + (index % 26))
  return index < 26 ? letter : columnName(Math.floor(index / 26) - 1) + letter
}

function cell(value: Cell, at: string): string {
  if (value === null) return ''
  if (typeof value === 'number') return `<c r="${at}"><v>${value}</v></c>`
  if (typeof value === 'boolean') return `<c r="${at}" t="b"><v>${Number(value)}</v></c>`
  // A date is the number of days since 1899-12-30.
  if (value instanceof Date) return `<c r="${at}" s="1"><v>${value.getTime() / 86_400_000 + 25_569}</v></c>`
  return `<c r="${at}" t="inlineStr"><is><t>${escaped(value)}</t></is></c>`
}

/** Returns a workbook with one sheet. `more` is XML that is added after the rows. */
export function workbook(rows: readonly (readonly Cell[])[], more = ''): Buffer {
  const sheet = rows.map(
    (row, index) =>
      `<row r="${index + 1}">${row.map((value, column) => cell(value, `${columnName(column)}${index + 1}`)).join('')}</row>`,
  )
  const relations = (type: string, entries: string[]): string =>
    `${xml}<Relationships xmlns="${office}/package/2006/relationships">${entries
      .map(
        (entry, index) =>
          `<Relationship Id="rId${index + 1}" Type="${office}/officeDocument/2006/relationships/${entry}`,
      )
      .join('')}</Relationships>${type}`
  return zip({
    '[Content_Types].xml': `${xml}<Types xmlns="${office}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>`,
    '_rels/.rels': relations('', ['officeDocument" Target="xl/workbook.xml"/>']),
    'xl/workbook.xml': `${xml}<workbook xmlns="${office}/spreadsheetml/2006/main" xmlns:r="${office}/officeDocument/2006/relationships"><sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations('', [
      'worksheet" Target="worksheets/sheet1.xml"/>',
      'styles" Target="styles.xml"/>',
    ]),
    'xl/styles.xml': `${xml}<styleSheet xmlns="${office}/spreadsheetml/2006/main"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs></styleSheet>`,
    'xl/worksheets/sheet1.xml': `${xml}<worksheet xmlns="${office}/spreadsheetml/2006/main"><sheetData>${sheet.join('')}${more}</sheetData></worksheet>`,
  })
}

/** Returns a zip file. `claimed` overrides the uncompressed sizes in the directory. */
export function zip(parts: Record<string, string | Buffer>, claimed: Record<string, number> = {}): Buffer {
  const files: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const [name, content] of Object.entries(parts)) {
    const bytes = Buffer.from(content as string)
    const packed = deflateRawSync(bytes)
    const head = Buffer.alloc(26)
    head.writeUInt16LE(20, 0)
    head.writeUInt16LE(8, 4)
    head.writeUInt32LE(crc32(bytes), 10)
    head.writeUInt32LE(packed.length, 14)
    head.writeUInt32LE(claimed[name] ?? bytes.length, 18)
    head.writeUInt16LE(name.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), head, Buffer.from(name), packed])
    const where = Buffer.alloc(14)
    where.writeUInt32LE(at, 10)
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), head, where, Buffer.from(name)]))
    files.push(local)
    at += local.length
  }
  const listed = Buffer.concat(directory)
  const end = Buffer.alloc(18)
  end.writeUInt16LE(directory.length, 4)
  end.writeUInt16LE(directory.length, 6)
  end.writeUInt32LE(listed.length, 8)
  end.writeUInt32LE(at, 12)
  return Buffer.concat([...files, listed, Buffer.from('PK\x05\x06'), end])
}
