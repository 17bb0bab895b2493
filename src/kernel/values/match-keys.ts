// The keys by which possible duplicates are found: two records with the same key may be the same.
import { phoneKey } from '../../../db/schema/phone-numbers.ts'
import { addressKey } from './format.ts'
import { searchFold } from './names.ts'

export const matchKinds = ['email', 'phone', 'name', 'domain'] as const
export type MatchKind = (typeof matchKinds)[number]
export type MatchKey = readonly [kind: MatchKind, value: string]

const words = (name: string): string => name.replace(/[^\p{L}\p{N}]+/gu, ' ').trim()

/** Returns the words of a name without case, accents and punctuation. */
export const nameWords = (name: string): string => words(searchFold(name))

/** Legal forms, which people often leave out. */
const forms: ReadonlySet<string> = new Set(
  ['gmbh', 'mbh', 'ag', 'kg', 'co', 'ohg', 'ug', 'se', 'ltd', 'limited', 'llc', 'llp', 'inc', 'corp', 'plc'].concat([
    ...['company', 'corporation', 'incorporated', 'sa', 'sas', 'sarl', 'srl', 'spa', 'bv', 'nv', 'oy', 'ab', 'as'],
  ]),
)

/** Returns the key of a company's name, without legal form and blanks. */
export function companyKeys(name: string): MatchKey[] {
  const all = words(searchFold(name).replace(/(?<=\b\p{L})\.(?=\p{L}\b)/gu, '')).split(' ')
  const value = all.filter((word, index) => index === 0 || !forms.has(word)).join('')
  return value === '' ? [] : [['name', value]]
}

/** Domains at which people of many companies have addresses. */
const shared =
  /^((gmail|googlemail|gmx|outlook|hotmail|live|msn|yahoo|icloud|me|aol|mail|proton|protonmail|web|t-online|freenet|zoho|yandex|qq|163|126|orange|free|wanadoo|laposte|libero|comcast|verizon|btinternet)\.[a-z.]{2,6}|example\.(com|org|net))$/

export const domainKeys = (domain: string): MatchKey[] =>
  domain === '' || shared.test(domain) ? [] : [['domain', domain]]

/**
 * Returns the keys of an e-mail address: the mailbox without a tag such as `+news`, and the domain.
 */
export function addressKeys(address: string): MatchKey[] {
  const [local = '', domain = ''] = addressKey(address).split(/@(?=[^@]*$)/)
  if (local === '' || domain === '') return []
  const plain = local.split('+', 1)[0] || local
  const isGmail = domain === 'gmail.com' || domain === 'googlemail.com'
  const mailbox = isGmail ? `${plain.replaceAll('.', '')}@gmail.com` : `${plain}@${domain}`
  return [['email', mailbox], ...domainKeys(domain)]
}

const minDigits = 6
/** Enough digits for a number and its area, and few enough to have no country code. */
const keyDigits = 9

/**
 * Returns the key of a phone number: its last digits, which no country code and trunk prefix
 * changes.
 */
export function phoneKeysOf(text: string): MatchKey[] {
  const digits = phoneKey(text).replace(/^0+/, '')
  return digits.length < minDigits ? [] : [['phone', digits.slice(-keyDigits)]]
}

/** Returns the key of a web address: its host without `www`. */
export function webKeys(text: unknown): MatchKey[] {
  const host = typeof text === 'string' ? /^https?:\/\/(?:www\.)?([^/?#:@]+)/i.exec(text)?.[1] : undefined
  return host === undefined ? [] : domainKeys(host.toLowerCase())
}
