// Random requests to version 1 with plausible, unusual and damaged bodies. No request gets a 5xx,
// and every error has a message.
import { beforeAll, describe, expect, it } from 'vitest'
import { operations } from '../../../src/contract/operations.gen.ts'
import { type RewriteRow, rows } from '../../../src/http/compat-v1/rows.ts'
import { contractSchemas } from '../../../src/http/compat-v1/schemas.ts'
import { anything, hostileText, oddKey } from '../../fuzz/hostile.ts'
import { type Random, randomOf } from '../../fuzz/random.ts'
import { valid } from '../../fuzz/values.ts'
import { contract } from '../../support/app.ts'
import { file, form } from '../../support/form.ts'
import type { SchemaObject } from '../../support/schema.ts'
import { useSharedServer } from '../../support/using.ts'

const seed = 27
const requests = 1_500
const schemas = contractSchemas(contract)

const server = useSharedServer({ config: { compatV1: true } })
beforeAll(async () => {
  await server.admin.post('/settings/attributes', { code: 'city', name: 'City', type: 'text', entity_type: 'leads' })
})

const words = [
  'limit',
  'page',
  'sort',
  'order',
  'pagination',
  'search',
  'searchFields',
  'orderBy',
  'email',
  'phone',
  'id',
]
const wordValues = [
  '',
  '0',
  '1',
  '-1',
  '2.5',
  'id',
  'desc',
  'name:like',
  'name:Ada;email:x',
  'x'.repeat(300),
  ';:;',
  '1,2',
]

const idOf = (random: Random): string => random.pick(['1', '2', '3', '7', '99', '0', 'abc', '1e3', '%00', '1;2', '😀'])
const pathOf = (random: Random, { path }: RewriteRow): string =>
  path.replaceAll(/\/\{(\w+)(\??)\}/g, (_, name: string, optional: string) => {
    if (optional !== '' && random.chance(0.5)) return ''
    return `/${encodeURIComponent(/lookup|sample/.test(name) ? random.pick(['users', 'persons', 'x']) : idOf(random))}`
  })

function queryOf(random: Random, row: RewriteRow): string {
  const known = [...schemas.parameters(operations[row.operation]), 'city', 'tag_id', 'column', 'query', '_method']
  const pairs = Array.from({ length: random.few(5) }, () => [
    random.pick([random.pick(words), random.pick(known), oddKey(random)]),
    random.chance(0.7) ? random.pick(wordValues) : hostileText(random, 40),
  ])
  return random.chance(0.5) ? '' : `?${new URLSearchParams(pairs as [string, string][])}`
}

/** Converts a body to the spellings of version 1, such as texts for numbers and maps for arrays. */
function spelled(random: Random, value: unknown): unknown {
  if (typeof value === 'number' && random.chance(0.5)) return String(value)
  if (typeof value === 'boolean') return random.pick([value, Number(value), value ? 'on' : 'off'])
  if (Array.isArray(value)) {
    const entries = value.map((each) => spelled(random, each))
    return random.chance(0.3)
      ? Object.fromEntries(entries.map((each, index) => [random.pick([`row_${index}`, index + 1]), each]))
      : entries
  }
  if (typeof value !== 'object' || value === null) return random.chance(0.05) ? '' : value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, spelled(random, each)]))
}

function fieldsOf(random: Random, row: RewriteRow): Record<string, unknown> {
  const schema = schemas.body(operations[row.operation]) as SchemaObject | undefined
  const made = schema && random.chance(0.8) ? valid(random, schema, () => random.whole(1, 4)) : anything(random, 3)
  const fields = spelled(random, made) as Record<string, unknown>
  const extras = { tag_id: '1', product_id: 2, email_id: [1], type: 'trash', city: 'x', _method: 'PUT', is_draft: 0 }
  const [key, value] = random.pick(Object.entries(extras))
  return typeof fields === 'object' && fields !== null && !Array.isArray(fields) && random.chance(0.4)
    ? { ...fields, [key]: value }
    : fields
}

/** Flattens nested fields to form fields. */
function flat(value: unknown, name = ''): [string, string][] {
  if (typeof value !== 'object' || value === null) return [[name || 'x', String(value ?? '')]]
  return Object.entries(value).flatMap(([key, each]) => flat(each, name === '' ? key : `${name}[${key}]`))
}

interface Sent {
  payload?: string | Buffer
  headers?: Record<string, string>
}

async function payloadOf(random: Random, fields: Record<string, unknown>): Promise<Sent> {
  const kind = random.weighted({ json: 6, urlencoded: 2, multipart: 2, damaged: 1 })
  const pairs = flat(fields).slice(0, 60)
  if (kind === 'urlencoded')
    return {
      payload: new URLSearchParams(pairs).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }
  if (kind === 'multipart') {
    const parts: Record<string, string | File> = Object.fromEntries(pairs)
    if (random.chance(0.4))
      parts[random.pick(['file', 'attachments[]', 'image', 'x'])] = file(
        random.pick(['a.txt', 'p.png', '']),
        hostileText(random, 50),
      )
    const { body, headers } = await form(parts)
    return { payload: random.chance(0.1) ? body.subarray(0, random.whole(0, body.length)) : body, headers }
  }
  const text = JSON.stringify(fields)
  const payload = kind === 'json' ? text : text.slice(0, random.whole(0, text.length))
  return { payload, headers: { 'content-type': random.pick(['application/json', 'application/json; charset=utf-8']) } }
}

describe('random requests', () => {
  it(`get no 5xx, and a message with every error (${requests} requests, seed ${seed})`, {
    timeout: 120_000,
  }, async () => {
    const found: string[] = []
    const statuses = new Map<number, number>()
    for (let index = 0; index < requests; index++) {
      const random = randomOf(seed, index)
      const row = random.pick(rows)
      if (row.operation === 'logout') continue
      const method = random.chance(0.95) ? row.method : random.pick(['GET', 'POST', 'PUT', 'DELETE', 'PATCH'] as const)
      const url = `/api/v1${pathOf(random, row)}${queryOf(random, row)}`
      const sent: Sent = method === 'GET' ? {} : await payloadOf(random, fieldsOf(random, row))
      const headers = { ...sent.headers, ...(random.chance(0.95) && { authorization: `Bearer ${server.admin.token}` }) }
      const reply = await server.inject({ method, url, ...sent, headers })
      statuses.set(reply.statusCode, (statuses.get(reply.statusCode) ?? 0) + 1)
      const isJson = String(reply.headers['content-type']).startsWith('application/json')
      const isTold = reply.statusCode < 400 || (isJson && typeof reply.json().message === 'string')
      if (reply.statusCode >= 500 || !isTold)
        found.push(
          `${index} ${method} ${url} ${String(sent.payload).slice(0, 300)}: ${reply.statusCode} ${reply.body.slice(0, 300)}`,
        )
    }
    expect(found).toEqual([])
    // Many requests succeed, and many are refused in different ways.
    expect(statuses.get(200)).toBeGreaterThan(requests / 5)
    expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400, 401, 404, 405, 422]))
  })
})
