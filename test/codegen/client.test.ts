// The client package against a real server, and the strict compilation of its packed form.

import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
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
import { issueToken } from '../../src/kernel/auth/tokens.ts'
import { signatureHeaders } from '../../src/resources/webhooks/signature.ts'
import { start } from '../support/app.ts'
import { type Listening, listeningServer } from '../support/listening.ts'

const run = promisify(execFile)

let server: Listening
let crm: AccordClient
let token: string
beforeAll(async () => {
  server = await listeningServer()
  const wanted = { userId: 1, name: 't', kind: 'personal', expiresAt: null } as const
  token = (await issueToken(server.store.db, { ...wanted, abilities: ['*'], allowedIps: [] }, start)).text
  crm = createAccordClient({ url: server.url, token })
})
afterAll(() => server.close())

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
  it('compiles strictly and runs as an integrator uses it', async () => {
    // Inside the repository, so that the package finds its dependencies.
    const folder = mkdtempSync('codegen/client/.packed-')
    try {
      const packed = join(folder, 'client')
      await run(process.execPath, ['codegen/client/pack.mjs', packed])
      expect(readdirSync(packed)).toEqual(expect.arrayContaining(['index.js', 'index.d.ts', 'schema.d.ts', 'LICENSE']))
      const program = join(folder, 'program.mts')
      writeFileSync(
        program,
        `import { createAccordClient, listAll, unwrap } from "${'./client/index.js'}"
        const crm = createAccordClient({ url: process.argv[2] ?? '', token: process.argv[3] ?? '' })
        const { data } = await unwrap(crm.POST('/api/admin/tags', { body: { name: 'From the package' } }))
        const names: string[] = []
        for await (const tag of listAll(crm, '/api/admin/tags')) names.push(tag.name)
        // @ts-expect-error a tag has no title
        data.title
        console.log(names.includes(data.name))`,
      )
      const options = ['--ignoreConfig', '--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node']
      await run(process.execPath, ['node_modules/typescript-native/bin/tsc', ...options, program])
      const { stdout } = await run(process.execPath, [program.replace(/mts$/, 'mjs'), server.url, token])
      expect(stdout).toBe('true\n')
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
