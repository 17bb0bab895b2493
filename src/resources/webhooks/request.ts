// The request a webhook makes of an event (DOMAIN 18.5): what was configured, with its placeholders filled in. A pure function, so
// that the same event makes the same request on every try.
import type { Schema } from '../../contract/types.ts'
import type { Encryption } from '../../kernel/auth/encryption.ts'
import { OutboundError } from '../../kernel/outbound/client.ts'
import type { Actor, Snapshot } from '../../kernel/write/events.ts'
import { fillIn, type Placeholders } from '../email-templates/placeholders.ts'
import { readPayload } from './rules.ts'
import { type DecryptedValue, decryptValues } from './write-only-values.ts'

/** What of a webhook makes its request. */
export type RequestTemplate = Pick<
  Schema<'Webhook'>,
  'method' | 'end_point' | 'payload_type' | 'raw_payload_type' | 'payload'
> & { query_params: DecryptedValue[]; headers: DecryptedValue[] }

/** The same of its row. */
export const requestTemplateOf = (
  row: {
    method: string
    end_point: string
    query_params_sealed: string
    headers_sealed: string
    payload_type: string
    raw_payload_type: string | null
    payload: string | null
  },
  seal: Encryption,
): RequestTemplate => ({
  method: row.method as RequestTemplate['method'],
  end_point: row.end_point,
  query_params: decryptValues(row.query_params_sealed, seal),
  headers: decryptValues(row.headers_sealed, seal),
  payload_type: row.payload_type as RequestTemplate['payload_type'],
  raw_payload_type: row.raw_payload_type as RequestTemplate['raw_payload_type'],
  payload: readPayload(row.payload),
})

/** What is told. */
export interface WebhookMessage {
  /** The same for every try: receivers know by it what they have already. */
  id: string
  /** Name of the event. */
  type: string
  timestamp: string
  entityType: string
  entityId: number | null
  entity: Snapshot | null
  /** Where the record is shown; null when nowhere. */
  entityUrl: string | null
  changed: readonly string[]
  actor: Actor
  facts: Placeholders
}

export interface WebhookRequest {
  method: string
  url: string
  headers: Record<string, string | string[]>
  body: string
  /** Values of headers and parameters, in each form that an answer may repeat. */
  hidden: readonly string[]
}

/** A record that makes the body larger is replaced by its address. */
const largestBody = 20_000
const longest = { url: 16_384, header: 8192, body: 1_000_000 }

const placeholder = /(\{%[^%]*%\})/

/** Throws OutboundError `invalid` when values make it larger than can be sent. */
export function buildRequest(recipe: RequestTemplate, occasion: WebhookMessage): WebhookRequest {
  const { method } = recipe
  const { body, mediaType } = method === 'get' ? { body: '', mediaType: null } : bodyOf(recipe, occasion)
  const own = new Set(recipe.headers.map(({ key }) => key.toLowerCase()))
  const headers: Record<string, string | string[]> = {}
  if (mediaType !== null && !own.has('content-type')) headers['content-type'] = mediaType
  const hidden: string[] = []
  for (const pair of recipe.headers) {
    const name = pair.key.toLowerCase()
    const text = filled(known(pair), occasion, 'text', longest.header)
    headers[name] = [...[headers[name] ?? []].flat(), headerText(text)]
    // Some answers repeat the credentials without the word before them, such as Bearer.
    hidden.push(text, headerText(text), ...text.split(/\s+/), ...basicOf(text))
  }
  for (const pair of recipe.query_params) {
    const text = filled(known(pair), occasion, 'text', longest.url)
    hidden.push(text, encodeURIComponent(text), encodeURIComponent(text).replaceAll('%20', '+'))
  }
  return { method: method.toUpperCase(), url: urlOf(recipe, occasion), headers, body, hidden }
}

/** The value of a header or parameter. */
function known({ key, value }: DecryptedValue): string {
  if (value !== null) return value
  throw new OutboundError(
    'invalid',
    `The value of ${key} cannot be read: it was stored with another ACCORD_SECRET. Send it again.`,
  )
}

function urlOf({ end_point, query_params }: RequestTemplate, { facts }: WebhookMessage): string {
  // Only what a record says is encoded: what was configured is an address already.
  const url = render(end_point, facts, (literal) => literal)
  if (isSteered(end_point, facts))
    throw new OutboundError('invalid', 'A value would lead to another address: filled in, a part of the path is dots.')
  const [beforeHash = ''] = url.split('#')
  const query = formText(query_params, facts)
  const joined = query === '' ? beforeHash : `${beforeHash}${beforeHash.includes('?') ? '&' : '?'}${query}`
  if (joined.length > longest.url) throw tooLong('address')
  return joined
}

/** Marks what a value said; in what was configured it means nothing. */
const mark = '\u0000'
const dots = /^(\.|%2e){1,2}$/i

/** Whether a part of the path is . or .. because of a value: encoding lets dots through, and URLs make a step of them. */
function isSteered(endPoint: string, facts: Placeholders): boolean {
  const [path = ''] = endPoint
    .split(placeholder)
    .map((part, index) => (index % 2 === 0 ? part : `${mark}${valueIn(part, facts)}`))
    .join('')
    .split(/[?#]/)
  return path.split(/[/\\]/).some((part) => part.includes(mark) && dots.test(part.replaceAll(mark, '')))
}

function bodyOf(recipe: RequestTemplate, occasion: WebhookMessage): { body: string; mediaType: string } {
  const { payload_type, raw_payload_type, payload } = recipe
  if (payload_type === 'x-www-form-urlencoded' && Array.isArray(payload)) {
    const body = formText(payload, occasion.facts)
    if (body.length > longest.body) throw tooLong('body')
    return { body, mediaType: 'application/x-www-form-urlencoded' }
  }
  if (payload_type === 'raw' && typeof payload === 'string')
    return raw_payload_type === 'json'
      ? { body: filled(quotePlaceholders(payload), occasion, 'json', longest.body), mediaType: 'application/json' }
      : { body: filled(payload, occasion, 'text', longest.body), mediaType: 'text/plain; charset=utf-8' }
  return { body: eventText(occasion), mediaType: 'application/json' }
}

/** The event as it is told when nothing else was configured. */
function eventText({
  id,
  type,
  timestamp,
  entityType,
  entityId,
  entity,
  entityUrl,
  changed,
  actor,
}: WebhookMessage): string {
  const text = (entity: unknown): string =>
    JSON.stringify({
      id,
      type,
      timestamp,
      data: { entity_type: entityType, entity_id: entityId, entity, changed, actor },
    })
  const whole = text(entity)
  return Buffer.byteLength(whole) > largestBody ? text(entityUrl) : whole
}

function filled(template: string, { facts }: WebhookMessage, into: 'text' | 'json', most: number): string {
  const result = fillIn(template, facts, into, most)
  if (result === null) throw tooLong(most === longest.header ? 'header' : most === longest.url ? 'address' : 'body')
  return result.filled
}

const formText = (pairs: readonly DecryptedValue[], facts: Placeholders): string =>
  pairs.map((pair) => `${encodeURIComponent(pair.key)}=${render(known(pair), facts, encodeURIComponent)}`).join('&')

/** A template whose placeholders are percent-encoded, also those that mean nothing, and whose other parts are `literal`. */
const render = (template: string, facts: Placeholders, literal: (part: string) => string): string =>
  template
    .split(placeholder)
    .map((part, index) => (index % 2 === 0 ? literal(part) : valueIn(part, facts)))
    .join('')

function valueIn(part: string, facts: Placeholders): string {
  const value = fillIn(part, facts, 'url', longest.body)
  if (value === null) throw tooLong('value')
  return value.unknown.length > 0 || value.filled === part ? encodeURIComponent(part) : value.filled
}

/** JSON in which a placeholder that stands for a whole value is put into quotes: what people read of a value is a text. */
export function quotePlaceholders(template: string): string {
  let isText = false
  return template
    .split(placeholder)
    .map((part, index) => {
      if (index % 2 === 1) return isText ? part : `"${part}"`
      for (const token of part.match(/\\.|"/gs) ?? []) if (token === '"') isText = !isText
      return part
    })
    .join('')
}

/** Name and password of basic credentials together, and the password alone; nothing of any other header. */
function basicOf(text: string): string[] {
  const [, encoded] = /^basic\s+(\S+)$/i.exec(text) ?? []
  if (encoded === undefined) return []
  const pair = Buffer.from(encoded, 'base64').toString()
  return [pair, pair.slice(pair.indexOf(':') + 1)]
}

/** One line, its letters as bytes of UTF-8, which is how HTTP carries what is not ASCII. */
const headerText = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  Buffer.from(text.replace(/[\u0000-\u001f\u007f]+/g, ' ').trim(), 'utf8').toString('latin1')

const tooLong = (what: string): OutboundError =>
  new OutboundError('invalid', `The ${what} is too long once its placeholders are filled in.`)
