// Parses addresses and message ids in the headers of received e-mails. A sender may write anything
// into a header, so the results are limited in size and cleaned for storage and comparison.
import { type Address, addressParser } from 'postal-mime'
import { withoutControls } from './failures.ts'

/** The maximum number of addresses that are read from one header. */
const maxAddresses = 1000
const maxIds = 100
const maxIdLength = 500

export interface Mailbox {
  address: string
  name: string
}

/**
 * Returns all mailboxes in order. Replaces a group by its members, and omits entries without a
 * valid address.
 */
export function toMailboxes(addresses: readonly Address[] | undefined): Mailbox[] {
  const found: Mailbox[] = []
  for (const each of addresses ?? []) {
    for (const { address, name } of each.group ?? [each]) {
      const plain = withoutControls(address ?? '').replaceAll(/[\s<>]/g, '')
      if (!/^[^@]+@[^@]+$/.test(plain) || plain.length > 320) continue
      found.push({ address: plain, name: withoutControls(name ?? '').slice(0, 255) })
      if (found.length === maxAddresses) return found
    }
  }
  return found
}

export const parseMailboxes = (header: string | null | undefined): Mailbox[] =>
  header ? toMailboxes(addressParser(header.slice(0, 100_000))) : []

/** Returns the addresses in lower case, without duplicates. */
export const lowerCaseUnique = (addresses: readonly string[]): string[] => [
  ...new Set(addresses.map((address) => address.toLowerCase())),
]

/**
 * Returns the distinct message ids of a header, without brackets and spaces. Keeps only the last
 * 100 ids, which belong to the nearest ancestors in the thread.
 */
export function parseMessageIds(header: string | null | undefined): string[] {
  const text = withoutControls(header ?? '')
  const bracketed = [...text.matchAll(/<([^<>]*)>/g)].map(([, inner = '']) => inner)
  const ids = (bracketed.length > 0 ? bracketed : text.split(/[\s,]+/))
    .map(normalizeMessageId)
    .filter((id) => id !== '')
  return [...new Set(ids)].slice(-maxIds)
}

/**
 * Returns the message id without brackets and spaces. Returns '' for an id that is too long to be
 * stored and compared.
 */
export function normalizeMessageId(text: string): string {
  const id = text.replaceAll(/[\s<>]/g, '')
  return id.length <= maxIdLength ? id : ''
}
