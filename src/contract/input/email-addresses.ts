// Reads e-mail addresses, with letters of any script in both parts (RFC 6531, UTS 46).

import { domainToASCII, domainToUnicode } from 'node:url'

// A mailbox of RFC 5321 without quoted local parts and address literals, which no mail provider
// assigns. The domain is in ASCII.
const mailbox =
  /^[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+(?:\.[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+)*@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/u
const beyondAscii = /[^\0-\x7f]/
/** The characters of a domain. `domainToASCII` would cut the rest off, as in a URL. */
const isDomain = /^[\p{L}\p{M}\p{N}.-]+$/u
const maxLocalBytes = 64
const maxLength = 254

const partsOf = (address: string): [local: string, domain: string] => {
  const at = address.lastIndexOf('@')
  return [address.slice(0, Math.max(at, 0)), address.slice(at + 1)]
}

/**
 * Returns the form of an address in which it is stored: as written, but an internationalized domain
 * always with its own letters. `ada@xn--mller-kva.de` and `ada@MÜLLER.de` give `ada@müller.de`.
 */
export function canonicalAddress(address: string): string {
  const [local, domain] = partsOf(address)
  if (local === '' || (!beyondAscii.test(domain) && !/(?:^|\.)xn--/i.test(domain))) return address
  const ascii = isDomain.test(domain) ? domainToASCII(domain) : ''
  // A domain with letters that only look like others, such as the Kelvin sign, stays as written.
  if (ascii === '' || domain.normalize('NFKC') !== domain) return address
  return `${local}@${domainToUnicode(ascii)}`
}

/** Returns whether the text is one e-mail address that a mail server may have assigned. */
export function isEmailAddress(text: string): boolean {
  if (text.length < 3 || text.length > maxLength) return false
  // Letters that compatibility forms replace, such as the Kelvin sign, imitate other letters.
  if (beyondAscii.test(text) && text.normalize('NFKC') !== text) return false
  const [local, domain] = partsOf(text)
  if (!isDomain.test(domain)) return false
  const ascii = beyondAscii.test(domain) ? domainToASCII(domain) : domain.toLowerCase()
  const address = `${local}@${ascii}`
  return Buffer.byteLength(local) <= maxLocalBytes && address.length <= maxLength && mailbox.test(address)
}

/** Returns an address with its domain as punycode, or unchanged if it has none. */
export function asciiAddress(address: string): string {
  const [local, domain] = partsOf(address)
  const ascii = isDomain.test(domain) ? domainToASCII(domain) : ''
  return ascii === '' ? address : `${local}@${ascii}`
}
