// Secrets of webhooks: values of headers and query parameters are write-only, and are sent only to
// the address that they were set for.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { createEncryption } from '../../src/kernel/auth/encryption.ts'
import { escapeHtml } from '../../src/kernel/values/format.ts'
import { redact } from '../../src/resources/webhooks/send.ts'
import { given } from '../support/given.ts'
import { useReceiver } from '../support/outside.ts'
import { startReceiver } from '../support/receiver.ts'
import { useServer } from '../support/using.ts'

const path = '/settings/webhooks'
const mask = '••••••'
const hidden = { header: 'Bearer hush-header-value', param: 'hush parameter & value', query: 'hush-query-value' }

const receiver = useReceiver()
const server = useServer({ config: { webhookAllowHttp: true, webhookAllowCidrs: ['127.0.0.0/8'] } })

const body = () => ({
  name: 'Warehouse',
  url: `${receiver.url}/hooks?code=${hidden.query}`,
  headers: [
    { key: 'Authorization', value: hidden.header },
    { key: 'X-Empty', value: null },
  ],
  query_params: [{ key: 'key', value: hidden.param }],
  events: ['lead.*.after'],
})
const shown = {
  headers: [
    { key: 'Authorization', value: mask },
    { key: 'X-Empty', value: '' },
  ],
  query_params: [
    { key: 'code', value: mask },
    { key: 'key', value: mask },
  ],
}
const create = async (changes: object = {}) => {
  const { status, body: reply, text } = await server.admin.post(path, { ...body(), ...changes })
  expect(status, text).toBe(201)
  return reply.data
}
const put = (id: number, changes: object) => server.admin.put(`${path}/${id}`, changes)
const errorsOf = async (id: number, changes: object) => {
  const reply = await put(id, changes)
  return [reply.status, Object.keys(reply.body.errors ?? {})]
}
/** Sends a test delivery and returns the values that the receiver got. */
async function sentBy(id: number) {
  receiver.received.length = 0
  await server.admin.post(`${path}/${id}/test`)
  const [request] = receiver.received
  return { authorization: request?.headers.authorization, query: request?.query }
}
const sent = { authorization: hidden.header, query: { code: hidden.query, key: hidden.param } }

describe('values of headers and query parameters', () => {
  it('are sent, and are in no reply, event, row or listener', async () => {
    const key = { headers: { 'idempotency-key': 'once' } }
    const made = await server.admin.post(path, body(), key)
    expect(made.body.data).toMatchObject({ url: `${receiver.url}/hooks`, ...shown })
    const { id } = made.body.data
    expect(await sentBy(id)).toEqual(sent)

    await given(server.admin).lead()
    await server.work()
    await put(id, { description: 'Changed' })
    const dry = await server.admin.put(
      `${path}/${id}`,
      { headers: [{ key: 'A', value: hidden.header }] },
      { headers: { 'accord-dry-run': 'true' } },
    )
    const replies = [
      made,
      dry,
      await server.admin.post(path, body(), key),
      await server.admin.get(path),
      await server.admin.get(`${path}?q=hush`),
      await server.admin.get(`${path}/${id}`),
      await server.admin.get(`${path}/${id}/history`),
      await server.admin.get(`${path}/${id}/deliveries`),
      await server.admin.get('/events?entity_type=webhooks'),
      await server.admin.post(`${path}/${id}/rotate-secret`),
    ]
    for (const { status, text } of replies) expect(status, text).toBeLessThan(300)
    const tables = await server.store.db.introspection.getTables()
    const rows = await Promise.all(
      tables.map(async ({ name }) => (await sql`select * from ${sql.table(name)}`.execute(server.store.db)).rows),
    )
    const all = JSON.stringify([replies.map(({ text }) => text), server.seen, rows])
    expect(all).toContain('Authorization')
    expect(['hush-header', 'hush parameter', 'hush-query'].filter((text) => all.includes(text))).toEqual([])
  })

  it('stay when the reply is sent back, when the value is left out, and when other keys change', async () => {
    const { id } = await create()
    const { data } = (await server.admin.get(`${path}/${id}`)).body
    const same = await put(id, data)
    expect([same.status, same.body.data.version], same.text).toEqual([200, 1])
    await put(id, { headers: [{ key: 'authorization' }], description: 'x' })
    expect((await put(id, { query_params: shown.query_params })).body.data.query_params).toEqual(shown.query_params)
    expect(await sentBy(id)).toEqual(sent)
  })

  it('change when they are sent, which the log names; the same value again is not a change', async () => {
    const { id } = await create()
    server.events()
    const headers = [{ key: 'Authorization', value: 'Bearer another' }]
    expect((await put(id, { headers, description: 'x' })).body.data.version).toBe(2)
    expect(server.seen.at(-1)?.changed?.sort()).toEqual(['description', 'headers'])
    expect((await put(id, { headers })).body.data.version).toBe(2)
    expect((await put(id, { headers: [{ ...headers[0], value: 'Bearer third' }] })).body.data.version).toBe(3)
    expect(server.seen.at(-1)?.changed).toEqual(['headers'])
    expect((await sentBy(id)).authorization).toBe('Bearer third')
    await put(id, { headers: [{ key: 'Authorization', value: null }] })
    expect((await put(id, { headers: [] })).body.data.headers).toEqual([])
    expect((await sentBy(id)).authorization).toBeUndefined()
  })

  it('cannot be kept where none is stored, or where it is not clear which', async () => {
    const masked = [{ key: 'X-New', value: mask }]
    const refused = await server.admin.post(path, { ...body(), headers: masked })
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['headers.0.value']])
    const { id } = await create({
      headers: [
        { key: 'X-Tag', value: 'one of two' },
        { key: 'X-Tag', value: 'two of two' },
      ],
    })
    expect(await errorsOf(id, { headers: masked })).toEqual([422, ['headers.0.value']])
    expect(await errorsOf(id, { headers: [{ key: 'x-tag', value: mask }] })).toEqual([422, ['headers.0.value']])
  })

  it('are not sent to another address than the one they were given for', async () => {
    const { id } = await create()
    const other = await startReceiver()
    try {
      const url = `${other.url}/hooks`
      const empty = { headers: [], query_params: [] }
      for (const address of [url, `${receiver.url}/elsewhere`]) {
        const moved = { url: address }
        expect(await errorsOf(id, moved)).toEqual([422, ['query_params', 'headers']])
        expect(await errorsOf(id, { ...moved, ...shown })).toEqual([
          422,
          ['query_params.0.value', 'query_params.1.value', 'headers.0.value'],
        ])
        expect(await errorsOf(id, { ...moved, ...empty, headers: [{ key: 'Authorization' }] })).toEqual([
          422,
          ['headers.0.value'],
        ])
        // A parameter in the address does not replace the other parameters.
        expect(await errorsOf(id, { url: `${address}?code=x`, headers: [] })).toEqual([422, ['query_params']])
      }
      await server.admin.post(`${path}/${id}/test`)
      expect(other.received).toEqual([])
      expect((await put(id, { url, ...empty, headers: body().headers })).status).toBe(200)
      await server.admin.post(`${path}/${id}/test`)
      expect(other.received[0]?.headers.authorization).toBe(hidden.header)
    } finally {
      await other.close()
    }
  })

  it('in an address move to the parameters, whatever placeholders hold', async () => {
    const { id } = await create({
      query_params: [],
      url: `${receiver.url}/a?x=1&y=a%20b+c&z=i{%app.name%}#part`,
    })
    const { data } = (await server.admin.get(`${path}/${id}`)).body
    expect(data.url).toBe(`${receiver.url}/a#part`)
    expect(data.query_params.map(({ key }: { key: string }) => key)).toEqual(['x', 'y', 'z'])
    expect((await sentBy(id)).query).toEqual({ x: '1', y: 'a b c', z: 'iAccord CRM' })
    // An address that differs only in its query counts as the same address.
    const url = `${receiver.url}/a?y=new#part`
    expect((await put(id, { url })).body.data.query_params.map(({ key }: { key: string }) => key)).toEqual([
      'y',
      'x',
      'z',
    ])
    expect((await sentBy(id)).query).toMatchObject({ x: '1', y: 'new' })
    expect(await errorsOf(id, { url: `${receiver.url}/a?=1#part` })).toEqual([422, ['url']])
    const many = Array.from({ length: 30 }, (_, index) => `k${index}=1`).join('&')
    expect(await errorsOf(id, { url: `${receiver.url}/a?${many}#part` })).toEqual([422, ['url']])
  })

  it('are taken out of answers that repeat them', async () => {
    const { id } = await create()
    const text = `${hidden.header} ${encodeURIComponent(hidden.param)} ${hidden.query} hush-header-value`
    receiver.behave({ mode: 'say', text })
    await given(server.admin).lead()
    await server.work()
    const [delivery] = (await server.admin.get(`${path}/${id}/deliveries`)).body.data
    expect(delivery.attempts[0].response_excerpt).toBe('… … … …')
    expect(redact('it begins: hush-he', ['hush-header', 'ab'])).toBe('it begins: …')
    expect(redact('cab', ['ab'])).toBe('cab')
  })

  it('are taken out of answers that repeat them as JSON, as HTML or decoded', async () => {
    const name = 'hush:user/pass'
    const values = {
      'X-Key': 'hush"quoted"<b>&/slash',
      'X-Token': 'Bearer hush/base64+value==',
      Authorization: `Basic ${Buffer.from(name).toString('base64')}`,
    }
    const headers = Object.entries(values).map(([key, value]) => ({ key, value }))
    const { id } = await create({ headers, query_params: [{ key: 'k', value: 'hush param/"x"' }] })
    const json = JSON.stringify([values, 'hush param/"x"'])
    const ways = [json, json.replaceAll('/', '\\/'), escapeHtml(json), escapeHtml(values['X-Key']), name, 'user/pass']
    for (const text of [...ways, 'k=hush+param%2F%22x%22']) {
      receiver.behave({ mode: 'say', text })
      const { attempt } = (await server.admin.post(`${path}/${id}/test`)).body.data
      expect(attempt.response_excerpt).toContain('…')
      expect(attempt.response_excerpt).not.toMatch(/hush|quoted|base64|slash|user|pass|param/)
    }
  })

  it('that another ACCORD_SECRET sealed are not sent; the test says so, and sending them again mends it', async () => {
    const { id } = await create()
    const stranger = createEncryption('another secret of at least thirty-two characters')
    const headers_sealed = JSON.stringify([{ key: 'Authorization', sealed: stranger.encrypt('x') }])
    await server.store.db.updateTable('webhooks').set({ headers_sealed }).execute()
    expect((await server.admin.post(`${path}/${id}/test`)).body.data.attempt.error).toBe(
      'The value of Authorization cannot be read: it was stored with another ACCORD_SECRET. Send it again.',
    )
    expect((await server.admin.get(`${path}/${id}`)).body.data.headers).toEqual([shown.headers[0]])
    expect((await put(id, { headers: body().headers })).status).toBe(200)
    expect(await sentBy(id)).toEqual(sent)
  })
})
