// Reads an e-mail from its raw bytes, or from the form fields into which a mail service has split
// the e-mail. The field `charsets` names the charset of each field; the default is UTF-8. parse.ts
// decides in which process this code runs.
import PostalMime from 'postal-mime'
import { type Mailbox, parseMailboxes } from '../addresses.ts'
import { UnreadableMail } from '../failures.ts'
import { assembleMail, type ReceivedMail, readMail } from './read.ts'
import { decodeMailText } from './text-decoder.ts'

export type MailFields = Readonly<Record<string, string | Uint8Array>>

/**
 * A received e-mail as raw bytes or as form fields. When `raw` is not null, only the envelope is
 * read from the fields.
 */
export interface MailSource {
  raw: Uint8Array | null
  fields: MailFields
}

export async function readMailSource({ raw, fields }: MailSource): Promise<ReceivedMail> {
  const envelope = envelopeOf(parseJsonField(fields.envelope))
  if (raw) return readMail(raw, envelope)

  const charsets = textEntries(parseJsonField(fields.charsets))
  const field = (name: string): string | null => decoded(fields[name], charsets[name]) || null
  const headers = await headersOf(field('headers'))
  const error = headers === null ? 'The headers of the e-mail cannot be read.' : null
  const from = parseMailboxes(field('from'))[0] ?? null
  if (from === null && (headers ?? []).length === 0 && field('subject') === null)
    throw new UnreadableMail('The form holds no e-mail: it has neither "email" nor "from", "subject" or "headers".')
  return assembleMail({
    headers: headers ?? [],
    from,
    to: parseMailboxes(field('to')),
    cc: parseMailboxes(field('cc')),
    bcc: headerMailboxes(headers ?? [], 'bcc'),
    subject: field('subject'),
    text: field('text'),
    html: field('html'),
    attachments: [],
    droppedAttachments: 0,
    error,
    envelope,
  })
}

type Header = { key: string; value: string }

const headerMailboxes = (headers: readonly Header[], name: string): Mailbox[] =>
  headers.filter(({ key }) => key === name).flatMap(({ value }) => parseMailboxes(value))

/**
 * Parses a text of headers, as the headers of an e-mail with an empty body. Returns null when the
 * headers cannot be read.
 */
export async function headersOf(text: string | null): Promise<Header[] | null> {
  if (text === null) return []
  const head = text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/\n{2,}/g, '\n')
    .trimEnd()
  try {
    return (await PostalMime.parse(Buffer.from(`${head}\n\n`), { maxHeadersSize: 256 * 1024 })).headers
  } catch {
    return null
  }
}

function envelopeOf(value: unknown): string[] {
  const to = value !== null && typeof value === 'object' && 'to' in value ? value.to : []
  return (Array.isArray(to) ? to : [to])
    .filter((each): each is string => typeof each === 'string')
    .slice(0, 1000)
    .flatMap((each) => parseMailboxes(each).map(({ address }) => address))
}

/**
 * Returns the entries of an object whose value is a string. Returns {} for a value that is not an
 * object.
 */
export function textEntries(value: unknown): Record<string, string> {
  if (value === null || typeof value !== 'object') return {}
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

export function parseJsonField(value: string | Uint8Array | undefined): unknown {
  try {
    return JSON.parse(decoded(value, undefined))
  } catch {
    return null
  }
}

/**
 * Returns the text of a field. A string is already decoded, except text in ISO-2022-JP, whose bytes
 * look like ASCII.
 */
function decoded(value: string | Uint8Array | undefined, charset: string | undefined): string {
  if (value === undefined) return ''
  const isText = typeof value === 'string'
  if (isText && !(/^iso-2022-jp$/i.test(charset ?? '') && /^\p{ASCII}*$/u.test(value))) return value
  const bytes = isText ? Buffer.from(value) : value
  return decodeMailText(bytes, charset ?? 'utf-8')
}
