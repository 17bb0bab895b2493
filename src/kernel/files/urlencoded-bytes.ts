// Reads application/x-www-form-urlencoded forms in an unknown charset. Each byte becomes one
// character. Such a form contains files as texts.
import { isFile } from '../../contract/input/form.ts'
import type { Shape } from '../../contract/input/normalize.ts'

/** Yields the first `most` fields of the form, in order. */
export function* fieldsOf(body: Buffer, most: number): Generator<[name: string, text: string]> {
  for (let from = 0, count = 0; from < body.length && count < most; count++) {
    const end = body.indexOf('&', from)
    const field = body.subarray(from, end < 0 ? body.length : end)
    from = end < 0 ? body.length : end + 1
    const equals = field.indexOf('=')
    const name = unescaped(equals < 0 ? field : field.subarray(0, equals))
    if (name !== '') yield [name, equals < 0 ? '' : unescaped(field.subarray(equals + 1))]
  }
}

const [percent, plus, space] = [0x25, 0x2b, 0x20]

/**
 * Decodes the escapes of a name or value; an invalid escape stays unchanged. Works byte by byte,
 * because a mail can have millions of bytes.
 */
function unescaped(bytes: Buffer): string {
  const plain = Buffer.allocUnsafe(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number
    const code = byte === percent ? 16 * digit(bytes[at + 1]) + digit(bytes[at + 2]) : Number.NaN
    const isEscape = !Number.isNaN(code)
    plain[length++] = isEscape ? code : byte === plus ? space : byte
    if (isEscape) at += 2
  }
  return plain.toString('latin1', 0, length)
}

/** Returns the value of a hexadecimal digit; NaN for any other byte. */
function digit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : Number.NaN
}

/** Returns the schema with each file property replaced by a text property. */
export const textsOnly = ({ properties = {}, ...schema }: Shape): Shape => ({
  ...schema,
  properties: Object.fromEntries(
    Object.entries(properties).map(([name, shape]) => [name, isFile(shape) ? { ...shape, format: 'bytes' } : shape]),
  ),
})

/**
 * Returns a file name with the escapes of browsers decoded or removed. Browsers percent-encode
 * quotes and line ends, which would break the header of the part.
 */
export const asNamed = (filename: string): string =>
  filename.replaceAll(/%(22|0D|0A)/gi, (_all, byte: string) => (byte === '22' ? '"' : ''))
