// Composes an e-mail into bytes, for SMTP and for the folder mailer. This file builds all headers,
// so that no value can add a header. Addresses of blind copies are only in the envelope.
import type { Readable } from 'node:stream'
import { domainToASCII } from 'node:url'
import { MailDeferred, MailRefused, withoutControls } from './failures.ts'

export interface OutboundMessage {
  /** The message id without angle brackets. */
  messageId: string
  date: Date
  from: { address: string; name: string }
  /** The envelope address, which gets the bounces. The default is that of `from`. */
  sender?: string
  replyTo?: string
  to: string[]
  cc: string[]
  bcc: string[]
  subject: string
  html: string
  text: string
  /**
   * The id of the parent message, without angle brackets. An id with characters that a header
   * cannot contain is left out.
   */
  inReplyTo?: string
  references: string[]
  /**
   * Further headers, such as List-Unsubscribe. `compose` refuses a header that it builds from the
   * other fields.
   */
  headers?: Record<string, string>
  attachments: OutboundAttachment[]
  /** A calendar file (invite.ts), which mail programs show with buttons to answer it. */
  calendar?: string
}

export interface OutboundAttachment {
  name: string
  contentType: string
  /** The content id if the HTML shows this file as `cid:<contentId>`, otherwise null. */
  contentId: string | null
  content: () => Readable
}

/**
 * The bytes and the envelope of an e-mail. `recipients` maps each address with its domain in ASCII
 * to the address as given.
 */
export interface Composed {
  raw: Buffer
  sender: string
  recipients: Map<string, string>
}

const own =
  /^(from|sender|to|cc|bcc|reply-to|subject|date|message-id|in-reply-to|references|mime-version|content-.*|return-path|received|dkim-signature)$/i
const headerName = /^[A-Za-z0-9-]{1,76}$/
const mediaType = /^(?!multipart\/|message\/)[a-z0-9!#$&^_.+-]{1,127}\/[a-z0-9!#$&^_.+-]{1,127}$/
const id = /^[\x21-\x3b\x3d\x3f-\x7e]{1,990}$/

/**
 * Composes the bytes and the envelope of a message. Throws MailRefused when the message is invalid,
 * and MailDeferred when an attachment cannot be read.
 */
export async function compose(message: OutboundMessage): Promise<Composed> {
  if (!/^[\x21-\x3b\x3d\x3f\x41-\x7e]+@[\x21-\x3b\x3d\x3f\x41-\x7e]+$/.test(message.messageId))
    throw new MailRefused('The message id is not valid.')
  const recipients = new Map<string, string>()
  for (const address of [...message.to, ...message.cc, ...message.bcc]) {
    const known = onTheWire(address)
    if (!recipients.has(known)) recipients.set(known, address)
  }
  if (recipients.size === 0) throw new MailRefused('The e-mail has no recipient.')
  const inReplyTo = message.inReplyTo !== undefined && id.test(message.inReplyTo) ? message.inReplyTo : null
  const references = message.references.filter((each) => id.test(each))
  const { html, pictures } = embedPictures(message)
  // nodemailer is imported with the first e-mail, so that the server starts faster.
  const { default: MailComposer } = await import('nodemailer/lib/mail-composer')
  const composer = new MailComposer({
    messageId: `<${message.messageId}>`,
    date: message.date,
    from: { name: withoutControls(message.from.name), address: onTheWire(message.from.address) },
    ...(message.replyTo !== undefined && { replyTo: { name: '', address: onTheWire(message.replyTo) } }),
    // Addresses are passed as objects, because nodemailer would parse a string as a list of
    // addresses.
    // Mail servers expect a recipient in the headers, also when all are hidden (RFC 5322, A.1.3).
    ...(message.to.length + message.cc.length === 0
      ? { to: 'undisclosed-recipients:;' }
      : { to: message.to.map(mailbox) }),
    cc: message.cc.map(mailbox),
    subject: await subjectOnTheWire(message.subject),
    text: wholeLines(message.text),
    ...(html !== '' && { html: wholeLines(html) }),
    ...(inReplyTo !== null && { inReplyTo: `<${inReplyTo}>` }),
    ...(references.length > 0 && { references: references.map((each) => `<${each}>`).join(' ') }),
    headers: furtherHeaders(message.headers ?? {}),
    attachments: [...(await attachmentsOf(message)), ...pictures],
    // One calendar part, beside the text and the HTML (RFC 6047): Outlook and Gmail show buttons to
    // answer it, and a file of the same event would be a second invitation.
    ...(message.calendar && { alternatives: [calendarPart(message.calendar)] }),
    disableFileAccess: true,
    disableUrlAccess: true,
    newline: 'windows',
  })
  const raw = await composer.compile().build()
  return { raw, sender: onTheWire(message.sender ?? message.from.address), recipients }
}

const calendarPart = (calendar: string) => ({
  // The header must name the same method as the file (RFC 6047). The name is for mail programs that
  // do not read calendars and offer the part as a file.
  contentType: `text/calendar; charset=utf-8; method=${/^METHOD:(\w{1,20})/m.exec(calendar)?.[1] ?? 'REQUEST'}; name=invite.ics`,
  content: wholeLines(calendar),
})

const dataPicture = /(?<=<img src=")data:image\/(png|jpeg|gif|webp);base64,([a-z0-9+/=\s]{1,30000000})(?=")/gi

/** Makes attachments of the data URLs of pictures, because few mail programs show data URLs. */
function embedPictures({ html, messageId }: OutboundMessage) {
  const pictures: { filename: string; contentType: string; cid: string; content: Buffer }[] = []
  const linked = html.replace(dataPicture, (_, type: string, data: string) => {
    const number = pictures.length + 1
    const cid = `picture-${number}.${messageId}`
    const [filename, contentType] = [`picture-${number}.${type.toLowerCase()}`, `image/${type.toLowerCase()}`]
    pictures.push({ filename, contentType, cid, content: Buffer.from(data, 'base64') })
    return `cid:${cid}`
  })
  return { html: linked, pictures }
}

/**
 * Returns the subject, encoded if it looks like an encoded word (RFC 2047): a typed `=?utf-8?Q?a?=`
 * would otherwise be read as `a`. Also encodes one with a word too long for a line, which has no
 * space to fold at.
 */
async function subjectOnTheWire(subject: string): Promise<string> {
  const plain = withoutControls(subject)
  const needsCode = plain.includes('=?') || /\S{65}/.test(plain)
  if (!needsCode || /[^\x20-\x7e]/.test(plain)) return plain
  const { encodeWord } = await import('nodemailer/lib/mime-funcs')
  return encodeWord(plain, 'Q', 52)
}

/**
 * Returns the text with LF as the only line break; nodemailer then writes CR LF. Servers handle a
 * bare CR or LF differently, and a server could end the message there (SMTP smuggling).
 */
const wholeLines = (text: string): string => text.replaceAll(/\r\n?/g, '\n')

const mailbox = (address: string): { name: string; address: string } => ({ name: '', address: onTheWire(address) })

/**
 * Returns the address with its domain in ASCII (punycode). Throws MailRefused unless `address` is
 * exactly one address.
 */
export function onTheWire(address: string): string {
  const at = address.lastIndexOf('@')
  const [local, domain] = [address.slice(0, at), domainToASCII(address.slice(at + 1))]
  if (at < 1 || domain === '' || /[\s\p{Cc}<>()[\],;:\\"@]/u.test(local) || address.length > 320)
    throw new MailRefused(`"${withoutControls(address).slice(0, 100)}" is not an e-mail address.`)
  return `${local}@${domain}`
}

function furtherHeaders(headers: Record<string, string>): { key: string; value: string }[] {
  return Object.entries(headers).map(([key, value]) => {
    if (!headerName.test(key) || own.test(key))
      throw new MailRefused(`"${withoutControls(key).slice(0, 100)}" is not a header that may be set.`)
    return { key, value: withoutControls(value) }
  })
}

/**
 * Reads all attachments before the first byte is sent. A missing file is then found before the
 * server is contacted, and a retry sends the same bytes. The attachments take up to 25 MiB of
 * memory per e-mail, plus a third for base64.
 */
async function attachmentsOf({ attachments, html }: OutboundMessage) {
  const composed = []
  for (const { name, contentType, contentId, content } of attachments) {
    const type = contentType.toLowerCase().split(';')[0]?.trim() ?? ''
    const cid = contentId !== null && /^[\x21\x23-\x3b\x3d\x3f-\x7e]+$/.test(contentId) ? contentId : null
    const isShown = cid !== null && html.includes(`cid:${cid}`)
    composed.push({
      filename: withoutControls(name).replaceAll(/[/\\]/g, '_') || 'attachment',
      // A file of a multipart or message type would have to be a valid e-mail itself. Such a file
      // is sent as plain bytes.
      contentType: mediaType.test(type) ? type : 'application/octet-stream',
      content: await bytesOf(content),
      ...(isShown && { cid, contentDisposition: 'inline' as const }),
      ...(!isShown && { contentDisposition: 'attachment' as const }),
    })
  }
  return composed
}

async function bytesOf(content: () => Readable): Promise<Buffer> {
  try {
    const chunks: Buffer[] = []
    for await (const chunk of content()) chunks.push(Buffer.from(chunk))
    return Buffer.concat(chunks)
  } catch (cause) {
    throw new MailDeferred('An attachment could not be read.', { cause })
  }
}
