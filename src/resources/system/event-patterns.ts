// Aliases of event names, which patterns of listeners and webhooks may use.
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

/**
 * Returns a function that tests whether an event name matches `pattern`, directly or through an
 * alias.
 */
export const eventMatcher = (pattern: string): ((name: string) => boolean) => matcher(pattern, eventAliases)
