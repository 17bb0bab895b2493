// Reads what SendGrid's Inbound Parse posts: the whole mail in the field `email` (the form to be preferred), or fields it has
// taken the mail apart into. In those `charsets` says how each was written; all else is UTF-8.
import PostalMime from 'postal-mime'
import { type Mailbox, mailboxesIn } from './addresses.ts'
import { mostBytes } from './bounds.ts'
import { Unreadable } from './failures.ts'
import { parseMail, type ReceivedAttachment, type ReceivedMail, received, receivedMail } from './parse.ts'

export interface PostedFile {
  field: string
  name: string
  contentType: string
  bytes: Buffer
}

/**
 * Fields as the form had them: as text, or as bytes where the reader of the form kept them, which alone saves what is not
 * written in UTF-8. `raw` is the mail as it came, when it came. Throws Unreadable.
 */
export async function fromSendgrid(
  fields: Readonly<Record<string, string | Uint8Array>>,
  files: readonly PostedFile[],
): Promise<{ mail: ReceivedMail; raw: Buffer | null }> {
  const charsets = textsOf(json(utf8(fields.charsets)))
  const field = (name: string): string | null => decoded(fields[name], charsets[name]) || null
  const envelope = envelopeOf(json(utf8(fields.envelope)))
  const raw = rawOf(fields.email, files)
  if (raw) return { mail: await parseMail(raw, envelope), raw }

  const headers = await headersOf(field('headers'))
  const from = mailboxesIn(field('from'))[0] ?? null
  if (from === null && headers.length === 0 && field('subject') === null)
    throw new Unreadable('The form holds no e-mail: it has neither "email" nor "from", "subject" or "headers".')
  const attachments = attachmentsOf(json(utf8(fields['attachment-info'])), json(utf8(fields['content-ids'])), files)
  const mail = receivedMail({
    headers,
    from,
    to: mailboxesIn(field('to')),
    cc: mailboxesIn(field('cc')),
    bcc: headerMailboxes(headers, 'bcc'),
    subject: field('subject'),
    text: field('text'),
    html: field('html'),
    attachments: attachments.slice(0, 100),
    droppedAttachments: Math.max(0, attachments.length - 100),
    envelope,
  })
  return { mail, raw: null }
}

type Header = { key: string; value: string }

const headerMailboxes = (headers: readonly Header[], name: string): Mailbox[] =>
  headers.filter(({ key }) => key === name).flatMap(({ value }) => mailboxesIn(value))

/** A file part may carry it too; texts of a form are the rule. */
function rawOf(field: string | Uint8Array | undefined, files: readonly PostedFile[]): Buffer | null {
  const bytes = files.find((file) => file.field === 'email')?.bytes ?? (field === undefined ? null : Buffer.from(field))
  if (bytes === null || bytes.length === 0) return null
  if (bytes.length > mostBytes) throw new Unreadable('The e-mail is larger than 30 MiB.')
  return bytes
}

/** Headers without a body are read like a mail with an empty one. */
async function headersOf(text: string | null): Promise<Header[]> {
  if (text === null) return []
  const head = text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/\n{2,}/g, '\n')
    .trimEnd()
  try {
    return (await PostalMime.parse(Buffer.from(`${head}\n\n`), { maxHeadersSize: 256 * 1024 })).headers
  } catch (cause) {
    throw new Unreadable('The headers of the e-mail cannot be read.', { cause })
  }
}

function attachmentsOf(info: unknown, contentIds: unknown, files: readonly PostedFile[]): ReceivedAttachment[] {
  const known = (info !== null && typeof info === 'object' ? info : {}) as Record<string, unknown>
  // `content-ids` maps an id to the field of its file.
  const idOf = new Map(Object.entries(textsOf(contentIds)).map(([id, field]) => [field, id]))
  return files
    .filter(({ field }) => /^attachment\d+$/.test(field))
    .sort((one, other) => Number(one.field.slice(10)) - Number(other.field.slice(10)))
    .map((file, index) => {
      const said = textsOf(known[file.field])
      return received(
        {
          name: said.filename || said.name || file.name,
          contentType: said.type || file.contentType,
          contentId: said['content-id'] || idOf.get(file.field) || null,
          bytes: file.bytes,
        },
        index,
      )
    })
}

function envelopeOf(value: unknown): string[] {
  const to = value !== null && typeof value === 'object' && 'to' in value ? value.to : []
  return (Array.isArray(to) ? to : [to])
    .filter((each): each is string => typeof each === 'string')
    .slice(0, 1000)
    .flatMap((each) => mailboxesIn(each).map(({ address }) => address))
}

/** The texts of an object; anything else it holds, or is, counts for nothing. */
function textsOf(value: unknown): Record<string, string> {
  if (value === null || typeof value !== 'object') return {}
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const utf8 = (value: string | Uint8Array | undefined): string => decoded(value, undefined)

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
