// Prepares the content of an e-mail for storage: sanitizes the body, removes
// duplicate recipients, and reports missing fields that sending requires. Only the content of
// drafts and failed e-mails can change.
import type { Schema } from '../../contract/types.ts'
import { Problem, type ValidationErrors } from '../../kernel/errors.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { fold, oneLine } from '../../kernel/values/format.ts'
import { clean, tooMuch } from '../../kernel/values/html.ts'
import { textKey } from '../../kernel/values/names.ts'
import { plainText } from '../../kernel/values/plain-text.ts'
import { checkAttachments, contentIdFinder } from './attachments.ts'

/**
 * The fields of the create and update bodies. `attachments` and `is_draft` exist only for new
 * e-mails.
 */
export type EmailBody = Schema<'EmailUpdate'> & Pick<Schema<'EmailForm'>, 'attachments' | 'is_draft'>

/** The stored columns to compare with the content in a request. */
export interface StoredEmail {
  id: number
  status: string
  subject: string | null
  html: string | null
  to: string
  cc: string
  bcc: string
  send_at: string | null
}

const maxRecipients = 100
const recipientLists = ['to', 'cc', 'bcc'] as const

export const isEditable = ({ status }: { status: string }): boolean => status === 'draft' || status === 'failed'

/** Reports each missing field that sending requires. */
export function checkComplete(
  errors: ValidationErrors,
  mail: { html?: string | null } & Partial<Record<(typeof recipientLists)[number], readonly string[]>>,
): void {
  if ((mail.html ?? null) === null) errors.invalid('html', 'The field is required.')
  if (recipientLists.every((name) => (mail[name] ?? []).length === 0)) errors.invalid('to', 'The field is required.')
}

/** Returns the addresses without duplicates, each in its first spelling. */
function distinct(addresses: readonly string[]): string[] {
  const seen = new Set<string>()
  return addresses.filter((each) => seen.size < seen.add(fold(each)).size)
}

/**
 * Returns the content columns to write. Throws 409 when the content would change in an e-mail that
 * is neither a draft nor failed.
 */
export async function contentColumns(body: EmailBody, writing: Writing<StoredEmail>) {
  const { current, errors } = writing
  // A received subject may have line breaks. An unchanged subject keeps them.
  const subject = body.subject === current?.subject ? body.subject : oneLine(body.subject)
  const html = await cleanBody(body.html, writing)
  const columns = {
    subject,
    subject_key: subject === undefined ? undefined : subject === null ? null : textKey(subject),
    html,
    ...recipients(body, writing),
  }
  const changed = current
    ? Object.keys(columns).filter((name) =>
        isNew(current[name as keyof StoredEmail], columns[name as keyof typeof columns]),
      )
    : []
  if ((await checkAttachments(writing, body)) && current) changed.push('attachments')
  const content = changed.filter((name) => name !== 'subject_key')
  if (current && content.length > 0 && !isEditable(current) && !errors.any) {
    throw new Problem(
      'state_conflict',
      `The e-mail is ${current.status}: its ${content.join(', ')} can change only in a draft or after it failed.`,
    )
  }
  // A received e-mail has a separate plain text. An unchanged body must not replace that text.
  const isOther = html !== undefined && (!current || current.html !== html)
  return { ...columns, text: isOther ? (html === null ? null : plainText(html)) : undefined }
}

const isNew = (stored: unknown, sent: unknown): boolean => sent !== undefined && sent !== stored

async function cleanBody(
  sent: EmailBody['html'],
  { ctx, current, errors }: Writing<StoredEmail>,
): Promise<EmailBody['html']> {
  if (sent === undefined || sent === null) return sent
  const cleaned = clean(sent, await contentIdFinder(ctx, current?.id))
  if (cleaned === null) errors.invalid('html', tooMuch)
  // Sanitizing may remove everything, for example when the body is only a script.
  return cleaned?.trim() || null
}

function recipients(body: EmailBody, { current, errors }: Writing<StoredEmail>) {
  const columns: Partial<Record<(typeof recipientLists)[number], string>> = {}
  let count = 0
  for (const name of recipientLists) {
    const stored = current?.[name] ?? '[]'
    const sent = JSON.stringify(body[name] ?? JSON.parse(stored))
    // A received e-mail may contain an address twice. An unchanged list keeps such duplicates.
    const addresses = sent === stored ? (JSON.parse(stored) as string[]) : distinct(body[name] ?? [])
    count += addresses.length
    if (body[name]) columns[name] = JSON.stringify(addresses)
  }
  const [first] = Object.keys(columns)
  if (first !== undefined && count > maxRecipients)
    errors.invalid(first, `An e-mail has at most ${maxRecipients} recipients; these are ${count}.`)
  return columns
}
