// The request of a webhook for an event: as configured, identical in every attempt, and signed.
import { randomBytes } from 'node:crypto'
import { Webhook as Verifier } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { OutboundError } from '../../src/kernel/outbound/client.ts'
import {
  buildRequest,
  quotePlaceholders,
  type RequestTemplate,
  type WebhookMessage,
} from '../../src/resources/webhooks/request.ts'
import { signatureHeaders } from '../../src/resources/webhooks/signature.ts'

const recipe: RequestTemplate = {
  method: 'post',
  url: 'https://example.com/hooks',
  query_params: [],
  headers: [],
  payload_type: 'default',
  raw_payload_type: null,
  payload: null,
}

const occasion: WebhookMessage = {
  id: 'msg_7_1',
  type: 'lead.update.after',
  timestamp: '2026-03-01T09:30:00.000Z',
  data: {
    id: 12,
    name: 'lead.update.after',
    entity_type: 'leads',
    entity_id: 3,
    related_type: null,
    related_id: null,
    actor: { type: 'user', id: 1, name: 'Ada' },
    token_id: 5,
    request_id: '2f6c',
    origin: 'api',
    changed: ['title'],
    restored: false,
    occurred_at: '2026-03-01T09:30:00.000Z',
    before: { id: 3, title: 'Chair', version: 3 },
    after: { id: 3, title: 'Chairs', version: 4 },
  },
  placeholders: new Map([
    ['leads.title', 'Ben & "Jerry"/ä?'],
    ['leads.lead_value', '$5,000.00'],
    ['leads.address', 'Main St. 1\n12345 Town\r\nX-Evil: 1'],
    ['leads.empty', ''],
  ]),
}

const request = (changes: Partial<RequestTemplate> = {}, message: Partial<WebhookMessage> = {}) =>
  buildRequest({ ...recipe, ...changes }, { ...occasion, ...message })
const fault = (work: () => unknown) => {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('This should have failed.')
}

describe('the request', () => {
  it('tells the event as JSON when nothing else was configured', () => {
    const { method, url, headers, body } = request()
    expect([method, url, headers]).toEqual([
      'POST',
      'https://example.com/hooks',
      { 'content-type': 'application/json' },
    ])
    const { id, type, timestamp, data } = occasion
    expect(JSON.parse(body)).toEqual({ id, type, timestamp, data })
  })

  it('cuts records down to their ids for which it would be larger than 1 MB', () => {
    const record = (length: number) => ({ id: 3, description: 'ä'.repeat(length) })
    const bodyOf = (length: number) =>
      JSON.parse(request({}, { data: { ...occasion.data, before: null, after: record(length) } }).body)
    expect(bodyOf(400_000).data.after).toEqual(record(400_000))
    expect(bodyOf(600_000).data).toMatchObject({ before: null, after: { id: 3 }, changed: ['title'] })
    expect(bodyOf(600_000).data.after).toEqual({ id: 3 })
  })

  it('has no body with get, only what stands in the address', () => {
    const { body, headers, url } = request({
      method: 'get',
      query_params: [{ key: 'title', value: '{%leads.title%}' }],
    })
    expect([body, headers]).toEqual(['', {}])
    expect(new URL(url).searchParams.get('title')).toBe('Ben & "Jerry"/ä?')
  })

  it('keeps what records say within their place in the address', () => {
    const template = 'https://example.com/leads/{% leads.title %}?mode=a%20b&title={%leads.title%}#part'
    const query_params = [
      { key: 'a b', value: '1&2' },
      { key: 'both', value: 'is {%leads.title%}!' },
      { key: 'none', value: '{%leads.nothing%}' },
    ]
    const { url } = request({ url: template, query_params })
    const parsed = new URL(url)
    expect(parsed.host).toBe('example.com')
    expect(decodeURIComponent(parsed.pathname)).toBe('/leads/Ben & "Jerry"/ä?')
    expect(parsed.pathname.split('/')).toHaveLength(3)
    expect([...parsed.searchParams]).toEqual([
      ['mode', 'a b'],
      ['title', 'Ben & "Jerry"/ä?'],
      ['a b', '1&2'],
      ['both', 'is Ben & "Jerry"/ä?!'],
      ['none', '{%leads.nothing%}'],
    ])
    expect(parsed.hash).toBe('')
  })

  it.each([
    ['https://example.com/leads/{%leads.dots%}/hooks', '..'],
    ['https://example.com/leads/{%leads.dots%}', '.'],
    ['https://example.com/leads\\{%leads.dots%}?a=1', '..'],
    ['https://example.com/leads/.{%leads.dots%}/hooks', '.'],
    ['https://example.com/leads/%2E{%leads.dots%}#part', '.'],
    ['https://example.com/{%?%}/{%leads.dots%}/hooks', '..'],
    ['https://example.com/leads/..{%leads.empty%}/hooks', ''],
  ])('leads nowhere else because a value is dots: %s', (url, dots) => {
    const placeholders = new Map([...occasion.placeholders, ['leads.dots', dots]])
    const error = fault(() => request({ url }, { placeholders }))
    expect(error).toMatchObject({ kind: 'invalid', message: expect.stringContaining('change the address') })
  })

  it.each([
    ['https://example.com/leads/{%leads.dots%}/hooks', '...', '/leads/.../hooks'],
    ['https://example.com/leads/x{%leads.dots%}/hooks', '..', '/leads/x../hooks'],
    ['https://example.com/leads/{%leads.dots%}/hooks', '../..', '/leads/..%2F../hooks'],
    ['https://example.com/leads/{%leads.dots%}/hooks', '%2e%2e', '/leads/%252e%252e/hooks'],
    ['https://example.com/a/../hooks?v=/{%leads.dots%}/', '..', '/hooks'],
  ])('stays where it is with dots that mean nothing: %s', (url, dots, pathname) => {
    const placeholders = new Map([...occasion.placeholders, ['leads.dots', dots]])
    expect(new URL(request({ url }, { placeholders }).url).pathname).toBe(pathname)
  })

  it('sends form fields', () => {
    const payload = [
      { key: 'title', value: '{%leads.title%}' },
      { key: 'address', value: '{%leads.address%}' },
      { key: 'plain', value: '100% & more' },
    ]
    const { body, headers } = request({ payload_type: 'x-www-form-urlencoded', payload })
    expect(headers).toEqual({ 'content-type': 'application/x-www-form-urlencoded' })
    expect([...new URLSearchParams(body)]).toEqual([
      ['title', 'Ben & "Jerry"/ä?'],
      ['address', 'Main St. 1\n12345 Town\r\nX-Evil: 1'],
      ['plain', '100% & more'],
    ])
  })

  it('sends JSON of its own, which stays JSON whatever the record says', () => {
    const payload =
      '{"title": "It is \\"{%leads.title%}\\"", "value": {%leads.lead_value%}, "none": {%leads.empty%}, "odd": {%leads.nothing|-%}, "raw": {%leads.nothing|raw%}}'
    const { body, headers } = request({ payload_type: 'raw', raw_payload_type: 'json', payload })
    expect(headers).toEqual({ 'content-type': 'application/json' })
    expect(JSON.parse(body)).toEqual({
      title: 'It is "Ben & "Jerry"/ä?"',
      value: '$5,000.00',
      none: '',
      odd: '-',
      raw: null,
    })
    expect(quotePlaceholders('{"a\\\\": {%b.c%}, "{%d.e%}": "x"}')).toBe('{"a\\\\": "{%b.c%}", "{%d.e%}": "x"}')
  })

  it('sends a text of its own', () => {
    const { body, headers } = request({
      payload_type: 'raw',
      raw_payload_type: 'text',
      payload: 'Sold: {%leads.title%}\n{%leads.nothing|nothing%}',
    })
    expect([body, headers]).toEqual([
      'Sold: Ben & "Jerry"/ä?\nnothing',
      { 'content-type': 'text/plain; charset=utf-8' },
    ])
  })

  it('keeps headers in one line, as UTF-8, and lets the media type be said', () => {
    const { headers } = request({
      headers: [
        { key: 'X-Address', value: '{%leads.address%}' },
        { key: 'X-Title', value: '{%leads.title%}' },
        { key: 'X-Many', value: '1' },
        { key: 'x-many', value: '2' },
        { key: 'Content-Type', value: 'application/vnd.example+json' },
      ],
    })
    expect(headers).toEqual({
      'x-address': ['Main St. 1, 12345 Town, X-Evil: 1'],
      'x-title': [Buffer.from('Ben & "Jerry"/ä?').toString('latin1')],
      'x-many': ['1', '2'],
      'content-type': ['application/vnd.example+json'],
    })
  })

  it('is not made when values make it larger than anybody takes', () => {
    const placeholders = new Map([['leads.title', 'x'.repeat(20_000)]])
    for (const changes of [
      { url: 'https://example.com/{%leads.title%}' },
      { headers: [{ key: 'X-Title', value: '{%leads.title%}' }] },
      {
        payload_type: 'raw' as const,
        raw_payload_type: 'text' as const,
        payload: '{%leads.title%}'.repeat(60),
      },
    ]) {
      const error = fault(() => request(changes, { placeholders }))
      expect(error).toBeInstanceOf(OutboundError)
      expect((error as OutboundError).message).toMatch(/ is too long once its placeholders are filled in\.$/)
    }
  })
})

describe('the signature', () => {
  const secret = (): string => `whsec_${randomBytes(32).toString('base64')}`
  const body = '{"title":"ä"}'

  it('is what the library of Standard Webhooks verifies', () => {
    const key = secret()
    const headers = signatureHeaders({ id: 'msg_7_1', at: new Date(), body, secrets: [key] })
    expect(new Verifier(key).verify(body, headers)).toEqual({ title: 'ä' })
    expect(() => new Verifier(secret()).verify(body, headers)).toThrow('No matching signature found')
    expect(() => new Verifier(key).verify(`${body} `, headers)).toThrow('No matching signature found')
    expect(() => new Verifier(key).verify(body, { ...headers, 'webhook-id': 'msg_8_1' })).toThrow()
  })

  it('is verified by the secret before as well while both are in force', () => {
    const [now, before] = [secret(), secret()]
    const headers = signatureHeaders({ id: 'msg_7_1', at: new Date(), body, secrets: [now, before] })
    expect(headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/)
    for (const key of [now, before]) expect(new Verifier(key).verify(body, headers)).toEqual({ title: 'ä' })
  })
})
