// The last line of defense of the log (DESIGN 9). Code that logs leaves out names, addresses and
// secrets; this file removes those in the words of a library or of another server, from errors and
// from each finished line.
import { Problem } from '../contract/output/problems.ts'
import { BuryJob } from '../jobs/queue.ts'
import { OutboundError } from '../kernel/outbound/errors.ts'
import { Veto } from '../kernel/write/events.ts'
import { MailboxFailed, MailDeferred, MailReaderBusy, MailRefused, UnreadableMail } from '../mail/failures.ts'

/**
 * Errors with words of another server; neither these words nor those of their causes are logged.
 */
const externalErrors = [
  BuryJob,
  Veto,
  OutboundError,
  MailRefused,
  MailDeferred,
  MailboxFailed,
  UnreadableMail,
  MailReaderBusy,
]
const isForeign = (error: Error): boolean => externalErrors.some((each) => error instanceof each)
/**
 * Errors with sentences for users, who see them in a reply or with the job; the sentences may quote
 * records.
 */
const isUserFacing = (error: Error): boolean => error instanceof Problem || isForeign(error)

interface Told {
  type: string
  /** Empty when the message must not be logged. */
  message: string
  stack: string
  code?: string
  cause?: Told
  [key: string]: unknown
}

/** The depth to which the causes of an error are followed. */
const deepest = 5

/**
 * The logged form of an error: its kind, stack and code. The message is included unless it, or that
 * of a cause, is for users. Other properties are left out, because libraries attach whole requests.
 */
export function errorOf(error: unknown): Told {
  const chain: Error[] = []
  for (let each = error; each instanceof Error && chain.length < deepest; each = each.cause) chain.push(each)
  if (chain.length === 0) return { type: typeof error, message: '', stack: '' }
  // An error that wraps another one may repeat its message.
  const quoting = chain.findLastIndex(isUserFacing)
  const from = chain.findIndex(isForeign)
  return chain.reduceRight<Told | undefined>(
    (cause, each, at) => told(each, at <= quoting || (from >= 0 && at >= from), cause),
    undefined,
  ) as Told
}

function told(error: Error, isForPeople: boolean, cause: Told | undefined): Told {
  const { code } = error as { code?: unknown }
  const type = error.constructor.name || error.name
  const message = isForPeople ? '' : wordsOf(error)
  return {
    type,
    message,
    // An expected error needs no stack.
    stack: isUserFacing(error) ? '' : [isForPeople ? type : `${type}: ${message}`, ...framesOf(error)].join('\n'),
    ...(typeof code === 'string' && { code }),
    ...(cause && { cause }),
  }
}

/** A SyntaxError quotes the text that is not JSON. */
const wordsOf = ({ message }: Error): string =>
  / is not valid JSON$/.test(message) ? 'The text is not valid JSON' : message.slice(0, 2000)

const framesOf = ({ stack = '' }: Error): string[] => stack.split('\n').filter((line) => /^\s+at /.test(line))

const secretNames = 'password|passwd|passphrase|secret|token|api[_-]?key|signature|authorization'
/** A key whose value is always a secret. */
const secretKey = new RegExp(`(?:^|\\W)(?:${secretNames}|(?:set-)?cookie)$`, 'i')
const named = `\\b(${secretNames})(\\\\*"?\\s*[=:]\\s*)`

/** In this order, so that no pattern matches half of what an earlier one replaces. */
const secrets: readonly [RegExp, string][] = [
  // user:password@ in a URL
  [/:\/\/[^\s"<>/?#@]*(?:@[^\s"<>/?#@]*)*@(?=[\w[])/g, '://[secret]@'],
  [/\b(Bearer|Basic)\s+(?!\[)[^\s"\\,;]+/gi, '$1 [secret]'],
  [/(?<!\d)[1-9]\d{0,15}\|[\w-]{20,100}/g, '[token]'],
  [/\bwhsec_[\w+/=-]+/g, '[secret]'],
  [/\b(accord_session|XSRF-TOKEN|__(?:Host|Secure)-[\w-]+)=[^\s;"\\]+/gi, '$1=[secret]'],
  [/\b((?:set-)?cookie)(\\*"?\s*:\s*\\*"?)[^"\\]+/gi, '$1$2[secret]'],
  // A secret in quotes, in escaped quotes (JSON inside a text), and without quotes.
  [new RegExp(`${named}(")(?!\\[|(?:Bearer|Basic) )(?:[^"\\\\]|\\\\[^])+`, 'gi'), '$1$2$3[secret]'],
  [new RegExp(`${named}(\\\\+")(?!\\[|(?:Bearer|Basic) )(?:[^"\\\\]|\\\\+[^"\\\\])+`, 'gi'), '$1$2$3[secret]'],
  [new RegExp(`${named}(?!\\[|(?:Bearer|Basic) )[^\\s"\\\\&,;}\\]]+`, 'gi'), '$1$2[secret]'],
  // Each pattern starts where a run of its characters starts, so a long run without an @ is scanned
  // once.
  [/"(?:[^"\\]){1,64}"@[\p{L}\p{N}.[\]:-]+/gu, '[e-mail]'],
  [
    /(?<![\p{L}\p{N}._%+'!#$&*=?^`{|}~-])[\p{L}\p{N}._%+'!#$&*=?^`{|}~-]+@[\p{L}\p{N}[](?:[\p{L}\p{N}.:\]-]*[\p{L}\p{N}\]])?/gu,
    '[e-mail]',
  ],
  [/(?<![\p{L}\p{N}._+-])[\p{L}\p{N}._+-]+%40[\p{L}\p{N}](?:[\p{L}\p{N}.-]*[\p{L}\p{N}])?/gu, '[e-mail]'],
  // IP addresses, except those for "this machine" or "all", and except the address this server
  // listens on, which its operator needs.
  [
    /(?<![\d.]|^Accord CRM listens on https?:\/\/)(?!127\.|0\.0\.0\.0)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.]*\d)/g,
    '[address]',
  ],
  [
    /(?<![\w:.]|^Accord CRM listens on https?:\/\/\[)(?:(?:[0-9a-f]{1,4}:){5,7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6})(?![\w:])/gi,
    '[address]',
  ],
]

/**
 * Every text that is removed contains one of these, and most lines contain none: a sign of an
 * e-mail address or token, a word before a secret, or the digits of an IP address.
 */
const marks = new RegExp(
  [
    '@|%40|\\||bearer|basic|whsec_|accord_session|xsrf-token|__(?:host|secure)-',
    // JSON writes a tab before the word as a backslash and a letter.
    `(?:${secretNames}|cookie)[^a-z_]`,
    String.raw`\d\.\d{1,3}\.\d|[0-9a-f]{1,4}:[0-9a-f]{0,4}:|::`,
  ].join('|'),
  'i',
)

function scrubText(text: string): string {
  let clean = text
  for (const [pattern, instead] of secrets) clean = clean.replace(pattern, instead)
  return clean
}

function scrubValue(value: unknown): unknown {
  if (typeof value === 'string') return scrubText(value)
  if (Array.isArray(value)) return value.map(scrubValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [scrubText(key), scrubNamed(key, each)]))
}

const scrubNamed = (key: string, value: unknown): unknown =>
  secretKey.test(key) && value !== null && typeof value !== 'boolean' ? '[secret]' : scrubValue(value)

/** Removes secrets and personal data from a line of JSON. */
export const redactLine = (line: string): string => (marks.test(line) ? scrubWhole(line) : line)

/** Value by value, so that no pattern can remove a quote or a bracket of the JSON. */
export function scrubWhole(line: string): string {
  try {
    return `${JSON.stringify(scrubValue(JSON.parse(line)))}\n`
  } catch {
    return `${JSON.stringify({ level: 50, msg: scrubText(line) })}\n`
  }
}
