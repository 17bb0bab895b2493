// The Postman collection: it matches Postman's schema v2.1, contains every operation once, and its
// requests work unchanged. `npm run test:clients` sends them with Newman, and imports the
// collection with Bruno's converter.
import { randomUUID } from 'node:crypto'
import { Ajv } from 'ajv'
import { beforeAll, describe, expect, it } from 'vitest'
import { type PostmanCollection, postmanCollectionOf } from '../../src/http/docs/postman.ts'
import type { ServedDocument } from '../../src/http/docs/served-document.ts'
import { request as validRequest } from '../contract/support.ts'
import { useWorld } from '../contract/use-world.ts'
import { adminPassword, contract } from '../support/app.ts'
import { encode, file } from '../support/form.ts'
import { fact, facts } from '../support/schema.ts'

type Item = PostmanCollection['item'][number]['item'][number]

const text = { type: 'string' }
const list = (items: object) => ({ type: 'array', items })
const shape = (properties: object, required = Object.keys(properties)) => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties,
})
const entry = shape(
  { key: { type: 'string', minLength: 1 }, value: text, description: text, disabled: { const: true } },
  ['key', 'value'],
)
const field = {
  oneOf: [
    shape({ key: text, type: { const: 'text' }, value: text, description: text }, ['key', 'type', 'value']),
    shape({ key: text, type: { const: 'file' }, src: { type: 'array', maxItems: 0 }, description: text }, [
      'key',
      'type',
      'src',
    ]),
  ],
}

/**
 * The parts of Postman's schema v2.1 that the collection uses. Unlike the published schema, it
 * refuses unknown keys, so that misspelled keys are found.
 */
const collectionSchema = shape({
  info: shape({
    name: text,
    description: text,
    version: text,
    schema: { const: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json' },
  }),
  auth: shape({ type: { const: 'bearer' }, bearer: list(shape({ key: text, value: text, type: text })) }),
  variable: list(shape({ key: text, value: text })),
  item: list(
    shape({
      name: text,
      description: text,
      item: list(
        shape(
          {
            id: text,
            name: { type: 'string', minLength: 1 },
            event: list(
              shape({
                listen: { enum: ['test'] },
                script: shape({ type: { const: 'text/javascript' }, exec: list(text) }),
              }),
            ),
            request: shape(
              {
                method: { enum: ['GET', 'POST', 'PUT', 'DELETE'] },
                header: list(entry),
                url: shape({
                  raw: { type: 'string', pattern: '^\\{\\{baseUrl\\}\\}/[^{}]*$' },
                  host: { const: ['{{baseUrl}}'] },
                  path: list({ type: 'string', pattern: '^:?[\\w.-]+$' }),
                  query: list(entry),
                  variable: list(entry),
                }),
                body: {
                  oneOf: [
                    shape({
                      mode: { const: 'raw' },
                      raw: text,
                      options: { const: { raw: { language: 'json' } } },
                    }),
                    shape({ mode: { const: 'urlencoded' }, urlencoded: list(field) }),
                    shape({ mode: { const: 'formdata' }, formdata: list(field) }),
                  ],
                },
                auth: shape({ type: { const: 'noauth' } }),
                description: { type: 'string', minLength: 1 },
              },
              ['method', 'header', 'url', 'description'],
            ),
            response: { type: 'array', maxItems: 0 },
          },
          ['id', 'name', 'request', 'response'],
        ),
      ),
    }),
  ),
})

const world = useWorld()
let collection: PostmanCollection
let items: Item[]
beforeAll(async () => {
  const { statusCode, body } = await world.server.app.http.inject({ url: '/api/admin/postman.json' })
  expect(statusCode).toBe(200)
  collection = JSON.parse(body)
  items = collection.item.flatMap(({ item }) => item)
})

/** Sends a request of the collection with its variables replaced, like an API client. */
async function sendItem(
  { id, request: { method, url, header, body, auth } }: Item,
  variables: Record<string, string>,
  { path, enabled = [] }: { path?: string; enabled?: readonly string[] } = {},
) {
  const filled = (text: string): string =>
    text.replace(/\{\{(\$?\w+)\}\}/g, (_all, name: string) => variables[name] ?? `{{${name}}}`)
  const isOn = (each: { key: string; disabled?: true }): boolean => !each.disabled || enabled.includes(each.key)
  const own = url.path.map((part) => {
    const found = part.startsWith(':') ? url.variable.find(({ key }) => key === part.slice(1)) : undefined
    return found?.value ?? part
  })
  const query = url.query.filter(isOn).map(({ key, value }) => `${key}=${encodeURIComponent(filled(value))}`)
  const sent = Object.fromEntries(header.filter(isOn).map(({ key, value }) => [key, filled(value)]))
  if (auth?.type !== 'noauth') sent.Authorization = filled('Bearer {{token}}')
  const form = body?.formdata && (await encode(formOf(body.formdata)))
  const urlencoded = body?.urlencoded?.flatMap((each) => (each.type === 'text' ? [[each.key, each.value]] : []))
  const payload = form?.body ?? (urlencoded ? String(new URLSearchParams(urlencoded)) : body?.raw && filled(body.raw))
  if (urlencoded) sent['Content-Type'] = 'application/x-www-form-urlencoded'
  const answer = await world.server.app.http.inject({
    method: method as 'GET',
    url: `/${path ?? own.join('/')}${query.length > 0 ? `?${query.join('&')}` : ''}`,
    headers: { ...sent, ...form?.headers },
    ...(payload !== undefined && { payload }),
  })
  return { id, status: answer.statusCode, text: answer.body }
}

function formOf(fields: { key: string; type: string; value?: string }[]): FormData {
  const form = new FormData()
  for (const { key, type, value = '' } of fields)
    if (type === 'file') form.append(key, file('example.csv', 'name\nAda'))
    else form.append(key, value)
  return form
}

/** Sends a request for an existing record with the administrator's token. */
const sendToRecord = (item: Item, enabled: readonly string[] = []) =>
  sendItem(
    item,
    { token: world.server.admin.token ?? '', $guid: randomUUID(), email: 'admin@example.com', password: adminPassword },
    { path: validRequest(world, item.id).url.replace(/^\//, ''), enabled },
  )

const itemNamed = (id: string): Item => {
  const found = items.find((each) => each.id === id)
  if (!found) throw new Error(`The collection has no request ${id}.`)
  return found
}

describe('the collection', () => {
  it('has the form of a Postman Collection v2.1', () => {
    const check = new Ajv().compile(collectionSchema)
    expect(check(collection) ? [] : check.errors).toEqual([])
    expect(check({ ...collection, item: [{ name: 'A folder', item: [{ name: 'No request' }] }] })).toBe(false)
  })

  it('has a folder for each tag and every operation once, in the order of the contract', () => {
    const { tags } = contract as unknown as ServedDocument
    expect(collection.item.map(({ name }) => name)).toEqual(tags.map(({ name }) => name))
    for (const { name, item } of collection.item)
      expect(item.map(({ id }) => id)).toEqual(facts.filter(([, { tag }]) => tag === name).map(([id]) => id))
    expect(items.map(({ id }) => id).sort()).toEqual(facts.map(([id]) => id).sort())
  })

  it('says permission, ability and events, and has the address of the server', () => {
    const { name, request } = itemNamed('updateTag')
    expect([name, request.method]).toEqual(['Change a tag', 'PUT'])
    expect(request.description).toContain('- Ability of the token: `settings:write`')
    expect(request.description).toContain('- Events: `settings.tag.update`')
    expect(request.url.raw).toBe('{{baseUrl}}/api/admin/tags/:id')
    expect(collection.variable).toContainEqual({ key: 'baseUrl', value: 'http://localhost:80' })
  })

  it('switches optional parameters and headers off, and required ones on', () => {
    for (const { id, request } of items) {
      const { path } = fact(id)
      const optional = [...request.url.query, ...request.header].filter(({ disabled }) => disabled)
      const named = request.url.variable.map(({ key }) => key)
      expect([id, named]).toEqual([id, [...path.matchAll(/\{(\w+)\}([^/]*)/g)].map(([, key, end]) => `${key}${end}`)])
      expect(optional.map(({ key }) => key)).not.toContain('Accept')
    }
    const required = itemNamed('searchRecords').request.url
    expect(required.raw).toBe('{{baseUrl}}/api/admin/search?q=acme')
    expect(itemNamed('createLead').request.header).toContainEqual({
      key: 'Idempotency-Key',
      value: '{{$guid}}',
      description: expect.stringMatching(/^The first response to this key/),
      disabled: true,
    })
    expect(itemNamed('updateLead').request.header.find(({ key }) => key === 'If-Match')?.value).toBe('"3"')
  })

  it('has only the operations of the contract that it was made from', () => {
    const { paths, ...rest } = contract as unknown as ServedDocument
    const [path = '', operation = {}] = Object.entries(paths)[0] ?? []
    const made = postmanCollectionOf({ ...rest, paths: { [path]: operation } }, { baseUrl: 'https://crm.example' })
    expect(made.item.flatMap(({ item }) => item)).toHaveLength(Object.keys(operation).length)
  })
})

/** Expected refusals with their reasons. Any other refusal is an error of the collection. */
const refusals: Readonly<Record<string, string>> = {
  downloadSignedFile: 'forbidden: only the server can write the signature of a link',
  createSession: 'csrf_mismatch: sessions are for pages in a browser, which send a CSRF token',
  deleteSession: 'state_conflict: a bearer token has no session to end',
}

/**
 * Returns whether a refusal results from missing or existing records: examples have ids that do not
 * exist, and names that seeded records have.
 */
const isAboutRecords = (text: string): boolean => {
  const {
    code,
    errors,
    failed = [],
  } = JSON.parse(text) as {
    code: string
    errors?: Record<string, string[]>
    failed?: { status: number }[]
  }
  if (code === 'mass_failed') return failed.every(({ status }) => status === 404 || status === 409)
  const sentences = Object.values(errors ?? {}).flat()
  const known =
    /^(No [\w -]+ has (id \d+|such an id)|No \w+ with id \d+ was merged into this one in the last 90 days|The pipeline .+ has no stage with id \d+|Another \w+ has this name)\.$/
  return sentences.length > 0 && sentences.every((sentence) => known.test(sentence))
}

describe('a request of the collection', { timeout: 120_000 }, () => {
  it('signs in with the variables, and its script stores the token for the others', async () => {
    const item = itemNamed('login')
    const { status, text } = await sendItem(item, { email: 'admin@example.com', password: adminPassword })
    expect(status).toBe(fact('login').status)
    const stored: Record<string, string> = {}
    const collectionVariables = { set: (key: string, value: string) => Object.assign(stored, { [key]: value }) }
    const [{ script }] = item.event as [{ script: { exec: string[] } }]
    const run = new Function('pm', script.exec.join('\n')) as (pm: object) => void
    run({ response: { json: () => JSON.parse(text) }, collectionVariables })
    expect((await sendItem(itemNamed('getAccount'), stored)).status).toBe(200)
    // A refused sign-in does not change the stored token.
    run({ response: { json: () => ({ status: 401 }) }, collectionVariables })
    expect((await sendItem(itemNamed('getAccount'), stored)).status).toBe(200)
    expect((await sendItem(itemNamed('getAccount'), { token: 'none' })).status).toBe(401)
  })

  it('reads, creates and changes as it is, or is refused for a reason that is known', async () => {
    const unknown: string[] = []
    const seen = new Set<string>()
    for (const item of items) {
      const { status, text } = await sendToRecord(item)
      if (item.request.method !== 'GET' && status < 400) await world.server.rewind()
      if (status === fact(item.id).status) continue
      const [code] = refusals[item.id]?.split(':') ?? []
      const isKnown = code === undefined ? item.request.method !== 'GET' && isAboutRecords(text) : text.includes(code)
      if (!isKnown) unknown.push(`${item.id} ${status} ${text.slice(0, 500)}`)
      seen.add(item.id)
    }
    expect(unknown).toEqual([])
    expect([...seen]).toEqual(expect.arrayContaining(Object.keys(refusals)))
    for (const id of ['createLead', 'createPerson', 'createProduct', 'createTag', 'createWebhook', 'uploadFile'])
      expect(seen).not.toContain(id)
  })

  it('takes the example of each optional parameter', async () => {
    const refused: string[] = []
    const tried = new Set<string>()
    for (const item of items.filter(({ request }) => request.method === 'GET'))
      for (const { key, value, disabled } of [...item.request.url.query, ...item.request.header]) {
        const name = `${item.id.startsWith('list') ? 'list' : item.id} ${key}=${value}`
        if (!disabled || value === '' || tried.has(name) || refusals[item.id] !== undefined) continue
        tried.add(name)
        const { status, text } = await sendToRecord(item, [key])
        if (status >= 400 && !isAboutRecords(text))
          refused.push(`${item.id} ${key}=${value} ${status} ${text.slice(0, 300)}`)
      }
    expect(tried.size).toBeGreaterThan(500)
    expect(refused).toEqual([])
  })

  it('can be repeated with a new Idempotency-Key each time', async () => {
    const create = itemNamed('createTag')
    const statuses = [await sendToRecord(create, ['Idempotency-Key']), await sendToRecord(create, ['Idempotency-Key'])]
    // The keys differ. With the same key, the second request would get the first reply.
    expect(statuses.map(({ status }) => status)).toEqual([201, 409])
    await world.server.rewind()
  })

  it('has the required custom attributes of this installation', async () => {
    const attribute = { code: 'shirt', name: 'Shirt', type: 'text', entity_type: 'leads', is_required: true }
    expect((await world.server.admin.post('/settings/attributes', attribute)).status).toBe(201)
    const { body } = await world.server.app.http.inject({ url: '/api/admin/postman.json' })
    const fresh = (JSON.parse(body) as PostmanCollection).item.flatMap(({ item }) => item)
    const create = fresh.find(({ id }) => id === 'createLead') as Item
    expect(JSON.parse(create.request.body?.raw ?? '').custom_attributes).toHaveProperty('shirt')
    expect((await sendToRecord(create)).status).toBe(201)
    const filters = fresh.find(({ id }) => id === 'listLeads')?.request.url.query.map(({ key }) => key)
    expect(filters).toContain('custom_attributes[shirt]')
    await world.server.rewind()
  })
})
