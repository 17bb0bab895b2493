// Where received mails are read: small ones at once, in a few milliseconds, and all others in a process of their own
// (parse.apart.ts), so that no mail holds up the server.

import { type ReadingLimits, readApart } from './parse.apart.ts'
import type { Given } from './parse.form.ts'
import type { ReceivedMail } from './parse.read.ts'

export { Busy, Unreadable } from './failures.ts'
export type { ReadingLimits } from './parse.apart.ts'
export type { ReceivedAttachment, ReceivedMail } from './parse.read.ts'

/** Up to here the worst that is known takes some 50 ms. */
const mostBytesHere = 16 * 1024
const mostLinesHere = 500

/** Throws Unreadable for what is no mail, or takes too much work to be one; Busy. */
export const parseMail = (bytes: Uint8Array, limits: ReadingLimits = {}): Promise<ReceivedMail> =>
  reading({ raw: bytes, fields: {} }, limits)

/** The same for a mail that came in a form. Files that were fields are not in it. */
export async function reading(given: Given, limits: ReadingLimits): Promise<ReceivedMail> {
  if (!isSmall(given)) return readApart(given, limits)
  const { read } = await import('./parse.form.ts')
  return read(given)
}

function isSmall({ raw, fields }: Given): boolean {
  const size = Object.values(fields).reduce((sum, each) => sum + each.length, raw?.length ?? 0)
  return size <= mostBytesHere && (raw === null || linesIn(raw) <= mostLinesHere)
}

function linesIn(bytes: Uint8Array): number {
  let lines = 1
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}
