// Finds e-mails that Node can decode, without loading the tables of other charsets.
import { isUtf8 } from 'node:buffer'

/**
 * Returns whether a standard TextDecoder decodes the e-mail correctly: it is UTF-8, and it names no
 * other charset.
 */
export function isPlainUtf8(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!isUtf8(buffer)) return false
  const labels = buffer
    .toString('latin1')
    .matchAll(/charset\s{0,9}\*?=\s{0,9}("[^"\s]{0,40}"|[^\s;>]{0,40})|=\?([^?\s]{1,60})\?[bq]\?|\*=([\w-]{1,40})'/gi)
  return [...labels].every(([, inType, inWord, inName]) =>
    /^("utf-?8"|utf-?8)$/i.test(inType ?? inWord ?? inName ?? ''),
  )
}
