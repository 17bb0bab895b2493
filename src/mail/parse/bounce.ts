// Reads bounces: delivery status notifications (RFC 3464), and reports of Exim, Gmail and qmail.
import { parseMailboxes, parseMessageIds } from '../addresses.ts'
import { cutText } from '../cut-text.ts'
import { withoutControls } from '../failures.ts'

/** A report that an e-mail was not delivered to some of its recipients. */
export interface Bounce {
  /** The candidates for the Message-ID of the e-mail, without angle brackets. */
  messageIds: string[]
  recipients: FailedRecipient[]
}

export interface FailedRecipient {
  address: string
  /** The words of the mail server, such as `550 5.1.1 unknown user`. */
  reason: string
}

interface Report {
  inReplyTo: readonly string[]
  references: readonly string[]
  text: string | null
  /** The header X-Failed-Recipients of Exim and Gmail. */
  failedRecipients: string | null
}

interface Part {
  contentType: string
  bytes: Uint8Array
}

const maxRecipients = 100
const maxReasonLength = 300
const maxPartLength = 64 * 1024

/**
 * Returns the permanent failures that an e-mail reports; null when it reports none. A delay and a
 * temporary failure (status 4.x.x) are none.
 */
export function bounceOf(
  { inReplyTo, references, text, failedRecipients }: Report,
  parts: readonly Part[],
): Bounce | null {
  const textOf = (type: RegExp): string | null => {
    const part = parts.find(({ contentType }) => type.test(contentType))
    return part ? Buffer.from(part.bytes.subarray(0, maxPartLength)).toString() : null
  }
  const status = textOf(/^message\/(global-)?delivery-status$/)
  const recipients = (
    status === null ? [...fromHeader(failedRecipients, text), ...fromQmail(text)] : fromStatus(status)
  ).slice(0, maxRecipients)
  if (recipients.length === 0) return null
  const original = textOf(/^(text\/rfc822-headers|message\/(global|rfc822)(-headers)?)$/) ?? text ?? ''
  const named = parseMessageIds(/^message-id:\s{0,9}(<[^<>\s]{1,500}>)/im.exec(original)?.[1])
  return { messageIds: [...new Set([...named, ...inReplyTo, ...references])], recipients }
}

/**
 * Returns the Message-IDs of the e-mail that a report is about: a bounce, a delay or a read receipt
 * (RFC 8098).
 */
export function reportedMessageIds(parts: readonly Part[]): string[] {
  const reports = parts.filter(({ contentType }) =>
    /^(message\/(disposition-notification|(global|rfc822)(-headers)?)|text\/rfc822-headers)$/.test(contentType),
  )
  return reports.flatMap(({ bytes }) => {
    const text = Buffer.from(bytes.subarray(0, maxPartLength)).toString()
    return parseMessageIds(/^(?:original-)?message-id:\s{0,9}(<[^<>\s]{1,500}>)/im.exec(text)?.[1]).slice(0, 1)
  })
}

/** Reads the groups of fields of a delivery status. The first group is about the whole e-mail. */
function fromStatus(status: string): FailedRecipient[] {
  const groups = status
    .replaceAll('\r\n', '\n')
    .replaceAll(/\n[ \t]+/g, ' ')
    .split(/\n\n+/)
  return groups.flatMap((group) => {
    const field = (name: string): string => {
      const line = group.split('\n').find((each) => each.toLowerCase().startsWith(`${name}:`))
      return line?.slice(name.length + 1).trim() ?? ''
    }
    const typed = (name: string): string => field(name).split(';').slice(1).join(';').trim()
    const isFailed = /^failed\b/i.test(field('action')) && /^5\./.test(field('status'))
    const address = addressIn(typed('original-recipient')) ?? addressIn(typed('final-recipient'))
    if (!isFailed || address === null) return []
    return [{ address, reason: reasonOf(typed('diagnostic-code') || field('status')) }]
  })
}

const fromHeader = (header: string | null, text: string | null): FailedRecipient[] =>
  parseMailboxes(header).map(({ address }) => ({
    address,
    reason: reasonOf(/\b5\d\d[ -][^\n]{3,300}/.exec(text ?? '')?.[0] ?? 'not delivered'),
  }))

function fromQmail(text: string | null): FailedRecipient[] {
  if (!text?.startsWith('Hi. This is the qmail-send program')) return []
  const report = text.split('--- Below this line')[0] ?? ''
  return report.split(/\n\n+/).flatMap((paragraph) => {
    const [, address = '', reason = ''] = /^<([^<>\n]{3,320})>:\n([\s\S]*)$/.exec(paragraph.trim()) ?? []
    return /\b5\.\d|\b5\d\d\b/.test(reason) && address.includes('@') ? [{ address, reason: reasonOf(reason) }] : []
  })
}

const addressIn = (text: string): string | null => parseMailboxes(text)[0]?.address ?? null
const reasonOf = (text: string): string => cutText(withoutControls(text), maxReasonLength)
