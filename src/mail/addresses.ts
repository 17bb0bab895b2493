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
      const plain = plainAddress(withoutControls(address ?? ''))
      if (plain === null) continue
      found.push({ address: plain, name: withoutControls(name ?? '').slice(0, 255) })
      if (found.length === maxAddresses) return found
    }
  }
  return found
}

/**
 * Returns the address without blanks, or null when it is none. A local part with blanks gets its
 * quotes back, because without the blanks it would be the address of another mailbox.
 */
function plainAddress(text: string): string | null {
  const address = text
    .trim()
    .replace(/^<|>$/g, '')
    .trim()
    .replace(/^mailto:/i, '')
  const at = address.lastIndexOf('@')
  const domain = address.slice(at + 1).replaceAll(/[\s<>]/g, '')
  const local = address.slice(0, Math.max(at, 0)).trim()
  if (local === '' || domain === '' || address.length > 320) return null
  if (/^".*"$/.test(local)) return `${local}@${domain}`
  if (/\s/.test(local)) return `"${local.replaceAll(/["\\]/g, '')}"@${domain}`
  return /[@<>]/.test(local) ? null : `${local}@${domain}`
}

/** Parses a header of addresses. A name such as `Doe, John` may have commas without quotes. */
export const parseMailboxes = (header: string | null | undefined): Mailbox[] =>
  header ? toMailboxes(addressParser(withQuotedNames(header.slice(0, 100_000)))) : []

/**
 * Puts quotes around names with commas or semicolons. A part without an address is the beginning of
 * the next name.
 */
function withQuotedNames(header: string): string {
  if (/["(:\\]/.test(header) || !/[,;]/.test(header)) return header
  let name = ''
  const mailboxes: string[] = []
  for (const part of header.split(/(?<=[,;])/)) {
    const whole = name + part
    if (!part.includes('@')) {
      name = whole
      continue
    }
    const [, names = '', address = ''] = /^([^<]*)(<[^<>]*>.*)$/s.exec(whole) ?? []
    mailboxes.push(name !== '' && address !== '' ? `"${names.trim()}" ${address}` : part)
    name = ''
  }
  return mailboxes.join('')
}

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
