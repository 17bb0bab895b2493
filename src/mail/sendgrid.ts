// Reads the form that SendGrid's Inbound Parse posts. The form has the raw e-mail in the field
// `email` (preferred), or the parts of the e-mail in several fields and its attachments as files.

import { UnreadableMail } from './failures.ts'
import { messageIdWithFiles } from './message-ids.ts'
import { bounceOf } from './parse/bounce.ts'
import { type MailFields, parseJsonField, textEntries } from './parse/fields.ts'
import { type ReadingLimits, type ReceivedMail, readSource } from './parse/parse.ts'
import { type ReceivedAttachment, toAttachment } from './parse/read.ts'
import { maxMailBytes } from './size-limits.ts'

export interface PostedFile {
  field: string
  name: string
  contentType: string
  bytes: Buffer
}

/** The fields that are read from a form with a raw e-mail. No other field is copied. */
const beside = ['envelope']
const takenApart = ['envelope', 'charsets', 'headers', 'from', 'to', 'cc', 'subject', 'text', 'html']
const maxFiles = 100

/**
 * Reads a posted form. A field is a string, or bytes if the form reader did not decode it. Only
 * bytes preserve a text that is not UTF-8. `raw` is the original e-mail, or null when the form has
 * none. Throws UnreadableMail and MailReaderBusy.
 */
export async function readSendgridForm(
  fields: MailFields,
  files: readonly PostedFile[],
  limits: ReadingLimits = {},
): Promise<{ mail: ReceivedMail; raw: Buffer | null }> {
  const raw = rawOf(fields.email, files)
  const mail = await readSource({ raw, fields: only(raw ? beside : takenApart, fields) }, limits)
  if (raw) return { mail, raw }
  const attachments = attachmentsOf(
    parseJsonField(fields['attachment-info']),
    parseJsonField(fields['content-ids']),
    files,
  )
  return {
    mail: {
      ...mail,
      messageId: messageIdWithFiles(mail.messageId, attachments),
      bounce: mail.bounce ?? bounceOf({ ...mail, failedRecipients: null }, attachments),
      attachments: attachments.slice(0, maxFiles),
      droppedAttachments: Math.max(0, attachments.length - maxFiles),
    },
    raw: null,
  }
}

const only = (names: readonly string[], fields: MailFields): MailFields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name)))

/**
 * Returns the raw e-mail of the form, or null. The raw e-mail is usually a text field. A file part
 * with the name `email` is accepted, too.
 */
function rawOf(field: string | Uint8Array | undefined, files: readonly PostedFile[]): Buffer | null {
  const bytes = files.find((file) => file.field === 'email')?.bytes ?? (field === undefined ? null : Buffer.from(field))
  if (bytes === null || bytes.length === 0) return null
  if (bytes.length > maxMailBytes) throw new UnreadableMail('The e-mail is larger than 30 MiB.')
  return bytes
}

function attachmentsOf(info: unknown, contentIds: unknown, files: readonly PostedFile[]): ReceivedAttachment[] {
  const known = (info !== null && typeof info === 'object' ? info : {}) as Record<string, unknown>
  // `content-ids` maps a content id to the name of the file's field.
  const idOf = new Map(Object.entries(textEntries(contentIds)).map(([id, field]) => [field, id]))
  return files
    .filter(({ field }) => /^attachment\d+$/.test(field))
    .sort((one, other) => Number(one.field.slice(10)) - Number(other.field.slice(10)))
    .map((file, index) => {
      const said = textEntries(known[file.field])
      return toAttachment(
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
