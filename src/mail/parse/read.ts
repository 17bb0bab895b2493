// Parses arbitrary bytes as an e-mail. The size of the result and the parsing work are limited. The
// caller stores the raw bytes, which still contain everything that is cut off. Parsing may take
// seconds, so parse.ts decides in which process this code runs.
import PostalMime, { type Attachment, type Email } from 'postal-mime'
import { lowerCaseUnique, type Mailbox, parseMailboxes, parseMessageIds, toMailboxes } from '../addresses.ts'
import { cutText } from '../cut-text.ts'
import { UnreadableMail, withoutControls } from '../failures.ts'
import { generatedMessageId, messageIdWithFiles } from '../message-ids.ts'
import { limitMailBytes } from '../size-limits.ts'
import { isAutomaticMail } from './automatic.ts'
import { type Bounce, bounceOf, reportedMessageIds } from './bounce.ts'
import { hasFlowedLines, joinFlowedLines, withReadableType } from './content-type.ts'
import { answersOf, type InvitationAnswer } from './invitation-answer.ts'
import { decodeHeaderText } from './text-decoder.ts'

export interface ReceivedMail {
  /**
   * The message id without angle brackets. Generated from the content when the e-mail has no id.
   */
  messageId: string
  inReplyTo: string[]
  references: string[]
  from: Mailbox | null
  /** The addresses of all authors: `from` and those who wrote the e-mail with them. */
  authors: string[]
  /** The addresses of the Sender header. */
  sender: string[]
  replyTo: string[]
  to: string[]
  cc: string[]
  bcc: string[]
  /**
   * All recipients, lower-cased: to, cc, bcc, Delivered-To and similar headers, and the envelope.
   */
  recipients: string[]
  subject: string | null
  date: Date | null
  text: string | null
  html: string | null
  /** The first 100 attachments. */
  attachments: ReceivedAttachment[]
  droppedAttachments: number
  /** A sentence that says why only a part of the e-mail could be read, or null. */
  error: string | null
  /** Whether a program sent the e-mail: an autoresponder, a mailing list or a bounce. */
  isAutomatic: boolean
  /** The permanent failures of a delivery that the e-mail reports, or null. */
  bounce: Bounce | null
  /** The Message-IDs of the e-mail that this e-mail, a bounce or a receipt, reports on. */
  reportsOn: string[]
  /** The answers to invitations in the e-mail. */
  answers: InvitationAnswer[]
  /**
   * The stored headers (`keptHeaders`), which show the origin of the e-mail. Keys are header names
   * in lower case.
   */
  headers: Record<string, string>
}

export interface ReceivedAttachment {
  name: string
  contentType: string
  /** The content id without angle brackets, as in `cid:<contentId>` of the HTML. */
  contentId: string | null
  bytes: Buffer
}

const maxAttachments = 100
/** The maximum length of the text and of the HTML, in characters each. */
const maxBodyLength = 2 * 1024 * 1024
const maxSubjectLength = 998
const keptHeaders =
  /^(auto-submitted|precedence|return-path|list-id|list-unsubscribe|reply-to|x-original-to|delivered-to|x-mailer|user-agent)$/
const forwarding = /^(delivered-to|x-original-to|envelope-to|x-envelope-to)$/
/**
 * Matches the headers that identify an e-mail. Bytes without any of these headers are not an
 * e-mail.
 */
const identifyingHeaders = /^(from|sender|to|subject|date|message-id|received|return-path)$/

/**
 * Parses the bytes of an e-mail. `envelope` lists recipients that the mail service reported. Throws
 * UnreadableMail when the bytes are not an e-mail or exceed the limits of the parser.
 */
export async function readMail(bytes: Uint8Array, envelope: readonly string[]): Promise<ReceivedMail> {
  const content = limitMailBytes(bytes)
  const isCut = content.byteOffset + content.length < bytes.byteOffset + bytes.length
  const email = await parseBytes(withReadableType(content))
  if (!email.headers.some(({ key }) => identifyingHeaders.test(key)))
    throw new UnreadableMail('This is not an e-mail: it has no headers.')
  const hasBody = email.text !== undefined || email.html !== undefined
  const files = email.attachments.filter((part) => isFile(part) || !hasBody)
  return assembleMail({
    headers: email.headers,
    text: textOf(email),
    html: email.html ?? null,
    attachments: files.slice(0, maxAttachments).map(attachment),
    droppedAttachments: Math.max(0, files.length - maxAttachments),
    error: isCut ? 'Only the beginning of the e-mail is shown: it has too many lines.' : null,
    subject: subjectOf(email),
    from: senderOf(email),
    to: toMailboxes(email.to),
    cc: toMailboxes(email.cc),
    bcc: toMailboxes(email.bcc),
    envelope,
  })
}

/** Returns whether a part is a file, and not another form of the body: AMP is HTML for Gmail. */
const isFile = ({ mimeType, disposition, filename }: Attachment): boolean =>
  mimeType !== 'text/x-amp-html' || disposition === 'attachment' || Boolean(filename)

/** Returns the first author. The parser does not know names with unquoted commas. */
const senderOf = ({ headers, from }: Email): Mailbox | null => {
  const parsed = toMailboxes(from ? [from] : [])
  const raw = headers.find(({ key }) => key === 'from')?.value
  return (raw !== undefined && !raw.includes('=?') ? parseMailboxes(raw)[0] : undefined) ?? parsed[0] ?? null
}

function textOf({ text, headers }: Email): string | null {
  const type = headers.find(({ key }) => key === 'content-type')?.value ?? ''
  return text === undefined ? null : hasFlowedLines(type) ? joinFlowedLines(text, type) : text
}

/** Decodes the Subject header. The parser cuts characters that two encoded words share. */
export const subjectOf = ({ headers }: Email): string | null => {
  const raw = headers.find(({ key }) => key === 'subject')?.value
  return raw === undefined ? null : decodeHeaderText(raw)
}

async function parseBytes(content: Uint8Array): Promise<Email> {
  try {
    return await PostalMime.parse(content, {
      maxNestingDepth: 100,
      maxHeadersSize: 256 * 1024,
      // An attached e-mail stays a file and is not parsed. Its text is not the text of this e-mail,
      // and attached e-mails may be nested deeply.
      forceRfc822Attachments: true,
      maxRfc822NestingDepth: 0,
    })
  } catch (cause) {
    throw new UnreadableMail('The e-mail cannot be read: it is nested too deeply or its headers are too long.', {
      isMail: true,
      cause,
    })
  }
}

/** The parts of an e-mail, parsed from raw bytes or posted as form fields. */
export interface MailParts {
  headers: readonly { key: string; value: string }[]
  text: string | null
  html: string | null
  attachments: ReceivedAttachment[]
  droppedAttachments: number
  error: string | null
  subject: string | null
  from: Mailbox | null
  to: Mailbox[]
  cc: Mailbox[]
  bcc: Mailbox[]
  envelope: readonly string[]
}

export function assembleMail(parts: MailParts): ReceivedMail {
  const all = (name: RegExp): string[] => parts.headers.filter(({ key }) => name.test(key)).map(({ value }) => value)
  const first = (name: string): string | null => parts.headers.find(({ key }) => key === name)?.value ?? null
  const [to, cc, bcc] = [parts.to, parts.cc, parts.bcc].map((each) => each.map(({ address }) => address)) as [
    string[],
    string[],
    string[],
  ]
  const forwarded = all(forwarding).flatMap((value) => parseMailboxes(value).map(({ address }) => address))
  const subject = parts.subject === null ? null : cutText(withoutControls(parts.subject), maxSubjectLength)
  const [text, html] = [body(parts.text), body(parts.html)]
  const from = parts.from ?? parseMailboxes(first('sender'))[0] ?? null
  const date = dateOf(first('date'))
  const inReplyTo = parseMessageIds(first('in-reply-to'))
  const references = parseMessageIds(all(/^references$/).join(' '))
  const isReport = /^\s*multipart\/report\b/i.test(first('content-type') ?? '')
  const bounce = bounceOf(
    {
      inReplyTo,
      references,
      text,
      failedRecipients: first('x-failed-recipients'),
    },
    parts.attachments,
  )
  return storable({
    messageId:
      parseMessageIds(first('message-id'))[0] ??
      messageIdWithFiles(
        generatedMessageId([from?.address ?? null, first('date'), subject, text ?? html]),
        parts.attachments,
      ),
    inReplyTo,
    references,
    from,
    authors: authorsOf(from, first('from')),
    sender: parseMailboxes(first('sender')).map(({ address }) => address),
    replyTo: parseMailboxes(first('reply-to')).map(({ address }) => address),
    to,
    cc,
    bcc,
    recipients: lowerCaseUnique([...to, ...cc, ...bcc, ...forwarded, ...parts.envelope]),
    subject,
    date,
    text,
    html,
    attachments: parts.attachments,
    droppedAttachments: parts.droppedAttachments,
    error: parts.error ?? leftOut(parts),
    isAutomatic: isAutomaticMail(first, subject) || bounce !== null,
    bounce,
    reportsOn:
      isReport || bounce !== null
        ? [...new Set([...reportedMessageIds(parts.attachments), ...(bounce?.messageIds ?? [])])]
        : [],
    answers: answersOf(parts.attachments),
    headers: Object.fromEntries(
      parts.headers
        .filter(({ key }) => keptHeaders.test(key))
        .slice(0, 30)
        .map(({ key, value }) => [key, withoutControls(value).slice(0, 1000)]),
    ),
  })
}

const authorsOf = (from: Mailbox | null, header: string | null): string[] =>
  from === null
    ? []
    : [...new Set([from.address, ...parseMailboxes(header).map(({ address }) => address)])].slice(0, 20)

/**
 * Removes U+0000 from all texts of a value, and replaces halves of surrogate pairs by U+FFFD,
 * because PostgreSQL stores neither. A text that was cut may end with half a pair.
 */
function storable<T>(value: T): T
function storable(value: unknown): unknown {
  if (typeof value === 'string') return wellFormed(value.replaceAll('\0', ''))
  if (Array.isArray(value)) return value.map((each) => storable(each))
  if (typeof value !== 'object' || value === null || value instanceof Date || ArrayBuffer.isView(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, storable(each)]))
}

function leftOut({ droppedAttachments: dropped, text, html }: MailParts): string | null {
  if (dropped > 0) return `Attachments of the e-mail are not shown: ${dropped}.`
  const isLong = Math.max(text?.length ?? 0, html?.length ?? 0) > maxBodyLength
  return isLong ? 'Only the beginning of the e-mail is shown: it is too long.' : null
}

/** Replaces the unpaired surrogates that cutting a string can leave. */
const wellFormed = (text: string): string => Buffer.from(text).toString()

/** Cuts a long text. Returns null for a text of blanks, so that the other body is shown instead. */
const body = (text: string | null): string | null =>
  text === null || /^[\s\u200b\u2060\ufeff]*$/.test(text) ? null : cutText(text.replaceAll('\r\n', '\n'), maxBodyLength)

/**
 * Returns the date of a Date header. Returns null for an invalid date and for a year outside 1970
 * to 9999.
 */
function dateOf(header: string | null): Date | null {
  if (header === null) return null
  const date = new Date(header.slice(0, 100))
  const year = date.getUTCFullYear()
  return year >= 1970 && year <= 9999 ? date : null
}

function attachment({ filename, mimeType, contentId, content }: Attachment, index: number): ReceivedAttachment {
  const bytes = typeof content === 'string' ? Buffer.from(content) : asBuffer(content)
  return toAttachment({ name: filename, contentType: mimeType, contentId: contentId ?? null, bytes }, index)
}

const asBuffer = (content: ArrayBuffer | Uint8Array): Buffer =>
  content instanceof Uint8Array
    ? Buffer.from(content.buffer, content.byteOffset, content.byteLength)
    : Buffer.from(content)

/**
 * Returns an attachment with a safe name and media type. Keeps only the last segment of the name,
 * so that a name is never a path.
 */
export function toAttachment(
  { name, contentType, contentId, bytes }: Omit<ReceivedAttachment, 'name'> & { name: string | null },
  index: number,
): ReceivedAttachment {
  const type = /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}$/.exec(
    contentType.toLowerCase().split(';')[0]?.trim() ?? '',
  )?.[0]
  const plain = withoutControls((name ?? '').slice(0, 2000).split(/[/\\]/).at(-1) ?? '').replace(/^\.+$/, '')
  const ending = { 'message/rfc822': '.eml', 'text/calendar': '.ics' }[type ?? ''] ?? ''
  return {
    name: shortened(plain) || `attachment-${index + 1}${ending}`,
    contentType: type ?? 'application/octet-stream',
    contentId: contentId?.replaceAll(/[\s<>]/g, '').slice(0, 255) || null,
    bytes,
  }
}

/** Returns the name cut to the 255 bytes that file systems allow, with its extension. */
function shortened(name: string): string {
  if (Buffer.byteLength(name) <= 255) return wellFormed(name)
  const ending = /\.[A-Za-z0-9]{1,10}$/.exec(name)?.[0] ?? ''
  return wellFormed(`${name.slice(0, 60)}${ending}`)
}
