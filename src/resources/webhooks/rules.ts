// Rules for the events, request and URL of a webhook that the schema of the contract does not
// cover.
import { isIP } from 'node:net'
import { nearest } from '../../contract/input/did-you-mean.ts'
import { didYouMean } from '../../contract/input/validation-errors.ts'
import { operations } from '../../contract/operations.gen.ts'
import type { OperationFact, Schema } from '../../contract/types.ts'
import { warn } from '../../kernel/context.ts'
import { addressCheck } from '../../kernel/outbound/address-guard.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { bareEvents, isNeverSent } from '../../kernel/write/event-names.ts'
import { findUnknownPlaceholders } from '../email-templates/unknown-placeholders.ts'
import { eventMatcher } from '../system/event-patterns.ts'

type Body = Schema<'WebhookUpdate'>
type Pair = { key: string; value?: string | null }

export interface Current {
  id: number
  payload_type: string
  raw_payload_type: string | null
  payload: string | null
  entity_type: string | null
  url: string
}

/** The maximum number of headers, and also of query parameters. */
export const maxPairs = 30

const placeholders = /\{%[^%]*%\}/g
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const reserved = /^(host|content-length|transfer-encoding|connection|keep-alive|upgrade|expect|webhook-.*)$/i

/** The names of all events that the server stores. Subscription patterns match these names. */
const stored = [
  ...new Set(Object.values(operations).flatMap(({ events }: OperationFact) => events.map((base) => `${base}.after`))),
  'user.account.update-password',
  ...Object.values(operations).flatMap(({ events }: OperationFact) => events.filter((base) => bareEvents.test(base))),
]

/** Adds a validation error for each rule that the webhook would break after the write. */
export function checkRules({ ctx, current, errors }: Writing<Current>, body: Body): void {
  const { url, headers = [], events = [] } = body
  const fault = url === undefined ? null : faultOf(url, ctx.services.config.webhookAllowHttp)
  if (fault !== null) errors.invalid('url', fault)
  const warning = url === undefined ? null : warningOf(url, ctx.services.config.webhookAllowCidrs)
  if (warning !== null)
    if (fault === null) warn(ctx, 'url', warning)
    else errors.invalid('url', warning)
  for (const [index, { key, value }] of headers.entries()) {
    if (!token.test(key)) errors.invalid(`headers.${index}.key`, 'Must be the name of a header.')
    else if (reserved.test(key)) errors.invalid(`headers.${index}.key`, 'This header is set by the server.')
    if (/[\r\n]/.test(value ?? '')) errors.invalid(`headers.${index}.value`, 'Must be one line.')
  }
  for (const [index, pattern] of events.entries()) checkPattern(`events.${index}`, pattern, errors)
  checkPayload({ current, errors }, body)
}

/** Adds an error for each placeholder that no record of the webhook can fill in. */
export async function checkPlaceholders({ ctx, current, errors }: Writing<Current>, body: Body): Promise<void> {
  const entity = (body.entity_type === undefined ? current?.entity_type : body.entity_type) ?? undefined
  const check = async (field: string, text: string | null | undefined, before = '') => {
    for (const sentence of await findUnknownPlaceholders(ctx, text, { entity, before, isWebhook: true }))
      errors.invalid(field, sentence)
  }
  await check('url', body.url, current?.url)
  for (const [index, { value }] of (body.headers ?? []).entries()) await check(`headers.${index}.value`, value)
  for (const [index, { value }] of (body.query_params ?? []).entries())
    await check(`query_params.${index}.value`, value)
  const { payload } = body
  const before = current?.payload ?? ''
  if (typeof payload === 'string') await check('payload', payload, before)
  else for (const [index, { value }] of (payload ?? []).entries()) await check(`payload.${index}.value`, value, before)
}

function checkPattern(field: string, pattern: string, errors: Writing<Current>['errors']): void {
  const fault = patternFault(pattern)
  if (fault !== null) errors.invalid(field, fault)
}

/** The names of events by their last two segments, without the ending, such as `person.create`. */
const shortNames = new Map(
  stored.map((name) => [
    name
      .replace(/\.after$/, '')
      .split('.')
      .slice(-2)
      .join('.'),
    name,
  ]),
)

/** Returns a similar event. `lead.created` is near to `lead.create`, and that to no stored name. */
function suggestion(pattern: string): string {
  const direct = didYouMean(pattern, stored)
  const short = nearest(pattern, shortNames.keys())
  return direct !== '' || short === undefined ? direct : ` Did you mean \`${shortNames.get(short)}\`?`
}

/** Returns why a pattern selects no event that is sent, or null. */
export function patternFault(pattern: string): string | null {
  const names = stored.filter(eventMatcher(pattern))
  if (names.length === 0) return `No event matches this pattern.${suggestion(pattern)}`
  return names.every(isNeverSent) ? 'Events of webhooks, tokens and the configuration are not sent.' : null
}

/**
 * Returns why the URL is not allowed, or null. It is an absolute https URL, or http if the
 * configuration allows it. Placeholders may only follow the host, so that data of a record cannot
 * choose the receiver.
 */
function faultOf(url: string, allowsHttp: boolean): string | null {
  const schemes = allowsHttp ? 'http or https' : 'https'
  const text = url.replace(placeholders, 'x')
  const [origin = ''] = /^[a-z]+:\/\/[^/?#]*/i.exec(url) ?? []
  if (!URL.canParse(text) || origin === '') return `Must be an absolute ${schemes} URL.`
  if (origin.includes('{%')) return 'Placeholders may follow the host only.'
  const { protocol, username, password } = new URL(text)
  if (protocol === 'http:' && !allowsHttp)
    return 'Must be an absolute https URL; the setting ACCORD_WEBHOOK_ALLOW_HTTP=on allows http.'
  if (protocol !== 'https:' && protocol !== 'http:') return `Must be an absolute ${schemes} URL.`
  return username || password ? 'Must not carry a name or password; send a header.' : null
}

/**
 * Returns a warning for a host that the server will not call. A delivery looks up the name of a
 * host, so only addresses and `localhost` are known here.
 */
function warningOf(url: string, allowCidrs: readonly string[]): string | null {
  const text = url.replace(placeholders, 'x')
  if (!URL.canParse(text)) return null
  const host = new URL(text).hostname.replace(/^\[|\]$/g, '')
  // A delivery fails if any address of the host is refused.
  const addresses = /(?:^|\.)localhost\.?$/.test(host) ? ['127.0.0.1', '::1'] : isIP(host) > 0 ? [host] : []
  const fault = addresses.map(addressCheck(allowCidrs)).find((each) => each !== null) ?? null
  return fault === null
    ? null
    : `${host} is at ${fault} address, which this server calls only if the setting ACCORD_WEBHOOK_ALLOW_CIDRS allows it.`
}

function checkPayload({ current, errors }: Pick<Writing<Current>, 'current' | 'errors'>, body: Body): void {
  const type = body.payload_type ?? current?.payload_type ?? 'default'
  const raw = body.raw_payload_type === undefined ? (current?.raw_payload_type ?? null) : body.raw_payload_type
  const payload = body.payload === undefined ? readPayload(current?.payload ?? null) : body.payload
  if (type === 'raw') {
    if (raw === null) errors.invalid('raw_payload_type', 'The field is required with a raw payload.')
    if (typeof payload !== 'string') errors.invalid('payload', 'Must be a string with a raw payload.')
    else if (raw === 'json' && !isJson(payload))
      errors.invalid('payload', 'Must be valid JSON once its placeholders are filled in.')
  } else if (type === 'x-www-form-urlencoded' && !Array.isArray(payload)) {
    errors.invalid('payload', 'Must be a list of names and values with form fields.')
  }
}

/**
 * Returns whether the text is JSON once placeholders are filled in. A 0 replaces each placeholder,
 * because it is valid JSON both as a whole value and inside a string.
 */
function isJson(text: string): boolean {
  try {
    JSON.parse(text.replace(placeholders, '0'))
    return true
  } catch {
    return false
  }
}

export const readPayload = (stored: string | null): Schema<'Webhook'>['payload'] =>
  stored === null ? null : (JSON.parse(stored) as Schema<'Webhook'>['payload'])

/** Returns the pairs for storage. A missing value becomes an empty text. */
export const withEmptyValues = (sent: readonly Pair[] | undefined): Schema<'KeyValue'>[] | undefined =>
  sent?.map(({ key, value }) => ({ key, value: value ?? '' }))
