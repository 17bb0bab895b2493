// What may be said of recipients that were refused: what went wrong with a mail is told to listeners, webhooks and the change feed,
// and to all who see the mail, and none of them is to learn who gets it without the others knowing (DOMAIN 14.1).
import { fold } from '../../kernel/values/format.ts'
import type { OutboundMessage, SentMail } from '../../mail/outbound.ts'

/** The recipients that only the sender knows of. */
export function hiddenOf({ to, cc, bcc }: Pick<OutboundMessage, 'to' | 'cc' | 'bcc'>): string[] {
  const open = new Set([...to, ...cc].map(fold))
  return bcc.filter((address) => !open.has(fold(address)))
}

/** A server's words often repeat the address they are about. */
export const withoutHidden = (text: string, hidden: readonly string[]): string =>
  hidden.reduce((told, address) => told.replaceAll(whole(address), 'a hidden recipient'), text)

const whole = (address: string): RegExp =>
  new RegExp(`(?<![\\w.+-])${address.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\w-])`, 'gi')

/** Whom the server did not take, each with its reason; hidden ones are counted, for a reason may name them in any way. */
export function refusal({ refused }: SentMail, hidden: readonly string[]): string | null {
  const keys = new Set(hidden.map(fold))
  const open = refused.filter(({ address }) => !keys.has(fold(address)))
  const count = refused.length - open.length
  const named = open.map(({ address, reason }) => `${address}: ${withoutHidden(reason, hidden)}`)
  const counted = count === 0 ? [] : [count === 1 ? 'a hidden recipient' : `${count} hidden recipients`]
  const all = [...named, ...counted]
  return all.length === 0 ? null : `Not accepted for ${all.join('; ')}`
}
