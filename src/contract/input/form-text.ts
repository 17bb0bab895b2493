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

/** Decodes the escapes of a name or value in application/x-www-form-urlencoded. */
export const unescapedText = (escaped: string, charset?: string): string =>
  formText(
    Buffer.from(
      escaped
        .replaceAll('+', ' ')
        .replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
      'latin1',
    ),
    charset,
  )
