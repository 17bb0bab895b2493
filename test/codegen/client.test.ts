// The client package against a real server, and the strict compilation of its packed form.

import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { resolve as resolvePath } from 'node:path'
import { inspect, promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type AccordClient,
  AccordProblem,
  createAccordClient,
  listAll,
  subscribeToEvents,
  unwrap,
  updateIfUnchanged,
  verifyWebhook,
  WebhookVerificationError,
} from '../../codegen/client/index.ts'
import { listOperations, resolve } from '../../codegen/read.ts'
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { signatureHeaders } from '../../src/resources/webhooks/signature.ts'
import { start } from '../support/app.ts'
import { codeBlocks } from '../support/code-blocks.ts'
import { listeningServer } from '../support/listening.ts'
import { type PackedClient, packClient } from '../support/packed-client.ts'
import { document, follow, type SchemaObject } from '../support/schema.ts'
import { useOne } from '../support/using.ts'

const run = promisify(execFile)

let crm: AccordClient
let token: string
const server = useOne(listeningServer)
beforeAll(async () => {
  const wanted = { userId: 1, name: 't', kind: 'personal', expiresAt: null } as const
  token = (await issueToken(server.store.db, { ...wanted, abilities: ['*'], allowedIps: [] }, start)).text
  crm = createAccordClient({ url: server.url, token })
})

const reply = (status: number, headers: Record<string, string> = {}): Response =>
  new Response('{}', { status, headers: { 'content-type': 'application/json', ...headers } })

describe('a call', () => {
  it('returns the reply, and throws the problem with its code and fields', async () => {
    const { data } = await unwrap(crm.POST('/api/admin/tags', { body: { name: 'Hot' } }))
    expect(data.name).toBe('Hot')
    const again = unwrap(crm.POST('/api/admin/tags', { body: { name: 'Hot' } }))
    await expect(again).rejects.toMatchObject({ name: 'AccordProblem', status: 409, code: 'unique_violation' })
    const wrong = unwrap(crm.POST('/api/admin/tags', { body: { name: '' } }))
    const problem = (await wrong.catch((cause: unknown) => cause)) as AccordProblem
    expect(problem).toBeInstanceOf(AccordProblem)
    expect(problem.response.status).toBe(problem.status)
    expect(inspect(problem)).not.toContain('Response')
    expect(problem.errors.name).toEqual(['The field is required.'])
    expect(problem.problem.request_id).toBe(problem.response.headers.get('x-request-id'))
  })

  it('names the wrong fields in the message of the exception, and keeps that of the server', async () => {
    const messageOf = async (body: { title: string; lead_value: number }): Promise<string[]> => {
      const cause = await unwrap(crm.POST('/api/admin/leads', { body })).catch((cause: unknown) => cause)
      const { message, problem } = cause as AccordProblem
      return [message, problem.message ?? '']
    }
    expect(await messageOf({ title: '', lead_value: 1 })).toEqual([
      'title: The field is required.',
      'The field is required.',
    ])
    const unknown = { a: 1, b: 2, c: 3, title: '', lead_value: 1 }
    const [message, sent] = await messageOf(unknown)
    expect(message).toMatch(/^(\w+: [A-Z].*\. ){3}\(and 1 more\)$/)
    expect(sent).toMatch(/\(and 3 more errors\)$/)
    const missing = unwrap(crm.GET('/api/admin/leads/{id}', { params: { path: { id: 999 } } }))
    await expect(missing).rejects.toMatchObject({ message: 'No lead has id 999.' })
  })

  it('sends a body with a file as a form', async () => {
    const file = new File(['name,emails\nAda Lovelace,ada@example.com\n'], 'persons.csv')
    const { data: stored } = await unwrap(crm.POST('/api/admin/files', { body: { file } }))
    expect(stored).toMatchObject({ name: 'persons.csv', size: file.size })
    const settings = { type: 'persons', action: 'append', validation_strategy: 'skip-errors' } as const
    const body = { ...settings, mapping: { name: 'name', emails: 'emails' }, allowed_errors: 2 }
    const path = '/api/admin/settings/data-transfer/imports'
    const { data } = await unwrap(crm.POST(path, { body: { ...body, process_in_queue: false, file } }))
    expect(data).toMatchObject({ ...body, process_in_queue: false, file: { name: 'persons.csv' } })
    // A Blob has no name.
    const unnamed = await unwrap(crm.POST(path, { body: { ...body, file: new Blob([await file.text()]) } }))
    expect(unnamed.data).toMatchObject(body)
    const { data: activity } = await unwrap(
      crm.POST('/api/admin/activities', { body: { type: 'file', title: 'Offer', location: null, file, lead_ids: [] } }),
    )
    expect(activity).toMatchObject({ location: null, leads: [], files: [{ name: 'persons.csv' }] })
    const attachments = [new File(['a'], 'a.txt'), new File(['b'], 'b.txt')]
    const { data: email } = await unwrap(
      crm.POST('/api/admin/emails', {
        body: { to: ['ada@example.com', 'b@example.com'], is_draft: true, attachments },
      }),
    )
    expect([email.to, email.attachments.map(({ name }) => name)]).toEqual([
      ['ada@example.com', 'b@example.com'],
      ['a.txt', 'b.txt'],
    ])
  })

  it('reads a reply that is not JSON', async () => {
    const headers = { accept: 'text/csv' }
    const csv = await unwrap(crm.GET('/api/admin/leads/export', { headers, parseAs: 'text' }))
    expect(csv).toMatch(/^\uFEFF?id,title,/)
    const refused = await createAccordClient({ url: server.url }).GET('/api/admin/leads/export', {
      headers,
      parseAs: 'text',
    })
    expect(refused.error?.code).toBe('unauthenticated')
  })

  it('returns nothing for a DELETE, and explains a reply without a problem document', async () => {
    const { data } = await unwrap(crm.POST('/api/admin/tags', { body: { name: 'Short-lived' } }))
    await unwrap(crm.DELETE('/api/admin/tags/{id}', { params: { path: { id: data.id } } }))
    const broken = createAccordClient({ url: 'http://a', fetch: async () => new Response('<html>', { status: 502 }) })
    await expect(unwrap(broken.GET('/api/admin/tags'))).rejects.toMatchObject({
      message: 'The server answered 502.',
      code: undefined,
    })
  })

  it('asks for a token before each request', async () => {
    const tokens = ['wrong', token]
    const asking = createAccordClient({ url: server.url, token: async () => tokens.shift() ?? '' })
    expect((await asking.GET('/api/admin/account')).response.status).toBe(401)
    expect((await asking.GET('/api/admin/account')).response.status).toBe(200)
  })
})

describe('a newer server', () => {
  const answering = (body: object, status = 200): AccordClient =>
    createAccordClient({
      url: 'http://a',
      fetch: async () =>
        new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } }),
    })

  it('may send keys, values of enums, problem codes and events that the client does not know', async () => {
    const lead = { id: 7, status: 9, mood: 'new key' }
    const page = { data: [lead], links: {}, meta: { next_cursor: null, mood: 1 } }
    const found: unknown[] = []
    for await (const each of listAll(answering(page), '/api/admin/leads')) found.push(each)
    expect(found).toEqual([lead])
    const problem = { status: 418, code: 'too_hot', message: 'Wait.', errors: { mood: ['No.'] }, mood: 1 }
    await expect(unwrap(answering(problem, 418).GET('/api/admin/tags'))).rejects.toMatchObject({
      status: 418,
      code: 'too_hot',
      errors: { mood: ['No.'] },
    })
    const secret = `whsec_${Buffer.from('a secret of a webhook for tests').toString('base64')}`
    const body = JSON.stringify({ id: 'evt_1', type: 'mood.change.after', data: { mood: 1 } })
    const headers = signatureHeaders({ id: 'msg_1', at: new Date(), body, secrets: [secret] })
    expect(verifyWebhook({ body, headers }, secret)).toEqual(JSON.parse(body))
  })
})

describe('a retry', () => {
  const trying = (replies: (Response | Error)[]) => {
    const sent: Request[] = []
    const client = createAccordClient({
      url: 'http://a',
      fetch: async (request) => {
        sent.push(request)
        const next = replies.shift() ?? reply(200)
        if (next instanceof Error) throw next
        return next
      },
    })
    return { client, sent }
  }

  it('follows 429 and 503 after the time that they name, with the same key and body', async () => {
    const { client, sent } = trying([reply(429, { 'retry-after': '0' }), reply(503, { 'retry-after': '0' })])
    const { response } = await client.POST('/api/admin/tags', { body: { name: 'Hot' } })
    expect(response.status).toBe(200)
    expect(new Set(sent.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(1)
    expect(await Promise.all(sent.map((request) => request.text()))).toEqual(Array(3).fill('{"name":"Hot"}'))
  })

  it('ends after three, with the last reply', async () => {
    const { client, sent } = trying(Array.from({ length: 9 }, () => reply(503, { 'retry-after': '0' })))
    expect((await client.GET('/api/admin/tags')).response.status).toBe(503)
    expect(sent).toHaveLength(4)
  })

  it('follows a lost connection unless the request is a DELETE', async () => {
    const lost = (): Error => new TypeError('fetch failed')
    const { client, sent } = trying([lost()])
    expect((await client.POST('/api/admin/tags', { body: { name: 'a' } })).response.status).toBe(200)
    expect(sent).toHaveLength(2)
    const deleting = trying([lost()])
    const call = deleting.client.DELETE('/api/admin/tags/{id}', { params: { path: { id: 1 } } })
    await expect(call).rejects.toThrow('fetch failed')
    expect(deleting.sent).toHaveLength(1)
  })

  it('does not follow any other error, and ends with its signal', async () => {
    const { client, sent } = trying([reply(422)])
    expect((await client.GET('/api/admin/tags')).response.status).toBe(422)
    expect(sent).toHaveLength(1)
    const waiting = trying([reply(503, { 'retry-after': '25' })])
    const call = waiting.client.GET('/api/admin/tags', { signal: AbortSignal.timeout(50) })
    await expect(call).rejects.toThrow(/timeout|abort/i)
    expect(waiting.sent).toHaveLength(1)
  })
})

describe('listAll', () => {
  it('yields every record once, whatever the size of a page', async () => {
    for (let number = 0; number < 7; number++)
      await unwrap(crm.POST('/api/admin/sources', { body: { name: `Source ${number}` } }))
    const ids: number[] = []
    for await (const source of listAll(crm, '/api/admin/sources', { per_page: 3, sort: ['-name'] })) ids.push(source.id)
    const { meta } = await unwrap(crm.GET('/api/admin/sources'))
    expect(ids.length).toBe(meta.total)
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('has every key of a selection as one that may be missing', async () => {
    for await (const source of listAll(crm, '/api/admin/sources', { fields: ['name'] })) {
      // @ts-expect-error A key that `fields` does not name is missing.
      const id: number = source.id
      expect([id, typeof source.name]).toEqual([undefined, 'string'])
    }
  })

  it('throws the problem of a page', async () => {
    const stranger = createAccordClient({ url: server.url })
    await expect(listAll(stranger, '/api/admin/leads').next()).rejects.toMatchObject({ code: 'unauthenticated' })
  })
})

describe('updateIfUnchanged', () => {
  it('begins again when another client was faster, and loses no change', async () => {
    const body = { title: 'Shared', lead_value: 1 }
    const { data } = await unwrap(crm.POST('/api/admin/leads', { body }))
    const params = { path: { id: data.id } }
    let tries = 0
    const saved = await updateIfUnchanged(
      () => crm.GET('/api/admin/leads/{id}', { params }),
      async ({ data }, etag) => {
        if (tries++ === 0) await crm.PUT('/api/admin/leads/{id}', { params, body: { lead_value: 10 } })
        return crm.PUT('/api/admin/leads/{id}', {
          params: { ...params, header: { 'If-Match': etag } },
          body: { lead_value: (data.lead_value ?? 0) + 1 },
        })
      },
    )
    expect([tries, saved.data.lead_value]).toEqual([2, 11])
  })
})

describe('subscribeToEvents', () => {
  it('yields each event once, also those that occur while the connection is lost', async () => {
    // The test cuts the connections of this proxy.
    const { port: target } = server.app.http.server.address() as AddressInfo
    const sockets = new Set<Socket>()
    const proxy = createServer((socket) => {
      const other = connect(target, '127.0.0.1')
      sockets.add(socket)
      socket.pipe(other).pipe(socket)
      socket.on('error', () => other.destroy()).on('close', () => other.destroy())
      other.on('error', () => socket.destroy())
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    const { port } = proxy.address() as AddressInfo
    const following = createAccordClient({ url: `http://127.0.0.1:${port}`, token })
    const add = (name: string) => unwrap(crm.POST('/api/admin/types', { body: { name } }))
    const end = new AbortController()
    const { data: newest } = await unwrap(crm.GET('/api/admin/events', { params: { query: { per_page: 1 } } }))
    const after = newest.at(-1)?.id ?? 0
    const filters = { name: ['settings.type.create.after'] }
    const names: unknown[] = []
    try {
      await add('first')
      for await (const { after: row } of subscribeToEvents(following, {
        after,
        filters,
        signal: end.signal,
        reconnectMs: 10,
      })) {
        names.push((row as { name: string }).name)
        if (names.length === 1) {
          for (const socket of sockets) socket.destroy()
          await add('second')
        }
        if (names.length === 2) await add('third')
        if (names.length === 3) end.abort()
      }
    } finally {
      proxy.close()
      for (const socket of sockets) socket.destroy()
    }
    expect(names).toEqual(['first', 'second', 'third'])
  })

  it('yields nothing after its signal aborts, even if more events have arrived', async () => {
    for (const name of ['one', 'two', 'three']) await unwrap(crm.POST('/api/admin/types', { body: { name } }))
    const end = new AbortController()
    const ids: number[] = []
    for await (const { id } of subscribeToEvents(crm, { after: 0, signal: end.signal })) {
      ids.push(id)
      // The other events arrive meanwhile.
      await new Promise((resolve) => setTimeout(resolve, 100))
      end.abort()
    }
    expect(ids).toHaveLength(1)
  })

  it('ends its pause before a reconnect when its signal aborts', async () => {
    const end = new AbortController()
    const lost = createAccordClient({
      url: 'http://a',
      fetch: async () => {
        setTimeout(() => end.abort(), 10)
        throw new TypeError('fetch failed')
      },
      retries: 0,
    })
    const events = subscribeToEvents(lost, { signal: end.signal, reconnectMs: 60_000 })
    expect(await events.next()).toEqual({ done: true, value: undefined })
  })

  it('throws when the server refuses the stream', async () => {
    const stranger = createAccordClient({ url: server.url })
    await expect(subscribeToEvents(stranger).next()).rejects.toMatchObject({ code: 'unauthenticated' })
  })
})

describe('verifyWebhook', () => {
  const secret = `whsec_${Buffer.from('a secret of a webhook for tests').toString('base64')}`
  const body = JSON.stringify({ id: 'evt_1', type: 'lead.create.after' })

  it('accepts what the server signs, and refuses any change and old deliveries', () => {
    const headers = signatureHeaders({ id: 'msg_1', at: new Date(), body, secrets: [secret] })
    expect(verifyWebhook({ body, headers }, secret)).toEqual(JSON.parse(body))
    expect(verifyWebhook({ body, headers: new Headers(headers) }, secret)).toEqual(JSON.parse(body))
    const old = signatureHeaders({ id: 'msg_1', at: new Date(Date.now() - 600_000), body, secrets: [secret] })
    for (const delivery of [
      { body: `${body} `, headers },
      { body, headers: {} },
      { body, headers: old },
    ])
      expect(() => verifyWebhook(delivery, secret)).toThrow(WebhookVerificationError)
  })
})

describe('the package', { timeout: 120_000 }, () => {
  const own = './accord.js'
  let client: PackedClient
  beforeAll(async () => {
    client = await packClient()
    const body = { entity_type: 'leads', code: 'region', name: 'Region', type: 'text' } as const
    await unwrap(crm.POST('/api/admin/settings/attributes', { body }))
    const cli = resolvePath('node_modules/openapi-typescript/bin/cli.js')
    const contract = `${server.url}/api/admin/openapi.json`
    await run(process.execPath, [cli, contract, '-o', 'accord.d.ts'], { cwd: client.folder })
  })
  afterAll(() => client.remove())

  it('compiles strictly and runs as an integrator uses it', async () => {
    const files = ['index.js', 'index.d.ts', 'schema.d.ts', 'LICENSE']
    expect(readdirSync(client.packed)).toEqual(expect.arrayContaining(files))
    const program = `import { createAccordClient, listAll, unwrap } from '@accord-crm/client'
      const crm = createAccordClient({ url: process.env.URL ?? '', token: process.env.TOKEN ?? '' })
      const { data } = await unwrap(crm.POST('/api/admin/tags', { body: { name: 'From the package' } }))
      const names: string[] = []
      for await (const tag of listAll(crm, '/api/admin/tags')) names.push(tag.name)
      // @ts-expect-error a tag has no title
      data.title
      console.log(names.includes(data.name))`
    expect(await client.compile('program', program)).toBe('')
    expect(await client.run('program', { URL: server.url, TOKEN: token })).toBe('true\n')
  })

  it('types replies and problems', async () => {
    const program = `import { type AccordClient, type components } from '@accord-crm/client'
      type Schemas = components['schemas']
      export async function read(crm: AccordClient) {
        const params = { path: { id: 7 } }
        const calls = [
          await crm.GET('/api/admin/leads/{id}', { params }),
          await crm.POST('/api/admin/leads', { body: { title: 'A', lead_value: 1 } }),
          await crm.PUT('/api/admin/leads/{id}', { params, body: { title: 'B' } }),
        ]
        for (const { data, error } of calls) {
          if (error) {
            const problem: Schemas['Problem'] = error
            const names: string[] = Object.keys(error.errors ?? {})
            if (error.code === 'validation_failed') console.log(problem, error.status, names)
            // @ts-expect-error not a problem code
            if (error.code === 'not_valid') console.log()
          } else {
            const lead: Schemas['Lead'] = data.data
            console.log(lead)
            // @ts-expect-error a lead has no color
            data.data.color
          }
        }
        const removed = await crm.DELETE('/api/admin/leads/{id}', { params })
        if (removed.error) console.log(removed.error.code)
        // The reply of a report is JSON or a chart.
        const report = await crm.GET('/api/admin/reports/overview')
        if (report.data) { const whole: Schemas['OverviewReport'] = report.data; console.log(whole) }
        const headers = { accept: 'image/svg+xml' }
        const chart: string | undefined = (await crm.GET('/api/admin/reports/overview', { parseAs: 'text', headers })).data
        const sheet = await crm.GET('/api/admin/leads/export', { parseAs: 'text' })
        const csv: string | undefined = sheet.data
        const bytes: Blob | undefined = (await crm.GET('/api/admin/leads/export', { parseAs: 'blob' })).data
        const untold: string | undefined = (await crm.GET('/api/admin/leads/export')).data
        return [chart, csv, bytes, untold, sheet.error?.code]
      }`
    expect(await client.compile('replies', program)).toBe('')
  })

  it('types files of forms', async () => {
    const program = `import { type AccordClient } from '@accord-crm/client'
      export async function send(crm: AccordClient, file: File) {
        const settings = { type: 'persons', action: 'append', validation_strategy: 'skip-errors' } as const
        await crm.POST('/api/admin/settings/data-transfer/imports', { body: { ...settings, file: new Blob(['name']) } })
        await crm.POST('/api/admin/settings/data-transfer/imports', { body: { ...settings, file: { id: 6 } } })
        await crm.POST('/api/admin/files', { body: { file } })
        await crm.POST('/api/admin/activities/{id}/files', { params: { path: { id: 1 } }, body: { file } })
        await crm.POST('/api/admin/emails', { body: { attachments: [file] } })
        // @ts-expect-error a text is not a file
        await crm.POST('/api/admin/files', { body: { file: 'name' } })
      }`
    expect(await client.compile('files', program)).toBe('')
  })

  it('types the record of a webhook event', async () => {
    const program = `import { type components, verifyWebhook, type WebhookEvent } from '@accord-crm/client'
      type Lead = components['schemas']['Lead']
      type Is<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false
      type EntityOf<Name extends WebhookEvent['type']> = WebhookEvent<Name>['data']['after']
      const facts: [Is<EntityOf<'lead.create.after'>, Lead | null>, WebhookEvent<'lead.won'>['type']] = [true, 'lead.won']
      // A link has the ids of both records, which no schema describes.
      const link: EntityOf<'leads.tag.create.after'> = { lead_id: 7, tag_id: 3 }
      const event = verifyWebhook({ body: '', headers: {} }, '')
      if (event.type === 'lead.create.after') {
        const { after: entity, entity_id, actor } = event.data
        const of: 'leads' = event.data.entity_type
        if (entity !== null) {
          const value: number = entity.lead_value
          console.log(of, value, 'lead_value' in entity, entity_id, actor.name)
          // @ts-expect-error a lead has no color
          entity.color
        }
      }
      // @ts-expect-error not an event
      if (event.type === 'lead.sung') console.log(facts, link)`
    expect(await client.compile('webhook', program)).toBe('')
  })

  it('takes the paths of an installation with custom attributes', async () => {
    const program = `import { type components, createAccordClient, listAll, subscribeToEvents, unwrap } from '@accord-crm/client'
      import type { paths } from '${own}'
      const crm = createAccordClient<paths>({ url: process.env.URL ?? '', token: process.env.TOKEN ?? '' })
      const regions: (string | null | undefined)[] = []
      const body = { title: 'A', lead_value: 1, custom_attributes: { region: 'North' } }
      const { data } = await unwrap(crm.POST('/api/admin/leads', { body }))
      regions.push(data.custom_attributes.region)
      for await (const lead of listAll(crm, '/api/admin/leads', { sort: ['-custom_attributes.region'] }))
        regions.push(lead.custom_attributes.region)
      const params = { path: { id: 0 } }
      const refused = await crm.GET('/api/admin/leads/{id}', { params })
      const problem: components['schemas']['Problem'] | undefined = refused.error
      const { data: file } = await unwrap(crm.POST('/api/admin/files', { body: { file: new Blob(['a']) } }))
      for await (const { name } of subscribeToEvents(crm, { after: 0 })) {
        console.log(JSON.stringify([regions.slice(0, 2), problem?.status, file.size, name.length > 0]))
        break
      }
      export async function mistakes() {
        // @ts-expect-error a region is a text
        await crm.POST('/api/admin/leads', { body: { title: 'A', lead_value: 1, custom_attributes: { region: 5 } } })
        // @ts-expect-error not a sort key
        for await (const _lead of listAll(crm, '/api/admin/leads', { sort: ['custom_attributes.regoin'] })) break
      }`
    expect(await client.compile('attributes', program)).toBe('')
    const printed = JSON.parse(await client.run('attributes', { URL: server.url, TOKEN: token }))
    expect(printed).toEqual([['North', 'North'], 404, 1, true])
  })

  it('has a README with samples that form one program', async () => {
    expect(await client.compile('readme', codeBlocks('codegen/client/README.md', 'ts').join('\n'))).toBe('')
  })

  it('has a Blob for every file of a form', () => {
    const isFile = ({ format, items, anyOf = [] }: SchemaObject): boolean =>
      format === 'binary' || [...anyOf, ...(items ? [items] : [])].some(isFile)
    const names = listOperations(document)
      // Mail services send this form.
      .filter(({ id }) => id !== 'receiveEmail')
      .flatMap(({ operation }) => {
        const form = resolve(document, operation.requestBody)?.content?.['multipart/form-data']?.schema
        return Object.entries(follow(form).properties ?? {}).filter(([, field]) => isFile(field))
      })
    expect([...new Set(names.map(([name]) => name))].sort()).toEqual(['attachments', 'file'])
  })
})
