// A client that common tools generate from the contract, today's and that of the last release.
// Correct programs compile with --strict and work with a real server, and incorrect ones do not
// compile.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import openapiTS, { astToString } from 'openapi-typescript'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { adminPassword, contract } from '../support/app.ts'
import { releasedContract } from '../support/contract.ts'
import { listeningServer } from '../support/listening.ts'
import { useOne } from '../support/using.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const cache = join(root, 'node_modules/.cache')

const scenario = `import createClient, { type Client } from 'openapi-fetch'
import type { components, paths } from './schema.d.ts'

function good<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error))
  return answer.data
}

export async function run(baseUrl: string, email: string, password: string) {
  const client = createClient<paths>({ baseUrl, headers: { accept: 'application/json' } })
  const login = good(await client.POST('/api/admin/login', { body: { email, password, device_name: 'client' } }))
  client.use({
    onRequest({ request }) {
      request.headers.set('authorization', \`Bearer \${login.data.token}\`)
      return request
    },
  })
  const person = good(await client.POST('/api/admin/contacts/persons', { body: { name: 'Ada Lovelace', emails: [{ value: 'ada@example.com' }] } }))
  const body = { title: '40 seats', lead_value: 4821.5, person_id: person.data.id }
  const lead = good(await client.POST('/api/admin/leads', { body }))
  const other = good(await client.POST('/api/admin/leads', { body: { title: 'Nothing', lead_value: 1 } }))
  const query = { person_id: [person.data.id], 'lead_value[gte]': 4000, sort: ['-lead_value' as const, 'title' as const], include: ['person' as const] }
  const listed = good(await client.GET('/api/admin/leads', { params: { query } }))
  const path = { id: lead.data.id }
  const moved = good(await client.PUT('/api/admin/leads/{id}/stage', { params: { path }, body: { lead_pipeline_stage_id: 5 } }))
  const deleted = good(await client.DELETE('/api/admin/leads/{id}', { params: { path } }))
  const gone = await client.GET('/api/admin/leads/{id}', { params: { path } })
  return {
    listed: listed.data.map(({ title, person }) => [title, person?.name]),
    total: listed.meta.total,
    other: other.data.id,
    stage: moved.data.stage.name,
    status: moved.data.status,
    deleted: deleted.message,
    gone: [gone.response.status, codeOf(gone)],
  }
}

// Every refusal is a problem document, whose code can be read whenever there is an error.
function codeOf(answer: { error?: components['schemas']['Problem'] }) {
  return answer.error?.code
}

export async function refused(client: Client<paths>) {
  const { data, error } = await client.POST('/api/admin/leads', { body: { title: '40 seats', lead_value: 1 } })
  if (error) {
    const fields: string[] = Object.keys(error.errors ?? {})
    if (error.code === 'validation_failed') return fields.join()
    // @ts-expect-error a code there is not
    if (error.code === 'not_valid') return error.detail
    return error.message
  }
  return data.data.title
}

export function mistakes(client: Client<paths>) {
  // @ts-expect-error a misspelt key
  client.POST('/api/admin/leads', { body: { titel: '40 seats', lead_value: 1 } })
  // @ts-expect-error a required key is missing
  client.POST('/api/admin/leads', { body: { lead_value: 1 } })
  // @ts-expect-error a value of the wrong type
  client.POST('/api/admin/leads', { body: { title: '40 seats', lead_value: 'much' } })
  // @ts-expect-error a null where there can be none
  client.PUT('/api/admin/leads/{id}', { params: { path: { id: 1 } }, body: { title: null } })
  // @ts-expect-error a parameter the list does not have
  client.GET('/api/admin/leads', { params: { query: { lead_valu: 1 } } })
  // @ts-expect-error a sort key the list does not have
  client.GET('/api/admin/leads', { params: { query: { sort: ['color'] } } })
  // @ts-expect-error a path there is not
  client.GET('/api/admin/leeds')
  // @ts-expect-error a method the path does not know
  client.DELETE('/api/admin/leads')
}
`

describe.each([
  ['today', () => contract],
  ['with the last release', releasedContract],
])('a client that openapi-typescript and openapi-fetch generated %s', (_when, read) => {
  let folder: string
  let complaints: string[]

  beforeAll(async () => {
    mkdirSync(cache, { recursive: true })
    folder = mkdtempSync(join(cache, 'accord-client-'))
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    // The contract as the server sends it, or sent it.
    writeFileSync(join(folder, 'schema.d.ts'), astToString(await openapiTS(JSON.stringify(read()))))
    const file = join(folder, 'scenario.ts')
    writeFileSync(file, scenario)
    const program = ts.createProgram([file], {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: true,
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
      types: [],
    })
    complaints = ts.getPreEmitDiagnostics(program).map(({ messageText, start, file }) => {
      const line = file?.getLineAndCharacterOfPosition(start ?? 0).line ?? 0
      return `line ${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
    })
    program.emit()
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  // Started after the compiler, which blocks the event loop, so that the server sheds no load.
  const server = useOne(() => listeningServer({ adminPassword }))

  it('compiles under --strict where it is right, and nowhere else', () => {
    expect(complaints).toEqual([])
  })

  it('signs in, creates a person and a lead, finds, moves and deletes it', async () => {
    const { run } = (await import(pathToFileURL(join(folder, 'scenario.js')).href)) as {
      run: (url: string, email: string, password: string) => Promise<Record<string, unknown>>
    }
    expect(await run(server.url, 'admin@example.com', adminPassword)).toMatchObject({
      listed: [['40 seats', 'Ada Lovelace']],
      total: 1,
      stage: 'Won',
      status: 2,
      deleted: 'Lead deleted.',
      gone: [404, 'not_found'],
    })
  })
})
