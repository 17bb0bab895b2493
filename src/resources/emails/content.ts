// What a mail says and to whom (DOMAIN 14.1): a body that is safe to show, recipients once each, and what it needs before it can
// be sent. It can change while the mail is a draft, or after sending failed.
import type { Schema } from '../../contract/types.ts'
import { Problem, type ValidationErrors } from '../../kernel/errors.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { fold, oneLine } from '../../kernel/values/format.ts'
import { clean, plainText, tooMuch } from '../../kernel/values/html.ts'
import { checkAttachments, contentIds } from './attachments.ts'

/** What a client says of a mail; some of it only when it is new. */
export type Body = Schema<'EmailUpdate'> & Pick<Schema<'EmailForm'>, 'attachments' | 'is_draft'>

/** The content as it is stored. */
export interface Stored {
  id: number
  status: string
  subject: string | null
  reply: string | null
  reply_to: string
  cc: string
  bcc: string
}

const maxRecipients = 100
const lists = ['reply_to', 'cc', 'bcc'] as const

export const isEditable = ({ status }: { status: string }): boolean => status === 'draft' || status === 'failed'

/** Finds what is missing in a mail that is to be sent. */
export function checkComplete(
  found: ValidationErrors,
  mail: { reply?: string | null; reply_to?: readonly string[] },
): void {
  if ((mail.reply ?? null) === null) found.invalid('reply', 'The field is required.')
  if ((mail.reply_to ?? []).length === 0) found.invalid('reply_to', 'The field is required.')
}

/** Each address once, as it was written first. */
function distinct(addresses: readonly string[]): string[] {
  const seen = new Set<string>()
  return addresses.filter((each) => seen.size < seen.add(fold(each)).size)
}

/** The columns of what was sent. Throws 409 when content would change that cannot any more. */
export async function contentColumns(body: Body, writing: Writing<Stored>): Promise<Record<string, unknown>> {
  const { current, found } = writing
  // What was received may be written otherwise, and can be written back as it was read.
  const subject = body.subject === current?.subject ? body.subject : oneLine(body.subject)
  const reply = await cleanBody(body.reply, writing)
  const columns: Record<string, unknown> = {
    subject,
    subject_key: subject === undefined ? undefined : subject === null ? null : fold(subject),
    reply,
    ...recipients(body, writing),
  }
  const changed = current
    ? Object.keys(columns).filter((name) => isNew(current[name as keyof Stored], columns[name]))
    : []
  if ((await checkAttachments(writing, body)) && current) changed.push('attachments')
  const content = changed.filter((name) => name !== 'subject_key')
  if (current && content.length > 0 && !isEditable(current) && !found.any) {
    throw new Problem(
      'state_conflict',
      `The e-mail is ${current.status}: its ${content.join(', ')} can change only in a draft or after it failed.`,
    )
  }
  // What was received says in its own plain text what the body says, so an unchanged body leaves it alone.
  if (reply !== undefined && (!current || current.reply !== reply))
    columns.text = reply === null ? null : plainText(reply)
  return columns
}

const isNew = (stored: unknown, sent: unknown): boolean => sent !== undefined && sent !== stored

async function cleanBody(sent: Body['reply'], { ctx, current, found }: Writing<Stored>): Promise<Body['reply']> {
  if (sent === undefined || sent === null) return sent
  const cleaned = clean(sent, await contentIds(ctx, current?.id))
  if (cleaned === null) found.invalid('reply', tooMuch)
  // Nothing is left of it, such as of a script alone.
  return cleaned?.trim() || null
}

function recipients(body: Body, { current, found }: Writing<Stored>): Record<string, string> {
  const columns: Record<string, string> = {}
  let count = 0
  for (const name of lists) {
    const stored = current?.[name] ?? '[]'
    const sent = JSON.stringify(body[name] ?? JSON.parse(stored))
    // What was received may name somebody twice, and can be written back as it was read.
    const addresses = sent === stored ? (JSON.parse(stored) as string[]) : distinct(body[name] ?? [])
    count += addresses.length
    if (body[name]) columns[name] = JSON.stringify(addresses)
  }
  const [first] = Object.keys(columns)
  if (first !== undefined && count > maxRecipients)
    found.invalid(first, `An e-mail has at most ${maxRecipients} recipients; these are ${count}.`)
  return columns
}
