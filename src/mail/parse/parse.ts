// Decides where a received e-mail is parsed, so that no e-mail blocks the server. A small e-mail
// takes milliseconds and is parsed in this process. Any other e-mail is parsed in a separate
// process (subprocess.ts).

import { isUtf8 } from 'node:buffer'
import { MailReaderBusy, UnreadableMail } from '../failures.ts'
import type { MailSource } from './fields.ts'
import type { ReceivedMail } from './read.ts'
import { type ReadingLimits, readInSubprocess } from './subprocess.ts'

export { MailReaderBusy, UnreadableMail } from '../failures.ts'
export type { Bounce, FailedRecipient } from './bounce.ts'
export type { InvitationAnswer } from './invitation-answer.ts'
export type { ReceivedAttachment, ReceivedMail } from './read.ts'
export type { ReadingLimits } from './subprocess.ts'

/**
 * The maximum size in bytes of an e-mail that is parsed in this process. The worst known e-mail of
 * this size takes about 50 ms.
 */
const maxBytesHere = 16 * 1024
const maxLinesHere = 500

/**
 * Parses an e-mail. Returns only the headers, with `error` set, when the e-mail exceeds the limits.
 * Throws MailReaderBusy when too many e-mails wait. Throws UnreadableMail when the bytes are not an
 * e-mail, unless `isMail` is true.
 */
export const parseMail = (
  bytes: Uint8Array,
  limits: ReadingLimits = {},
  { isMail = false }: { isMail?: boolean } = {},
): Promise<ReceivedMail> => readSource({ raw: bytes, fields: {} }, limits, isMail)

/**
 * Parses an e-mail that is given as raw bytes or as form fields. Returns and throws as `parseMail`
 * does. Attachments posted as files are not part of the result.
 */
export async function readSource(given: MailSource, limits: ReadingLimits, isMail = false): Promise<ReceivedMail> {
  try {
    if (!isSmall(given)) return await readInSubprocess(given, limits)
    const { readMailSource: read } = await import('./fields.ts')
    return await read(given)
  } catch (cause) {
    if (cause instanceof MailReaderBusy || (cause instanceof UnreadableMail && !cause.isMail && !isMail)) throw cause
    const mail = await unreadableMail(
      given,
      cause instanceof UnreadableMail ? cause.message : 'The e-mail cannot be read.',
    )
    if (!isMail && Object.keys(mail.headers).length === 0 && mail.from === null && mail.subject === null) throw cause
    return mail
  }
}

function isSmall({ raw, fields }: MailSource): boolean {
  const size = Object.values(fields).reduce((sum, each) => sum + each.length, raw?.length ?? 0)
  // The other process decodes e-mails in other charsets than UTF-8.
  return size <= maxBytesHere && (raw === null || (linesIn(raw) <= maxLinesHere && isPlainUtf8(raw)))
}

function linesIn(bytes: Uint8Array): number {
  let lines = 1
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}

/**
 * Returns whether a standard TextDecoder decodes the e-mail correctly: it is UTF-8, and it names no
 * other charset.
 */
function isPlainUtf8(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (!isUtf8(buffer)) return false
  const labels = buffer
    .toString('latin1')
    .matchAll(/charset\s{0,9}\*?=\s{0,9}("[^"\s]{0,40}"|[^\s;>]{0,40})|=\?([^?\s]{1,60})\?[bq]\?|\*=([\w-]{1,40})'/gi)
  return [...labels].every(([, inType, inWord, inName]) =>
    /^("utf-?8"|utf-?8)$/i.test(inType ?? inWord ?? inName ?? ''),
  )
}

/**
 * Returns only the headers of an e-mail. `error` is a sentence that says why the rest is not
 * parsed.
 */
export async function unreadableMail(given: MailSource, error: string): Promise<ReceivedMail> {
  return (await import('./unreadable.ts')).readHeadersOnly(given, error)
}
