// Checks an XLSX workbook, which is a zip file, before it is unpacked. The sizes in the zip
// directory must not exceed the limits. The XLSX library never unpacks more than these sizes.
const maxUnpacked = 200 * 1024 * 1024
/**
 * The maximum compression ratio. Spreadsheet XML shrinks to about a tenth, so a much higher ratio
 * indicates an attack.
 */
const maxRatio = 250
const smallUnpacked = 16 * 1024 * 1024
const maxEntries = 1000
const maxNameLength = 255

const signatures = { end: 0x06054b50, end64: 0x07064b50, entry: 0x02014b50 }
const endSize = 22
const entrySize = 46
const localSize = 30
const notReadable = 'The file is not a workbook that can be read.'

/** An entry of a zip file: the byte range of its content, and whether the content is compressed. */
export interface ZipEntry {
  name: string
  from: number
  to: number
  isPacked: boolean
}

/** Returns the entries of a zip file, or a sentence that says why the file must not be unpacked. */
export function zipEntries(bytes: Buffer): ZipEntry[] | string {
  const end = endOf(bytes)
  if (end === undefined) return notReadable
  const entries = bytes.readUInt16LE(end + 10)
  if (entries > maxEntries || bytes.readUInt16LE(end + 8) !== entries)
    return `The workbook consists of more than ${maxEntries} parts.`
  let at = bytes.readUInt32LE(end + 16)
  let unpacked = 0
  const found: ZipEntry[] = []
  for (let entry = 0; entry < entries; entry++) {
    if (at + entrySize > bytes.length || bytes.readUInt32LE(at) !== signatures.entry) return notReadable
    if ((bytes.readUInt16LE(at + 8) & 1) === 1) return 'The workbook is protected by a password.'
    unpacked += bytes.readUInt32LE(at + 24)
    const nameLength = bytes.readUInt16LE(at + 28)
    if (nameLength > maxNameLength) return notReadable
    const nameEnd = at + entrySize + nameLength
    const local = bytes.readUInt32LE(at + 42)
    if (local + localSize > bytes.length) return notReadable
    const from = local + localSize + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28)
    found.push({
      name: bytes.toString('latin1', at + entrySize, nameEnd),
      from,
      to: from + bytes.readUInt32LE(at + 20),
      isPacked: bytes.readUInt16LE(at + 10) !== 0,
    })
    at = nameEnd + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32)
  }
  if (unpacked > maxUnpacked || (unpacked > smallUnpacked && unpacked > bytes.length * maxRatio))
    return 'The workbook would become too large when it is unpacked.'
  return found
}

/**
 * Returns the position of the end-of-directory record. Returns undefined when the record is missing
 * or the file uses ZIP64.
 */
function endOf(bytes: Buffer): number | undefined {
  for (let at = bytes.length - endSize; at >= 0 && bytes.length - at <= 65_558; at--) {
    if (bytes.readUInt32LE(at) !== signatures.end) continue
    return at >= 20 && bytes.readUInt32LE(at - 20) === signatures.end64 ? undefined : at
  }
  return undefined
}
