// The e-mail addresses of persons, as campaigns compare them.
import { fold } from '../../kernel/values/format.ts'

/**
 * Returns the distinct e-mail addresses in stored contact points (JSON text). The addresses are
 * folded, because addresses are stored and compared in that form.
 */
export const addressesIn = (emails: string): string[] => [
  ...new Set((JSON.parse(emails) as { value: string }[]).map(({ value }) => fold(value))),
]
