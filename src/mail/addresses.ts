// Addresses and message ids as they stand in received headers: whatever a sender wrote, cut down to what can be stored and
// compared.
import { type Address, addressParser } from 'postal-mime'
import { withoutControls } from './failures.ts'

/** Of one header; more make no difference to any rule. */
const maxAddresses = 1000
const maxIds = 100
const maxIdLength = 500

export interface Mailbox {
  address: string
  name: string
}

/** All mailboxes in order, groups resolved. What has no address is no mailbox. */
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

/** Lower-cased and each once. */
export const lowerCaseUnique = (addresses: readonly string[]): string[] => [
  ...new Set(addresses.map((address) => address.toLowerCase())),
]

/** The ids of a header, without brackets and spaces, each once; of very many the last ones, which are the nearest. */
export function parseMessageIds(header: string | null | undefined): string[] {
  const text = withoutControls(header ?? '')
  const bracketed = [...text.matchAll(/<([^<>]*)>/g)].map(([, inner = '']) => inner)
  const ids = (bracketed.length > 0 ? bracketed : text.split(/[\s,]+/))
    .map(normalizeMessageId)
    .filter((id) => id !== '')
  return [...new Set(ids)].slice(-maxIds)
}

/** Longer ones are no ids: nothing could be found by them. */
export function normalizeMessageId(text: string): string {
  const id = text.replaceAll(/[\s<>]/g, '')
  return id.length <= maxIdLength ? id : ''
}
