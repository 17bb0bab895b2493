// Builds error texts about refused recipients. Listeners, webhooks, the change feed and all readers
// of the e-mail get these texts, so the texts must not contain BCC recipients.
import { fold } from '../../kernel/values/format.ts'
import type { OutboundMessage, SentMail } from '../../mail/outbound.ts'

/** Returns the BCC recipients who are not also in To or CC. */
export function hiddenRecipients({ to, cc, bcc }: Pick<OutboundMessage, 'to' | 'cc' | 'bcc'>): string[] {
  const open = new Set([...to, ...cc].map(fold))
  return bcc.filter((address) => !open.has(fold(address)))
}

/** Replaces hidden addresses in the error message of a mail server, which often repeats them. */
export const withoutHidden = (text: string, hidden: readonly string[]): string =>
  hidden.reduce((shown, address) => shown.replaceAll(whole(address), 'a hidden recipient'), text)

const whole = (address: string): RegExp =>
  new RegExp(`(?<![\\w.+-])${address.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\w-])`, 'gi')

/**
 * Returns a sentence with the refused recipients and the reasons, or null when no recipient was
 * refused. Hidden recipients are only counted, and their addresses are removed from the reasons.
 */
export function describeRefusals({ refused }: SentMail, hidden: readonly string[]): string | null {
  const keys = new Set(hidden.map(fold))
  const open = refused.filter(({ address }) => !keys.has(fold(address)))
  const count = refused.length - open.length
  const named = open.map(({ address, reason }) => `${address}: ${withoutHidden(reason, hidden)}`)
  const counted = count === 0 ? [] : [count === 1 ? 'a hidden recipient' : `${count} hidden recipients`]
  const all = [...named, ...counted]
  return all.length === 0 ? null : `Not accepted for ${all.join('; ')}`
}
