// The e-mail addresses of persons, as campaigns compare them.
import { addressKey } from '../../kernel/values/format.ts'

/**
 * Returns the distinct e-mail addresses in stored contact points (JSON text). The addresses are
 * folded, because addresses are stored and compared in that form.
 */
export const addressesIn = (emails: string): string[] => [
  ...new Set((JSON.parse(emails) as { value: string }[]).map(({ value }) => addressKey(value))),
]

/**
 * Returns the address to which campaigns write: the first one, because each person gets a campaign
 * once. Returns null for a person without an address.
 */
export const primaryAddressIn = (emails: string): string | null => addressesIn(emails)[0] ?? null
