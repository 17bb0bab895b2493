// Removes secrets and personal data from errors and from every log line. Own log calls
// do not contain them, but errors of libraries and of other servers may quote them.
import { Problem } from '../contract/output/problems.ts'
import { BuryJob } from '../jobs/queue.ts'
import { OutboundError } from '../kernel/outbound/errors.ts'
import { Veto } from '../kernel/write/events.ts'
import { MailboxFailed, MailDeferred, MailReaderBusy, MailRefused, UnreadableMail } from '../mail/failures.ts'

/** Errors that quote another server. Their messages and those of their causes are not logged. */
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
 * Returns whether the message of an error is meant for users, who see it in a reply or in a job. It
 * may quote records, so it is not logged.
 */
const isUserFacing = (error: Error): boolean => error instanceof Problem || isForeign(error)

interface Described {
  type: string
  /** The message of the error. Empty when it must not be logged. */
  message: string
  stack: string
  code?: string
  cause?: Described
  [key: string]: unknown
}

/** The maximum number of errors in a chain of causes. */
const deepest = 5

/**
 * Returns the logged form of an error: type, message, stack, code and cause. The messages of
 * user-facing errors and of their wrappers are omitted. Other properties are omitted, because
 * libraries attach whole requests to errors.
 */
export function errorOf(error: unknown): Described {
  const chain: Error[] = []
  for (let each = error; each instanceof Error && chain.length < deepest; each = each.cause) chain.push(each)
  if (chain.length === 0) return { type: typeof error, message: '', stack: '' }
  // A wrapper may repeat the message of its cause, so the messages of all wrappers are omitted,
  // too.
  const quoting = chain.findLastIndex(isUserFacing)
  const from = chain.findIndex(isForeign)
  return chain.reduceRight<Described | undefined>(
    (cause, each, at) => describe(each, at <= quoting || (from >= 0 && at >= from), cause),
    undefined,
  ) as Described
}

function describe(error: Error, isForPeople: boolean, cause: Described | undefined): Described {
  const { code } = error as { code?: unknown }
  const type = error.constructor.name || error.name
  const message = isForPeople ? '' : wordsOf(error)
  return {
    type,
    message,
    // A user-facing error is expected, so its stack is omitted.
    stack: isUserFacing(error) ? '' : [isForPeople ? type : `${type}: ${message}`, ...framesOf(error)].join('\n'),
    ...(typeof code === 'string' && { code }),
    ...(cause && { cause }),
  }
}

/**
 * Returns the message of an error, at most 2,000 characters. Replaces the message of a JSON
 * SyntaxError, because it quotes the invalid text.
 */
const wordsOf = ({ message }: Error): string =>
  / is not valid JSON$/.test(message) ? 'The text is not valid JSON' : message.slice(0, 2000)

const framesOf = ({ stack = '' }: Error): string[] => stack.split('\n').filter((line) => /^\s+at /.test(line))

const secretNames = 'password|passwd|passphrase|secret|token|api[_-]?key|signature|authorization'
/** Matches the name of a JSON key whose value is always a secret. */
const secretKey = new RegExp(`(?:^|\\W)(?:${secretNames}|(?:set-)?cookie)$`, 'i')
const named = `\\b(${secretNames})(\\\\*"?\\s*[=:]\\s*)`

/**
 * The patterns of secrets and their replacements. The order matters: a pattern must not match a
 * part of a text that a later pattern would replace as a whole.
 */
const secrets: readonly [RegExp, string][] = [
  // Matches user:password@ in a URL.
  [/:\/\/[^\s"<>/?#@]*(?:@[^\s"<>/?#@]*)*@(?=[\w[])/g, '://[secret]@'],
  [/\b(Bearer|Basic)\s+(?!\[)[^\s"\\,;]+/gi, '$1 [secret]'],
  [/(?<!\d)[1-9]\d{0,15}\|[\w-]{20,100}/g, '[token]'],
  [/\bwhsec_[\w+/=-]+/g, '[secret]'],
  [/\b(accord_session|XSRF-TOKEN|__(?:Host|Secure)-[\w-]+)=[^\s;"\\]+/gi, '$1=[secret]'],
  [/\b((?:set-)?cookie)(\\*"?\s*:\s*\\*"?)[^"\\]+/gi, '$1$2[secret]'],
  // The next three patterns match a named secret in quotes, in escaped quotes (JSON inside a text)
  // and without quotes.
  [new RegExp(`${named}(")(?!\\[|(?:Bearer|Basic) )(?:[^"\\\\]|\\\\[^])+`, 'gi'), '$1$2$3[secret]'],
  [new RegExp(`${named}(\\\\+")(?!\\[|(?:Bearer|Basic) )(?:[^"\\\\]|\\\\+[^"\\\\])+`, 'gi'), '$1$2$3[secret]'],
  [new RegExp(`${named}(?!\\[|(?:Bearer|Basic) )[^\\s"\\\\&,;}\\]]+`, 'gi'), '$1$2[secret]'],
  // The next three patterns match e-mail addresses. They match only at the start of a run of
  // characters, so that a long run without an @ is scanned only once.
  [/"(?:[^"\\]){1,64}"@[\p{L}\p{N}.[\]:-]+/gu, '[e-mail]'],
  [
    /(?<![\p{L}\p{N}._%+'!#$&*=?^`{|}~-])[\p{L}\p{N}._%+'!#$&*=?^`{|}~-]+@[\p{L}\p{N}[](?:[\p{L}\p{N}.:\]-]*[\p{L}\p{N}\]])?/gu,
    '[e-mail]',
  ],
  [/(?<![\p{L}\p{N}._+-])[\p{L}\p{N}._+-]+%40[\p{L}\p{N}](?:[\p{L}\p{N}.-]*[\p{L}\p{N}])?/gu, '[e-mail]'],
  // The last two patterns match IP addresses, except loopback and wildcard addresses, and except
  // two addresses that the operator needs: the address that the server listens on, and the host of
  // a refused sign-in.
  [
    /(?<![\d.]|^Accord CRM listens on https?:\/\/|^ACCORD_(?:HOST is|STATEFUL_DOMAINS lacks) )(?!127\.|0\.0\.0\.0)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.]*\d)/g,
    '[address]',
  ],
  [
    /(?<![\w:.]|^Accord CRM listens on https?:\/\/\[|^ACCORD_(?:HOST is|STATEFUL_DOMAINS lacks) \[?)(?:(?:[0-9a-f]{1,4}:){5,7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6})(?![\w:])/gi,
    '[address]',
  ],
]

/**
 * Matches lines that may need redaction, because most lines need none and this test is fast. Every
 * text that a pattern in `secrets` matches must contain a match of this pattern.
 */
const marks = new RegExp(
  [
    '@|%40|\\||bearer|basic|whsec_|accord_session|xsrf-token|__(?:host|secure)-',
    // No `\b` before the word, because the `t` of an escaped tab (`\t`) may precede it.
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

/** Removes secrets and personal data from a JSON log line. */
export const redactLine = (line: string): string => (marks.test(line) ? scrubWhole(line) : line)

/** Redacts each value of the JSON line separately, so that the result stays valid JSON. */
export function scrubWhole(line: string): string {
  try {
    return `${JSON.stringify(scrubValue(JSON.parse(line)))}\n`
  } catch {
    return `${JSON.stringify({ level: 50, msg: scrubText(line) })}\n`
  }
}
