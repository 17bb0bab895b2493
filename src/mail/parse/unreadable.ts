// Reads the headers of an e-mail that exceeds the limits of the parser: its addresses, its thread
// and its subject. The original is stored as a file (resources/emails/receive.ts), so nothing is
// lost.
import { createHash } from 'node:crypto'
import PostalMime from 'postal-mime'
import { parseMailboxes, toMailboxes } from '../addresses.ts'
import { headersOf, type MailSource } from './fields.ts'
import { assembleMail, type ReceivedMail, subjectOf } from './read.ts'

/** Matches the headers that are read. */
const wanted =
  /^(from|sender|reply-to|to|cc|subject|date|message-id|in-reply-to|references|auto-submitted|precedence|return-path|delivered-to|x-original-to|list-id):/i
const maxLineLength = 2_000
const maxHeadersLength = 16_000
/** The number of bytes at the start of the e-mail in which headers are searched. */
const maxSearchedBytes = 1024 * 1024
const maxTextLength = 1_000_000

export async function readHeadersOnly({ raw, fields }: MailSource, error: string): Promise<ReceivedMail> {
  const none = { attachments: [], droppedAttachments: 0, html: null, envelope: [], error }
  if (!raw) {
    const field = (name: string): string => Buffer.from(fields[name] ?? '').toString()
    const head = (name: string): string => field(name).slice(0, maxHeadersLength)
    return assembleMail({
      ...none,
      headers: (await headersOf(head('headers'))) ?? [],
      from: parseMailboxes(head('from'))[0] ?? null,
      to: parseMailboxes(head('to')),
      cc: parseMailboxes(head('cc')),
      bcc: [],
      subject: head('subject') || null,
      text: field('text').slice(0, maxTextLength) || null,
    })
  }
  const email = await PostalMime.parse(Buffer.from(`${headOf(raw)}\n\n`, 'latin1'))
  const mail = assembleMail({
    ...none,
    headers: email.headers,
    from: toMailboxes(email.from ? [email.from] : [])[0] ?? null,
    to: toMailboxes(email.to),
    cc: toMailboxes(email.cc),
    bcc: [],
    subject: subjectOf(email),
    text: null,
  })
  const hasId = email.headers.some(({ key }) => key === 'message-id')
  return hasId ? mail : { ...mail, messageId: `${createHash('sha256').update(raw).digest('hex')}@inbound` }
}

/** Returns the wanted headers with their continuation lines, up to the first empty line. */
function headOf(raw: Uint8Array): string {
  const lines = Buffer.from(raw.buffer, raw.byteOffset, Math.min(raw.length, maxSearchedBytes))
    .toString('latin1')
    .replace(/^(From [^\n]*\n|[\r\n])+/, '')
    .split(/\r?\n/)
  const kept: string[] = []
  let length = 0
  let isWanted = false
  for (const line of lines) {
    if (line === '') break
    if (!/^[ \t]/.test(line)) isWanted = wanted.test(line)
    if (!isWanted) continue
    length += Math.min(line.length, maxLineLength)
    if (length > maxHeadersLength) break
    kept.push(line.slice(0, maxLineLength))
  }
  return kept.join('\n')
}
