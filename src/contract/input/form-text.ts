// The charset of HTML forms. Browsers send forms in the charset of the page, and programs on
// Windows often in windows-1252. A form rarely names its charset.
import { isUtf8 } from 'node:buffer'

/**
 * Decodes a text of a form: UTF-8, or else the named charset, or else windows-1252. ISO-8859-1 and
 * US-ASCII are windows-1252, as in browsers.
 */
export function formText(bytes: Buffer, charset = ''): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  return /^(utf-?8|(us-)?ascii|iso-?8859-1|latin1|windows-1252|cp1252)?$/i.test(charset)
    ? windows1252(bytes)
    : (decoderOf(charset)?.decode(bytes) ?? windows1252(bytes))
}

/** Returns undefined for a charset that Node does not know. */
function decoderOf(charset: string): TextDecoder | undefined {
  try {
    return new TextDecoder(charset)
  } catch {
    return undefined
  }
}

/** The characters of the bytes 0x80 to 0x9f, which some versions of Node decode as controls. */
const high = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'
const windows1252 = (bytes: Buffer): string =>
  bytes.toString('latin1').replaceAll(/[\x80-\x9f]/g, (byte) => high[byte.charCodeAt(0) - 0x80] ?? byte)

/** Returns the charset that a Content-Type names; undefined when it names none. */
export const charsetIn = (contentType: string): string | undefined =>
  /;\s{0,9}charset\s{0,9}=\s{0,9}"?([\w.:-]{1,40})/i.exec(contentType)?.[1]

const [percent, plus, space] = [0x25, 0x2b, 0x20]

/**
 * Decodes the escapes of a name or value; an invalid escape stays unchanged. Works byte by byte,
 * because a mail can have millions of bytes.
 */
export function unescaped(bytes: Buffer): Buffer {
  const plain = Buffer.allocUnsafe(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    const code = byte === percent ? 16 * digit(bytes[at + 1]) + digit(bytes[at + 2]) : Number.NaN
    const isEscape = !Number.isNaN(code)
    plain[length++] = isEscape ? code : byte === plus ? space : byte
    if (isEscape) at += 2
  }
  return plain.subarray(0, length)
}

/** Returns the value of a hexadecimal digit; NaN for any other byte. */
function digit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : Number.NaN
}
