// Parses addresses and message ids of received headers. The sender may write anything there, so the
// results are bounded and fit to store and compare.
import { type Address, addressParser } from 'postal-mime'
import { withoutControls } from './failures.ts'

/** Per header. No rule depends on more addresses than this. */
const maxAddresses = 1000
const maxIds = 100
const maxIdLength = 500

export interface Mailbox {
  address: string
  name: string
}

/** All mailboxes in order, with groups resolved. Entries without an address are left out. */
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

/** Lower-cases the addresses and removes duplicates. */
export const lowerCaseUnique = (addresses: readonly string[]): string[] => [
  ...new Set(addresses.map((address) => address.toLowerCase())),
]

/**
 * The distinct ids of a header, without brackets and spaces. A long list keeps its last ids,
 * because they belong to the nearest ancestors in the thread.
 */
export function parseMessageIds(header: string | null | undefined): string[] {
  const text = withoutControls(header ?? '')
  const bracketed = [...text.matchAll(/<([^<>]*)>/g)].map(([, inner = '']) => inner)
  const ids = (bracketed.length > 0 ? bracketed : text.split(/[\s,]+/))
    .map(normalizeMessageId)
    .filter((id) => id !== '')
  return [...new Set(ids)].slice(-maxIds)
}

/** Returns '' for an id that is too long to be stored and compared. */
export function normalizeMessageId(text: string): string {
  const id = text.replaceAll(/[\s<>]/g, '')
  return id.length <= maxIdLength ? id : ''
}
