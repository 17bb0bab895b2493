// The last line of defence of the log (DESIGN 9): who writes a line leaves out names, addresses and secrets; what slips through in
// the words of a library or of another server is taken out here, of errors when they are written down and of each finished line.
import { Problem } from '../contract/output/problems.ts'
import { BuryJob } from '../jobs/queue.ts'
import { OutboundError } from '../kernel/outbound/errors.ts'
import { Veto } from '../kernel/write/events.ts'
import { MailboxFailed, MailDeferred, MailReaderBusy, MailRefused, UnreadableMail } from '../mail/failures.ts'

/** What others have said, or what is said of what came from them: none of it is ours, and none of its causes' words are. */
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
/** With sentences for people, who see them in a reply or with the job; they may quote records. */
const isUserFacing = (error: Error): boolean => error instanceof Problem || isForeign(error)

interface Told {
  type: string
  /** Empty when it is not for the log. */
  message: string
  stack: string
  code?: string
  cause?: Told
  [key: string]: unknown
}

/** One error in another, at most. */
const deepest = 5

/**
 * What is logged of an error: its kind, and where it comes from. Its words as well, unless they or those of its causes are sentences
 * for people; then they are where people look. Nothing else of it: libraries hang whole requests onto theirs.
 */
export function errorOf(error: unknown): Told {
  const chain: Error[] = []
  for (let each = error; each instanceof Error && chain.length < deepest; each = each.cause) chain.push(each)
  if (chain.length === 0) return { type: typeof error, message: '', stack: '' }
  // Who passes an error on repeats what it said.
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
    // Of what is expected nobody needs to know the place.
    stack: isUserFacing(error) ? '' : [isForPeople ? type : `${type}: ${message}`, ...framesOf(error)].join('\n'),
    ...(typeof code === 'string' && { code }),
    ...(cause && { cause }),
  }
}

/** What is no JSON is quoted by the language itself. */
const wordsOf = ({ message }: Error): string =>
  / is not valid JSON$/.test(message) ? 'What was read is not valid JSON' : message.slice(0, 2000)

const framesOf = ({ stack = '' }: Error): string[] => stack.split('\n').filter((line) => /^\s+at /.test(line))

const secretNames = 'password|passwd|passphrase|secret|token|api[_-]?key|signature|authorization'
/** A key whose value is a secret, whatever it is. */
const secretKey = new RegExp(`(?:^|\\W)(?:${secretNames}|(?:set-)?cookie)$`, 'i')
const named = `\\b(${secretNames})(\\\\*"?\\s*[=:]\\s*)`

/** In the order in which they are looked for: what follows must not find half of what came before. */
const secrets: readonly [RegExp, string][] = [
  // user:password@ of a URL
  [/:\/\/[^\s"<>/?#@]*(?:@[^\s"<>/?#@]*)*@(?=[\w[])/g, '://[secret]@'],
  [/\b(Bearer|Basic)\s+(?!\[)[^\s"\\,;]+/gi, '$1 [secret]'],
  [/(?<!\d)[1-9]\d{0,15}\|[\w-]{20,100}/g, '[token]'],
  [/\bwhsec_[\w+/=-]+/g, '[secret]'],
  [/\b(accord_session|XSRF-TOKEN|__(?:Host|Secure)-[\w-]+)=[^\s;"\\]+/gi, '$1=[secret]'],
  [/\b((?:set-)?cookie)(\\*"?\s*:\s*\\*"?)[^"\\]+/gi, '$1$2[secret]'],
  // In quotes, as in JSON within a text, in quotes within quotes, and without any.
  [new RegExp(`${named}(")(?!\\[|(?:Bearer|Basic) )(?:[^"\\\\]|\\\\[^])+`, 'gi'), '$1$2$3[secret]'],
  [new RegExp(`${named}(\\\\+")(?!\\[|(?:Bearer|Basic) )(?:[^"\\\\]|\\\\+[^"\\\\])+`, 'gi'), '$1$2$3[secret]'],
  [new RegExp(`${named}(?!\\[|(?:Bearer|Basic) )[^\\s"\\\\&,;}\\]]+`, 'gi'), '$1$2[secret]'],
  // Each begins where a run of such characters begins, so that a long run without an @ is looked through once.
  [/"(?:[^"\\]){1,64}"@[\p{L}\p{N}.[\]:-]+/gu, '[e-mail]'],
  [
    /(?<![\p{L}\p{N}._%+'!#$&*=?^`{|}~-])[\p{L}\p{N}._%+'!#$&*=?^`{|}~-]+@[\p{L}\p{N}[](?:[\p{L}\p{N}.:\]-]*[\p{L}\p{N}\]])?/gu,
    '[e-mail]',
  ],
  [/(?<![\p{L}\p{N}._+-])[\p{L}\p{N}._+-]+%40[\p{L}\p{N}](?:[\p{L}\p{N}.-]*[\p{L}\p{N}])?/gu, '[e-mail]'],
  // Addresses of machines, but those that say "this one" or "all", and where this one listens: whoever starts it must know.
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
 * Something of which stands in whatever is taken out, for nearly every line has none of it: a mark of an address or of a token, a
 * word before a secret, or numbers as in addresses of machines.
 */
const marks = new RegExp(
  [
    '@|%40|\\||bearer|basic|whsec_|accord_session|xsrf-token|__(?:host|secure)-',
    // In JSON a tab before the sign would be a backslash and a letter.
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

/** A line as it is written: without what looks like an address of a person, or like a secret. JSON before and behind. */
export const redactLine = (line: string): string => (marks.test(line) ? scrubWhole(line) : line)

/** Value by value, so that nothing that is taken out can take a quote or a bracket along. */
export function scrubWhole(line: string): string {
  try {
    return `${JSON.stringify(scrubValue(JSON.parse(line)))}\n`
  } catch {
    return `${JSON.stringify({ level: 50, msg: scrubText(line) })}\n`
  }
}
