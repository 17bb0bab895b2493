// The documents for discovery: the API catalog, /llms.txt, the Markdown pages, the AsyncAPI
// document and the Link headers.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { catalogueEvents } from '../../codegen/events.ts'
import { operations } from '../../src/contract/operations.gen.ts'
import type { Reply } from '../support/app.ts'
import { facts } from '../support/schema.ts'
import { useSharedServer } from '../support/using.ts'

interface AsyncApi {
  channels: Record<string, { address: string | null; messages: Record<string, { $ref: string }> }>
  servers: Record<string, { host: string; protocol: string }>
  components: { messages: Record<string, object>; schemas: Record<string, object> }
}

const root = 'https://crm.example.com'
const server = useSharedServer({ config: { appUrl: root } })

const inject = (url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') =>
  server.app.http.inject({ method, url, headers })
const asyncApi = async (): Promise<AsyncApi> => (await inject('/api/admin/asyncapi.json')).json()

// Long timeout, because a worker thread needs seconds to create the YAML.
describe('the AsyncAPI document', { timeout: 60_000 }, () => {
  const schema = JSON.parse(
    readFileSync(createRequire(import.meta.url).resolve('@asyncapi/specs/schemas/3.0.0.json'), 'utf8'),
  ) as object
  // The schema contains a copy of draft-07, so Ajv must not add its own.
  const valid = new Ajv({ strict: false, validateFormats: false, meta: false, validateSchema: false }).compile(schema)

  it('follows the schema of AsyncAPI 3.0, which a document with a mistake does not', async () => {
    const document = await asyncApi()
    expect(valid(document) ? [] : valid.errors).toEqual([])
    expect(valid({ ...document, channels: { webhooks: { adress: null } } })).toBe(false)
  })

  it('has the same content as YAML', async () => {
    const { body, headers } = await inject('/api/admin/asyncapi.yaml')
    expect(headers['content-type']).toBe('application/yaml; charset=utf-8')
    expect(parse(body)).toEqual(await asyncApi())
  })

  it('has a message for each event of the catalogue, and resolves its references', async () => {
    const document = await asyncApi()
    const { webhooks, events } = document.channels
    expect(Object.keys(events?.messages ?? {}).sort()).toEqual(catalogueEvents.map(({ name }) => name).sort())
    const sent = catalogueEvents.flatMap(({ name, isUnsent }) => (isUnsent ? [] : [name]))
    expect(Object.keys(webhooks?.messages ?? {}).sort()).toEqual([...sent, 'webhook.test'].sort())
    expect([webhooks?.address, events?.address]).toEqual([null, operations.listEvents.path])
    expect(document.servers.api).toMatchObject({ host: 'crm.example.com', protocol: 'https' })
    const named = (path: string): unknown =>
      path
        .slice(2)
        .split('/')
        .reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[key], document)
    const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, path = '']) => path)
    expect([...new Set(refs)].filter((path) => named(path) === undefined)).toEqual([])
  })

  it('describes the entries of the feed', async () => {
    await server.admin.post('/tags', { name: 'Event', color: '#112233' })
    const { body } = await server.admin.get('/events?name=settings.tag.create.after')
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.addSchema({ $id: 'events', ...(await asyncApi()) })
    const check = ajv.getSchema('events#/components/messages/events.settings.tag.create.after/payload')
    expect(body.data).toHaveLength(1)
    expect(check?.(body.data[0])).toBe(true)
    expect(check?.({ ...body.data[0], entity_type: 'leads' })).toBe(false)
  })

  it('has the custom attributes of this installation', async () => {
    const attribute = { code: 'shirt', name: 'Shirt', type: 'text', entity_type: 'leads' }
    expect((await server.admin.post('/settings/attributes', attribute)).status).toBe(201)
    expect(JSON.stringify((await asyncApi()).components.schemas.LeadAttributes)).toContain('"shirt"')
  })
})

describe('/llms.txt and the Markdown pages', { timeout: 60_000 }, () => {
  it('list every operation with the address of its page, in less than 64 KiB', async () => {
    const { body, headers } = await inject('/llms.txt')
    expect(headers['content-type']).toBe('text/plain; charset=utf-8')
    expect(body).toMatch(/^# Accord CRM\n\n> /)
    expect(body.length).toBeLessThan(64 * 1024)
    const pages = [...body.matchAll(/\]\((\/api\/admin\/documentation\/operations\/\w+\.md)\)/g)].map(([, url]) => url)
    expect(pages.sort()).toEqual(facts.map(([id]) => `/api/admin/documentation/operations/${id}.md`).sort())
  })

  it('have one page for each operation, with at most 32 KiB', async () => {
    const faults: string[] = []
    for (const [id, { method, path, permission }] of facts) {
      const { statusCode, body, headers } = await inject(`/api/admin/documentation/operations/${id}.md`)
      if (statusCode !== 200 || headers['content-type'] !== 'text/markdown; charset=utf-8')
        faults.push(`${id} ${statusCode}`)
      if (!body.includes(`\`${method.toUpperCase()} ${path}\``)) faults.push(`${id} lacks its path`)
      if (permission !== null && !body.includes(`\`${permission}\``)) faults.push(`${id} lacks its permission`)
      if (body.length > 32 * 1024 || /undefined|\[object/.test(body)) faults.push(`${id} ${body.length}`)
    }
    expect(faults).toEqual([])
  })

  it('lists the fields of nested objects of a body, and the data of a record once', async () => {
    const { body } = await inject('/api/admin/documentation/operations/createLead.md')
    expect(body).toContain('- `products` (list of LeadProductInput)')
    expect(body).toContain('\n  - `quantity` (number')
    expect(body).toContain('\n  - `emails` (list of EmailPointInput)')
    expect(body).toContain('\n    - `value` (string or null, required)')
    expect(body).toContain('`application/json`, `data` as for 200.')
    expect(body.match(/`rotten_days` \(/g)).toHaveLength(1)
  })

  it('tell parameters, body and replies of an operation', async () => {
    const { body } = await inject('/api/admin/documentation/operations/updateTag.md')
    expect(body).toContain('# Change a tag\n\n`PUT /api/admin/tags/{id}` · operationId `updateTag` · Tags\n')
    expect(body).toContain('- Events: `settings.tag.update`')
    expect(body).toContain('- `id` (path, integer, required): Id of the record.')
    expect(body).toMatch(/## Body\n\n### application\/json\n\n[^#]+- `name` \(string\): /)
    expect(body).toContain('- `user` (UserRef or IncludedUser or null, required)')
    expect(body).toMatch(/```json\n\{\n {2}"id": 3,/)
    expect(body).toContain('- 412: `version_mismatch`')
  })

  it.each(['noSuchOperation', 'constructor', 'a'.repeat(200), '..%2Fx'])('answer 404 for %s', async (id) => {
    const { statusCode, headers } = await inject(`/api/admin/documentation/operations/${id}.md`)
    expect([statusCode, headers['content-type']]).toEqual([404, 'application/problem+json; charset=utf-8'])
  })
})

describe('the API catalog', { timeout: 60_000 }, () => {
  it('is a linkset with absolute addresses, each of which answers', async () => {
    const { body, headers } = await inject('/.well-known/api-catalog')
    expect(headers['content-type']).toBe('application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"')
    const { linkset } = JSON.parse(body) as { linkset: { anchor: string; [rel: string]: unknown }[] }
    const api = linkset.find(({ anchor }) => anchor === `${root}/api/admin`)
    expect(Object.keys(api ?? {})).toEqual(['anchor', 'service-desc', 'service-doc', 'status'])
    const { anchor: _anchor, ...relations } = api ?? {}
    for (const { href, type } of Object.values(relations).flat() as { href: string; type: string }[]) {
      expect(href.startsWith(root)).toBe(true)
      const answer = await inject(href.slice(root.length))
      expect([href, answer.statusCode, answer.headers['content-type']?.toString().split(';')[0]]).toEqual([
        href,
        200,
        type,
      ])
    }
  })

  it('answers HEAD with a link to itself', async () => {
    const { statusCode, headers, body } = await inject('/.well-known/api-catalog', {}, 'HEAD')
    expect([statusCode, body]).toEqual([200, ''])
    expect(headers.link).toContain('</.well-known/api-catalog>; rel="api-catalog"')
  })
})

describe('Link headers', { timeout: 60_000 }, () => {
  it.each(facts.filter(([, { servedBy }]) => servedBy === 'docs').map(([id, { path }]) => [id, path]))(
    'of %s name the contract and the documentation, and an unchanged document is 304',
    async (_id, path) => {
      const url = path.replace('{operationId}', 'listLeads')
      const { statusCode, headers } = await inject(url)
      expect(statusCode).toBe(200)
      expect(headers.link).toContain('</api/admin/openapi.json>; rel="service-desc"; type="application/json"')
      expect(headers.link).toContain('</api/admin/documentation>; rel="service-doc"; type="text/html"')
      if (headers.etag === undefined) return
      const again = await inject(url, { 'if-none-match': String(headers.etag) })
      expect([again.statusCode, again.body]).toEqual([304, ''])
    },
  )

  it('of a path that does not exist name the contract, too', async () => {
    const { statusCode, headers } = await inject('/api/admin/nowhere')
    expect([statusCode, headers.link?.toString().includes('rel="service-desc"')]).toEqual([404, true])
  })

  it('of the event feed lead through the whole feed, and end with it', async () => {
    for (const name of ['One', 'Two', 'Three']) await server.admin.post('/tags', { name, color: '#112233' })
    const names: string[] = []
    const first = '/events?name=settings.tag.create.after&per_page=2'
    for (let url: string | undefined = first; url !== undefined && names.length < 20; ) {
      const { status, body, headers }: Reply = await server.admin.get(url)
      expect(status).toBe(200)
      names.push(...body.data.map(({ after }: { after: { name: string } }) => after.name))
      expect(headers.link === undefined).toBe(!body.meta.has_more)
      const [, next]: readonly string[] =
        /^<https:\/\/crm\.example\.com\/api\/admin(\/events\?[^>]+)>; rel="next"$/.exec(String(headers.link)) ?? []
      url = next
    }
    expect(names.filter((name) => name !== 'Event')).toEqual(['One', 'Two', 'Three'])
  })
})
