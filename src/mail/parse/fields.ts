// A mail as it was given: its bytes, or fields a service has taken it apart into, of which `charsets` says how each was
// written; all else is UTF-8. Runs where parse.ts decides.
import PostalMime from 'postal-mime'
import { type Mailbox, mailboxesIn } from '../addresses.ts'
import { Unreadable } from '../failures.ts'
import { type ReceivedMail, readMail, receivedMail } from './read.ts'

export type Fields = Readonly<Record<string, string | Uint8Array>>

/** `raw` wins over the fields, of which the envelope is read all the same. */
export interface Given {
  raw: Uint8Array | null
  fields: Fields
}

export async function read({ raw, fields }: Given): Promise<ReceivedMail> {
  const envelope = envelopeOf(json(fields.envelope))
  if (raw) return readMail(raw, envelope)

  const charsets = textsOf(json(fields.charsets))
  const field = (name: string): string | null => decoded(fields[name], charsets[name]) || null
  const headers = await headersOf(field('headers'))
  const error = headers === null ? 'The headers of the e-mail cannot be read.' : null
  const from = mailboxesIn(field('from'))[0] ?? null
  if (from === null && (headers ?? []).length === 0 && field('subject') === null)
    throw new Unreadable('The form holds no e-mail: it has neither "email" nor "from", "subject" or "headers".')
  return receivedMail({
    headers: headers ?? [],
    from,
    to: mailboxesIn(field('to')),
    cc: mailboxesIn(field('cc')),
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
  headers.filter(({ key }) => key === name).flatMap(({ value }) => mailboxesIn(value))

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
    .flatMap((each) => mailboxesIn(each).map(({ address }) => address))
}

/** The texts of an object; anything else it holds, or is, counts for nothing. */
export function textsOf(value: unknown): Record<string, string> {
  if (value === null || typeof value !== 'object') return {}
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

export function json(value: string | Uint8Array | undefined): unknown {
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
