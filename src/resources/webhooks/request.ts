// Builds the HTTP request of a webhook for an event: the configured request with its
// placeholders filled in. Equal arguments give equal requests, so every attempt sends an identical
// request.
import type { Schema } from '../../contract/types.ts'
import type { Encryption } from '../../kernel/auth/encryption.ts'
import { OutboundError } from '../../kernel/outbound/client.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import { fillIn, type Placeholders } from '../email-templates/placeholders.ts'
import type { SharedFacts } from '../events/event-facts.ts'
import { readPayload } from './rules.ts'
import { type DecryptedValue, decryptValues } from './write-only-values.ts'

/** The configured request of a webhook, with decrypted headers and query parameters. */
export type RequestTemplate = Pick<
  Schema<'Webhook'>,
  'method' | 'url' | 'payload_type' | 'raw_payload_type' | 'payload'
> & { query_params: DecryptedValue[]; headers: DecryptedValue[] }

export const requestTemplateOf = (
  row: {
    method: string
    url: string
    query_params_sealed: string
    headers_sealed: string
    payload_type: string
    raw_payload_type: string | null
    payload: string | null
  },
  encryption: Encryption,
): RequestTemplate => ({
  method: row.method as RequestTemplate['method'],
  url: row.url,
  query_params: decryptValues(row.query_params_sealed, encryption),
  headers: decryptValues(row.headers_sealed, encryption),
  payload_type: row.payload_type as RequestTemplate['payload_type'],
  raw_payload_type: row.raw_payload_type as RequestTemplate['raw_payload_type'],
  payload: readPayload(row.payload),
})

/** The data of an event that a request can send. */
export interface WebhookMessage {
  /** The message id. All attempts send the same id, so receivers can detect duplicates. */
  id: string
  type: string
  timestamp: string
  /** The event with the keys of the event feed. A test has no event and so no id. */
  data: Omit<SharedFacts, 'id'> & { id: number | null; before: Snapshot | null; after: Snapshot | null }
  placeholders: Placeholders
}

export interface WebhookRequest {
  method: string
  url: string
  headers: Record<string, string | string[]>
  body: string
  /**
   * Secrets to redact in the stored response: the values of headers and query parameters, in every
   * encoding in which a response may repeat them.
   */
  hidden: readonly string[]
}

const maxLength = { url: 16_384, header: 8192, body: 1_000_000 }

const placeholder = /(\{%[^%]*%\})/

/**
 * Returns the request with all placeholders filled in. Throws OutboundError `invalid` when the
 * request is too large or a stored value cannot be decrypted.
 */
export function buildRequest(template: RequestTemplate, message: WebhookMessage): WebhookRequest {
  const { method } = template
  const { body, mediaType } = method === 'get' ? { body: '', mediaType: null } : bodyOf(template, message)
  const own = new Set(template.headers.map(({ key }) => key.toLowerCase()))
  const headers: Record<string, string | string[]> = {}
  if (mediaType !== null && !own.has('content-type')) headers['content-type'] = mediaType
  const hidden: string[] = []
  for (const pair of template.headers) {
    const name = pair.key.toLowerCase()
    const text = filled(decryptedValue(pair), message, 'text', maxLength.header)
    headers[name] = [...[headers[name] ?? []].flat(), headerText(text)]
    // Some responses repeat only the credentials, without the scheme such as Bearer.
    hidden.push(text, headerText(text), ...text.split(/\s+/), ...basicOf(text))
  }
  for (const pair of template.query_params) {
    const text = filled(decryptedValue(pair), message, 'text', maxLength.url)
    hidden.push(text, encodeURIComponent(text), encodeURIComponent(text).replaceAll('%20', '+'))
  }
  return { method: method.toUpperCase(), url: urlOf(template, message), headers, body, hidden }
}

/**
 * Returns the decrypted value of a header or query parameter. Throws OutboundError when it could
 * not be decrypted.
 */
function decryptedValue({ key, value }: DecryptedValue): string {
  if (value !== null) return value
  throw new OutboundError(
    'invalid',
    `The value of ${key} cannot be read: it was stored with another ACCORD_SECRET. Send it again.`,
  )
}

function urlOf(template: RequestTemplate, { placeholders }: WebhookMessage): string {
  // Only placeholder values are percent-encoded, because the configured text already is a valid
  // URL.
  const url = render(template.url, placeholders, (literal) => literal)
  if (isSteered(template.url, placeholders))
    throw new OutboundError(
      'invalid',
      'A placeholder value makes a path segment of dots, which would change the address.',
    )
  const [beforeHash = ''] = url.split('#')
  const query = formText(template.query_params, placeholders)
  const joined = query === '' ? beforeHash : `${beforeHash}${beforeHash.includes('?') ? '&' : '?'}${query}`
  if (joined.length > maxLength.url) throw tooLong('address')
  return joined
}

/** Marks text that came from a placeholder value. Configured text never contains this character. */
const mark = '\u0000'
const dots = /^(\.|%2e){1,2}$/i

/**
 * Returns whether a placeholder value turns a path segment into `.` or `..`. Percent-encoding keeps
 * dots, and URL parsers would resolve such a segment to another path.
 */
function isSteered(url: string, facts: Placeholders): boolean {
  const [path = ''] = url
    .split(placeholder)
    .map((part, index) => (index % 2 === 0 ? part : `${mark}${valueIn(part, facts)}`))
    .join('')
    .split(/[?#]/)
  return path.split(/[/\\]/).some((part) => part.includes(mark) && dots.test(part.replaceAll(mark, '')))
}

function bodyOf(template: RequestTemplate, message: WebhookMessage): { body: string; mediaType: string } {
  const { payload_type, raw_payload_type, payload } = template
  if (payload_type === 'x-www-form-urlencoded' && Array.isArray(payload)) {
    const body = formText(payload, message.placeholders)
    if (body.length > maxLength.body) throw tooLong('body')
    return { body, mediaType: 'application/x-www-form-urlencoded' }
  }
  if (payload_type === 'raw' && typeof payload === 'string')
    return raw_payload_type === 'json'
      ? { body: filled(quotePlaceholders(payload), message, 'json', maxLength.body), mediaType: 'application/json' }
      : { body: filled(payload, message, 'text', maxLength.body), mediaType: 'text/plain; charset=utf-8' }
  return { body: eventText(message), mediaType: 'application/json' }
}

/**
 * Returns the default body, which is the event as JSON (schema EventMessage). A record for which
 * the body would be too large is cut down to its id.
 */
function eventText({ id, type, timestamp, data }: WebhookMessage): string {
  const text = JSON.stringify({ id, type, timestamp, data })
  if (Buffer.byteLength(text) <= maxLength.body) return text
  const [before, after] = [data.before, data.after].map((record) => record && { id: record.id })
  return JSON.stringify({ id, type, timestamp, data: { ...data, before, after } })
}

function filled(template: string, { placeholders }: WebhookMessage, into: 'text' | 'json', max: number): string {
  const result = fillIn(template, placeholders, into, max)
  if (result === null) throw tooLong(max === maxLength.header ? 'header' : max === maxLength.url ? 'address' : 'body')
  return result.filled
}

const formText = (pairs: readonly DecryptedValue[], facts: Placeholders): string =>
  pairs
    .map((pair) => `${encodeURIComponent(pair.key)}=${render(decryptedValue(pair), facts, encodeURIComponent)}`)
    .join('&')

/**
 * Fills in a template. Placeholder values are percent-encoded, and so is the text of unknown
 * placeholders. `literal` transforms the text between placeholders.
 */
const render = (template: string, facts: Placeholders, literal: (part: string) => string): string =>
  template
    .split(placeholder)
    .map((part, index) => (index % 2 === 0 ? literal(part) : valueIn(part, facts)))
    .join('')

function valueIn(part: string, facts: Placeholders): string {
  const value = fillIn(part, facts, 'url', maxLength.body)
  if (value === null) throw tooLong('value')
  return value.unknown.length > 0 || value.filled === part ? encodeURIComponent(part) : value.filled
}

const isRaw = (part: string): boolean => /\|\s*raw\s*%\}$/.test(part)

/**
 * Puts quotes around each placeholder outside a JSON string, because placeholder values are
 * inserted as text.
 */
export function quotePlaceholders(template: string): string {
  let isText = false
  return template
    .split(placeholder)
    .map((part, index) => {
      if (index % 2 === 1) return isText ? part : isRaw(part) ? part.replace(/raw\s*%\}$/, 'json%}') : `"${part}"`
      for (const token of part.match(/\\.|"/gs) ?? []) if (token === '"') isText = !isText
      return part
    })
    .join('')
}

/**
 * Returns the decoded `user:password` pair and the password of a Basic authorization header.
 * Returns an empty list for any other text.
 */
function basicOf(text: string): string[] {
  const [, encoded] = /^basic\s+(\S+)$/i.exec(text) ?? []
  if (encoded === undefined) return []
  const pair = Buffer.from(encoded, 'base64').toString()
  return [pair, pair.slice(pair.indexOf(':') + 1)]
}

/**
 * Returns the text on one line, with each UTF-8 byte as one Latin-1 character. HTTP carries
 * non-ASCII header text in this encoding.
 */
const headerText = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are removed
  Buffer.from(text.replace(/[\u0000-\u001f\u007f]+/g, ' ').trim(), 'utf8').toString('latin1')

const tooLong = (what: string): OutboundError =>
  new OutboundError('invalid', `The ${what} is too long once its placeholders are filled in.`)
