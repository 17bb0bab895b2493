// The served contract contains the custom attributes of the installation, with their types. A
// generated client compiles with a valid option and not with an invalid one.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import openapiTS, { astToString } from 'openapi-typescript'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { lint } from '../../codegen/lint.ts'
import type { ContractDocument } from '../../codegen/read.ts'
import { abilityAreas, permissionKeys } from '../../src/contract/operations.gen.ts'
import { adminPassword } from '../support/app.ts'
import { type Listening, listeningServer } from '../support/listening.ts'
import { until } from '../support/until.ts'

const cache = fileURLToPath(new URL('../../node_modules/.cache', import.meta.url))

let server: Listening
let token: string
let bare: string
let folder: string
const options: number[] = []

async function call(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string; etag: string }> {
  const reply = await fetch(`${server.url}/api/admin${path}`, {
    method,
    headers: {
      accept: 'application/json',
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await reply.text()
  // The lint of a test keeps this process busy, so the server in it sheds load. A client tries
  // again.
  if (reply.status === 503) {
    await pause(1000)
    return call(method, path, body, headers)
  }
  return { status: reply.status, text, etag: reply.headers.get('etag') ?? '' }
}

const define = async (body: Record<string, unknown>) =>
  JSON.parse((await call('POST', '/settings/attributes', body)).text).data

beforeAll(async () => {
  token = ''
  server = await listeningServer({ adminPassword })
  const sent = { email: 'admin@example.com', password: adminPassword, device_name: 'test' }
  token = JSON.parse((await call('POST', '/login', sent)).text).data.token
  bare = (await call('GET', '/openapi.json')).text
})
afterAll(async () => {
  await server.close()
  if (folder) rmSync(folder, { recursive: true, force: true })
})

describe('getOpenapiJson', { timeout: 60_000 }, () => {
  it('shows an attribute the moment it is defined, with its options, under another ETag', async () => {
    const before = (await call('GET', '/openapi.json')).etag
    const made = await define({
      ...{ code: 'industry', name: 'Industry', type: 'select', entity_type: 'organizations', is_required: true },
      options: [{ name: 'Automotive' }, { name: 'Logistics' }],
    })
    options.push(...made.options.map(({ id }: { id: number }) => id))
    await define({ code: 'revenue', name: 'Revenue', type: 'price', entity_type: 'organizations' })
    const { text, etag } = await call('GET', '/openapi.json')
    const { schemas, parameters } = JSON.parse(text).components
    const industry = {
      description: 'Industry. 1 = Automotive, 2 = Logistics',
      anyOf: [{ type: 'integer', enum: [1, 2] }, { $ref: '#/components/schemas/ByName' }],
    }
    expect(schemas.OrganizationAttributesInput).toMatchObject({ additionalProperties: false, properties: { industry } })
    expect(schemas.OrganizationAttributes).toMatchObject({
      required: ['industry', 'revenue'],
      properties: { industry: { type: ['integer', 'null'], enum: [1, 2, null] } },
    })
    expect(schemas.OrganizationCreate.required).toContain('custom_attributes')
    expect(schemas.OrganizationAttributesCreate.required).toEqual(['industry'])
    expect(parameters.OrganizationSort.schema.items.enum).toContain('-custom_attributes.revenue')
    expect(Object.keys(parameters.OrganizationCustomAttributes.schema.properties)).toEqual(['industry', 'revenue'])
    expect(schemas.LeadAttributes).toMatchObject({ additionalProperties: false, properties: {} })
    expect(etag).not.toBe(before)
    expect((await call('GET', '/openapi.json', undefined, { 'if-none-match': etag })).status).toBe(304)
  })

  it('shows a stranger codes, names and options, which a generated client needs, and no other data', async () => {
    const sent = { name: 'Hushhush Ltd', custom_attributes: { industry: options[0] } }
    expect((await call('POST', '/contacts/organizations', sent)).status).toBe(201)
    const known = token
    token = ''
    const { text } = await call('GET', '/openapi.json')
    token = known
    expect(text).toContain('Industry. 1 = Automotive, 2 = Logistics')
    expect(text.includes('Hushhush')).toBe(false)
  })

  it('is still a contract by the rules of the house, and says the same as YAML', async () => {
    const { text } = await call('GET', '/openapi.json')
    const findings = (served: string) => {
      const {
        'x-generated': _generated,
        'x-contract-hash': _hash,
        ...document
      } = JSON.parse(served) as ContractDocument
      const parts = { text: '', hash: '', problems: [], flowParts: new WeakSet(), lineOf: () => 1 }
      return lint({ ...parts, document, source: document }, { knowledge: { permissionKeys, abilityAreas } })
    }
    // Custom attributes add no finding. Both contracts have findings in their generated webhooks,
    // because the rules are written for the source contract.
    expect(findings(text)).toEqual(findings(bare))
    expect(parse((await call('GET', '/openapi.yaml')).text)).toEqual(JSON.parse(text))
  }, 180_000)

  it('is the bare contract when asked, and refuses what is neither yes nor no', async () => {
    expect((await call('GET', '/openapi.json?custom=false')).text).toBe(bare)
    expect((await call('GET', '/openapi.json?custom=maybe')).status).toBe(422)
    for (const form of ['json', 'yaml'])
      expect(JSON.parse((await call('GET', `/openapi.${form}?custm=false`)).text).errors).toEqual({
        'query.custm': ['Unknown parameter. Did you mean `custom`?'],
      })
  })
})

const scenario = `import createClient, { type Client } from 'openapi-fetch'
import type { paths } from './schema.d.ts'

export async function run(baseUrl: string, token: string) {
  const client = createClient<paths>({ baseUrl, headers: { accept: 'application/json', authorization: \`Bearer \${token}\` } })
  const body = { name: 'Acme', custom_attributes: { industry: 2 as const, revenue: 12.5 } }
  const made = await client.POST('/api/admin/contacts/organizations', { body })
  const query = { custom_attributes: { industry: '2' }, sort: ['-custom_attributes.revenue' as const], include: ['custom_labels' as const] }
  const listed = await client.GET('/api/admin/contacts/organizations', { params: { query } })
  const industry: 1 | 2 | null | undefined = made.data?.data.custom_attributes.industry
  return { industry, labels: listed.data?.data.map((each) => each.custom_labels), error: made.error ?? listed.error }
}

export function mistakes(client: Client<paths>) {
  const path = '/api/admin/contacts/organizations'
  // @ts-expect-error an option there is not
  client.POST(path, { body: { name: 'Acme', custom_attributes: { industry: 9 } } })
  // @ts-expect-error an attribute there is not
  client.POST(path, { body: { name: 'Acme', custom_attributes: { industry: 1, industri: 1 } } })
  // @ts-expect-error a required attribute is missing
  client.POST(path, { body: { name: 'Acme', custom_attributes: {} } })
  // @ts-expect-error what is required cannot be cleared
  client.PUT('/api/admin/contacts/organizations/{id}', { params: { path: { id: 1 } }, body: { custom_attributes: { industry: null } } })
  // @ts-expect-error a sort key there is not
  client.GET(path, { params: { query: { sort: ['custom_attributes.industri'] } } })
  client.PUT('/api/admin/contacts/organizations/{id}', { params: { path: { id: 1 } }, body: { custom_attributes: { revenue: null } } })
}
`

describe('a client generated from the running server', { timeout: 60_000 }, () => {
  let complaints: string[]
  beforeAll(async () => {
    mkdirSync(cache, { recursive: true })
    folder = mkdtempSync(join(cache, 'accord-attributes-'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    const served = JSON.parse((await call('GET', '/openapi.json')).text)
    writeFileSync(join(folder, 'schema.d.ts'), astToString(await openapiTS(served)))
    const path = join(folder, 'scenario.ts')
    writeFileSync(path, scenario)
    const program = ts.createProgram([path], {
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: true,
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
      types: [],
    })
    complaints = ts.getPreEmitDiagnostics(program).map(({ messageText, start: at = 0, file }) => {
      const line = file?.getLineAndCharacterOfPosition(at).line ?? 0
      return `line ${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
    })
    program.emit()
    // The compiler blocked the event loop of the server, which refuses requests until it measures
    // the delay again.
    await until(async () => (await call('GET', '/tags')).status === 200)
  })

  it('compiles with a right option and not with a wrong one', () => {
    expect(complaints).toEqual([])
  })

  it('writes and reads what it was generated for', async () => {
    const { run } = await import(pathToFileURL(join(folder, 'scenario.js')).href)
    expect(await run(server.url, token)).toEqual({
      industry: options[1],
      labels: [{ industry: 'Logistics' }],
      error: undefined,
    })
  })
})
