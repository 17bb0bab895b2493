// A mail as it was given: its bytes, or fields a service has taken it apart into, of which `charsets` says how each was
// written; all else is UTF-8. Runs where parse.ts decides.
import PostalMime from 'postal-mime'
import { type Mailbox, parseMailboxes } from '../addresses.ts'
import { UnreadableMail } from '../failures.ts'
import { assembleMail, type ReceivedMail, readMail } from './read.ts'

export type MailFields = Readonly<Record<string, string | Uint8Array>>

/** `raw` wins over the fields, of which the envelope is read all the same. */
export interface MailSource {
  raw: Uint8Array | null
  fields: MailFields
}

export async function readMailSource({ raw, fields }: MailSource): Promise<ReceivedMail> {
  const envelope = envelopeOf(parseJson(fields.envelope))
  if (raw) return readMail(raw, envelope)

  const charsets = textEntries(parseJson(fields.charsets))
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

/** Headers without a body are read like a mail with an empty one. Null for those that cannot be read. */
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

/** The texts of an object; anything else it holds, or is, counts for nothing. */
export function textEntries(value: unknown): Record<string, string> {
  if (value === null || typeof value !== 'object') return {}
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

export function parseJson(value: string | Uint8Array | undefined): unknown {
  try {
    return JSON.parse(decoded(value, undefined))
  } catch {
    return null
  }
}

/** A text that came as a text is what it is, except where seven bits still hide another script. */
function decoded(value: string | Uint8Array | undefined, charset: string | undefined): string {
  if (value === undefined) return ''
  const isText = typeof value === 'string'
  if (isText && !(/^iso-2022-jp$/i.test(charset ?? '') && /^\p{ASCII}*$/u.test(value))) return value
  const bytes = isText ? Buffer.from(value) : value
  // Senders say ASCII and write UTF-8, which holds it.
  const known = charset === undefined || /^(us-)?ascii$/i.test(charset) ? 'utf-8' : charset
  try {
    return new TextDecoder(known).decode(bytes)
  } catch {
    return new TextDecoder().decode(bytes)
  }
}
