// Other names under which listeners and webhooks may ask for events (DOMAIN 17.2).
import { type EventAliases, matcher } from '../../kernel/write/events.ts'

export const eventAliases: EventAliases = [
  [/^lead\.product\./, 'leads.product.'],
  [/^contact\.person\./, 'contacts.person.'],
  [/^contact\.organization\./, 'contacts.organization.'],
  [/^settings\.products\./, 'product.'],
  [/^warehouse\.tag\./, 'warehouses.tag.'],
  [/^mails\.tag\./, 'emails.tag.'],
  [/^user\.admin\./, 'settings.user.'],
  [/^email\.trash\./, 'email.update.'],
]

/** Whether an event is meant by a pattern of a listener or a webhook. */
export const eventMatcher = (pattern: string): ((name: string) => boolean) => matcher(pattern, eventAliases)
