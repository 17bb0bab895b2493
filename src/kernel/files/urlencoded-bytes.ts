// Reads application/x-www-form-urlencoded forms in an unknown charset. Each byte becomes one
// character. Such a form contains files as texts.
import { isFile } from '../../contract/input/form.ts'
import { unescaped } from '../../contract/input/form-text.ts'
import type { Shape } from '../../contract/input/normalize.ts'

/** Yields the first `most` fields of the form, in order. */
export function* fieldsOf(body: Buffer, most: number): Generator<[name: string, text: string]> {
  for (let from = 0, count = 0; from < body.length && count < most; count++) {
    const end = body.indexOf('&', from)
    const field = body.subarray(from, end < 0 ? body.length : end)
    from = end < 0 ? body.length : end + 1
    const equals = field.indexOf('=')
    const name = unescaped(equals < 0 ? field : field.subarray(0, equals)).toString('latin1')
    if (name !== '') yield [name, equals < 0 ? '' : unescaped(field.subarray(equals + 1)).toString('latin1')]
  }
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
