// Where received mails are read: small ones at once, in a few milliseconds, and all others in a process of their own
// (subprocess.ts), so that no mail holds up the server.

import { Busy, Unreadable } from '../failures.ts'
import type { Given } from './fields.ts'
import type { ReceivedMail } from './read.ts'
import { type ReadingLimits, readApart } from './subprocess.ts'

export { Busy, Unreadable } from '../failures.ts'
export type { ReceivedAttachment, ReceivedMail } from './read.ts'
export type { ReadingLimits } from './subprocess.ts'

/** Up to here the worst that is known takes some 50 ms. */
const maxBytesHere = 16 * 1024
const maxLinesHere = 500

/**
 * A mail that cannot be read within bounds comes with what its headers say, and with `error`. Throws Busy, and Unreadable for what is no
 * mail, unless it is known to be one.
 */
export const parseMail = (
  bytes: Uint8Array,
  limits: ReadingLimits = {},
  { isMail = false }: { isMail?: boolean } = {},
): Promise<ReceivedMail> => reading({ raw: bytes, fields: {} }, limits, isMail)

/** The same for a mail that came in a form. Files that were fields are not in it. */
export async function reading(given: Given, limits: ReadingLimits, isMail = false): Promise<ReceivedMail> {
  try {
    if (!isSmall(given)) return await readApart(given, limits)
    const { read } = await import('./fields.ts')
    return await read(given)
  } catch (cause) {
    if (cause instanceof Busy || (cause instanceof Unreadable && !cause.isMail && !isMail)) throw cause
    const mail = await unread(given, cause instanceof Unreadable ? cause.message : 'The e-mail cannot be read.')
    if (!isMail && Object.keys(mail.headers).length === 0 && mail.from === null && mail.subject === null) throw cause
    return mail
  }
}

function isSmall({ raw, fields }: Given): boolean {
  const size = Object.values(fields).reduce((sum, each) => sum + each.length, raw?.length ?? 0)
  return size <= maxBytesHere && (raw === null || linesIn(raw) <= maxLinesHere)
}

function linesIn(bytes: Uint8Array): number {
  let lines = 1
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}

/** The headers of a mail that is not parsed, with a sentence that says why. */
export async function unread(given: Given, error: string): Promise<ReceivedMail> {
  return (await import('./unreadable.ts')).unread(given, error)
}
