// The parsers for config/settings.ts. A parser converts the text of a setting into its value. For
// an invalid text, it throws ConfigError with the name of the variable and the valid values.
import ipaddr from 'ipaddr.js'
import { IANAZone } from 'luxon'
import { urlFault } from '../../db/postgres/url.ts'
import { type CountryCode, isSupportedCountry } from '../../db/schema/phone-numbers.ts'

export class ConfigError extends Error {
  constructor(variable: string, problem: string) {
    super(`${variable} ${problem}`)
    this.name = 'ConfigError'
  }
}

/** Parses the text of a setting. For an unset variable, `text` is the default of the setting. */
export type Parser<T> = (text: string, name: string, warn: (sentence: string) => void) => T

export const parseText: Parser<string> = (text) => text

export const parseOptionalText: Parser<string | null> = (text) => text || null

export const parseList: Parser<string[]> = (text) =>
  text
    .split(',')
    .map((each) => each.trim())
    .filter(Boolean)

export const integerBetween =
  (min: number, max: number): Parser<number> =>
  (text, name) => {
    const value = Number(text)
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new ConfigError(name, `must be a whole number from ${min} to ${max}, not "${text}".`)
    return value
  }

export const parseOneOf =
  <const T extends string>(...allowed: readonly T[]): Parser<T> =>
  (text, name) => {
    const found = allowed.find((each) => each === text)
    if (!found) throw new ConfigError(name, `must be one of ${allowed.join(', ')}, not "${text}".`)
    return found
  }

const parseOnOff = parseOneOf('on', 'off')
export const onOff: Parser<boolean> = (...setting) => parseOnOff(...setting) === 'on'

const parseTrueFalse = parseOneOf('true', 'false')
export const trueFalse: Parser<boolean> = (...setting) => parseTrueFalse(...setting) === 'true'

export const parseDatabaseUrl: Parser<string> = (text, name) => {
  if (!/^(sqlite:|postgres(ql)?:\/\/)/.test(text))
    throw new ConfigError(name, `must start with sqlite: or postgres://${schemeOf(text)}.`)
  const fault = text.startsWith('sqlite:') ? null : urlFault(text)
  if (fault !== null) throw new ConfigError(name, `${fault}.`)
  return text
}

/** Returns the scheme for a message. The rest of the text may have a password. */
const schemeOf = (text: string): string => {
  const [, scheme] = /^([a-z][a-z0-9+.-]{0,20}):/i.exec(text) ?? []
  return scheme === undefined ? '' : `, not "${scheme}:"`
}

export const parseReplicaUrl: Parser<string | null> = (text, name) => {
  if (text === '') return null
  if (!/^postgres(ql)?:\/\//.test(text)) throw new ConfigError(name, `must start with postgres://${schemeOf(text)}.`)
  const fault = urlFault(text)
  if (fault !== null) throw new ConfigError(name, `${fault}.`)
  return text
}

/**
 * Returns the bucket and the prefix of an S3 URL; null when unset. The prefix has no slash at its
 * ends. The message does not repeat the URL, because it may have a password.
 */
export const parseFilesUrl: Parser<{ bucket: string; prefix: string } | null> = (text, name) => {
  if (text === '') return null
  const [, bucket, path = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([\w!.*'()/-]*))?$/.exec(text) ?? []
  const parts = path.split('/').filter((part) => part !== '')
  if (bucket === undefined || parts.some((part) => part === '.' || part === '..'))
    throw new ConfigError(name, 'must be s3://<bucket> or s3://<bucket>/<prefix>, without credentials.')
  return { bucket, prefix: parts.join('/') }
}

/** Returns an http or https URL without a path; null when unset. */
export const parseEndpoint: Parser<string | null> = (text, name) => {
  if (text === '') return null
  const url = URL.canParse(text) ? new URL(text) : null
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== '' ||
    url.password !== '' ||
    url.search !== ''
  )
    throw new ConfigError(name, 'must be an http or https URL without credentials, such as https://s3.example.com.')
  return url.href.replace(/\/+$/, '')
}

/** Returns the URL without a trailing slash; null when unset. */
export const parseAppUrl: Parser<string | null> = (text, name) => {
  const url = text.replace(/\/+$/, '')
  if (url === '') return null
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new ConfigError(name, `must be an http or https URL, not "${url}".`)
  return url
}

/** Returns hosts in lower case. An IPv6 address gets brackets, as in a Host header. */
export const parseStatefulDomains: Parser<string[]> = (text, name, warn) =>
  parseList(text, name, warn).map((entry) => {
    const host = entry.replace(/^[a-z]+:\/\//i, '').replace(/\/.*$/, '')
    if (host !== entry) warn(`${name}: "${entry}" is read as "${host}"; list hosts without scheme and path.`)
    return host === '::1' ? '[::1]' : host.toLowerCase()
  })

export const parseIpRanges: Parser<string[]> = (text, name, warn) => {
  const ranges = parseList(text, name, warn)
  for (const range of ranges) {
    if (!ipaddr.isValid(range) && !ipaddr.isValidCIDR(range))
      throw new ConfigError(name, `must list addresses or CIDR ranges; "${range}" is neither.`)
  }
  return ranges
}

export const parseCidrRanges: Parser<string[]> = (text, name, warn) => {
  const ranges = parseList(text, name, warn)
  for (const range of ranges) {
    if (!ipaddr.isValidCIDR(range))
      throw new ConfigError(name, `must list CIDR ranges such as 10.0.0.0/8; "${range}" is not a CIDR range.`)
  }
  return ranges
}

/**
 * Returns the origins. They must be written as browsers send them, because the CORS check compares
 * them as text.
 */
export const parseOrigins: Parser<string[]> = (text, name, warn) => {
  const origins = parseList(text, name, warn)
  for (const origin of origins) {
    if (!/^https?:\/\/[^*]+$/.test(origin) || !URL.canParse(origin) || new URL(origin).origin !== origin)
      throw new ConfigError(
        name,
        `must list origins such as https://app.example.com, without a path; "${origin}" is not an origin.`,
      )
  }
  return [...new Set(origins)]
}

/** Returns the factor for the rate limits. Returns null when rate limits are off. */
export const parseRateFactor: Parser<number | null> = (text, name) => {
  if (text === 'on') return 1
  if (text === 'off') return null
  const factor = Number(text)
  if (!/^\d+(\.\d+)?$/.test(text) || factor < 0.01 || factor > 1000)
    throw new ConfigError(name, `must be on, off, or a factor from 0.01 to 1000, not "${text}".`)
  return factor
}

export const parseTimezone: Parser<string> = (text, name) => {
  if (!IANAZone.isValidZone(text))
    throw new ConfigError(name, `must be an IANA time zone such as Europe/Berlin, not "${text}".`)
  return text
}

export const parseLocale: Parser<string> = (text, name) => {
  try {
    return new Intl.NumberFormat(text) && text
  } catch {
    throw new ConfigError(name, `must be a BCP 47 locale such as en-US, not "${text}".`)
  }
}

export const parseCountry: Parser<CountryCode | null> = (text, name) => {
  const code = text.trim().toUpperCase()
  if (code === '') return null
  if (!isSupportedCountry(code)) throw new ConfigError(name, `must be an ISO 3166 code such as DE, not "${text}".`)
  return code
}

export const parseCurrency: Parser<string> = (text, name) => {
  try {
    return new Intl.NumberFormat('en', { style: 'currency', currency: text }) && text
  } catch {
    throw new ConfigError(name, `must be an ISO 4217 code such as EUR, not "${text}".`)
  }
}

/**
 * Returns a parser for e-mail addresses. An address that is written into an e-mail header needs a
 * stricter `pattern`.
 */
const emailAddress =
  (pattern: RegExp): Parser<string> =>
  (text, name) => {
    if (!pattern.test(text)) throw new ConfigError(name, `must be an e-mail address, not "${text}".`)
    return text
  }

export const parseEmailAddress = emailAddress(/^[^\s@]+@[^\s@]+$/)

export const parseSenderAddress = emailAddress(/^[^\s@<>"]+@[^\s@<>"]+$/)

export const parseSenderName: Parser<string> = (text, name) => {
  if (/[\r\n]/.test(text)) throw new ConfigError(name, 'must be one line.')
  return text
}

export const parseMailDomain: Parser<string> = (text, name) => {
  const domain = text.toLowerCase()
  if (!/^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(domain))
    throw new ConfigError(name, `must be a domain such as example.com, not "${domain}".`)
  return domain
}

/**
 * Returns the URL of the mail server; null when unset. The message omits the value, which may have
 * a password.
 */
export const parseSmtpUrl: Parser<string | null> = (text, name) => {
  if (text === '') return null
  const isUrl = URL.canParse(text) && /^(smtps?|file):$/.test(new URL(text).protocol)
  if (!isUrl && !/^file:./.test(text))
    throw new ConfigError(name, 'must be smtp://[user:password@]host:port, smtps://… or file:<folder>.')
  return text
}

export const parseSecret: Parser<string | null> = (text, name) => {
  if (text !== '' && text.length < 32) throw new ConfigError(name, 'must have at least 32 characters.')
  return text || null
}

export const parseAdminPassword: Parser<string | null> = (text, name) => {
  if (text !== '' && (text.length < 8 || text.length > 128))
    throw new ConfigError(name, 'must have 8 to 128 characters.')
  return text || null
}
