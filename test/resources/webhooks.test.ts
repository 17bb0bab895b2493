// Rules of webhooks as definitions that the generated contract tests do not check.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { startServer } from '../support/app.ts'
import { useServer } from '../support/using.ts'

const path = '/settings/webhooks'

const server = useServer()

const hook = { name: 'Warehouse', url: 'https://example.com/hooks' }
const create = async (changes: object = {}) => (await server.admin.post(path, { ...hook, ...changes })).body.data

describe('createWebhook', () => {
  it('shows its signing secret once and never again, and keeps it encrypted', async () => {
    const { status, body } = await server.admin.post(path, { ...hook, events: ['lead.*.after'] })
    expect(status).toBe(201)
    const { secret, ...webhook } = body.data
    expect(Buffer.from(secret.replace(/^whsec_/, ''), 'base64')).toHaveLength(32)
    expect(webhook).toMatchObject({ method: 'post', payload_type: 'default', is_active: true, last_status: null })
    const seen = JSON.stringify(server.seen)
    expect(server.events()).toEqual(['settings.webhook.create.before', 'settings.webhook.create.after'])
    const { rows } = await sql`select * from webhooks union all select * from webhooks`.execute(server.store.db)
    const later = [
      (await server.admin.get(`${path}/${webhook.id}`)).text,
      (await server.admin.put(`${path}/${webhook.id}`, { is_active: false })).text,
      (await server.admin.get(`${path}/${webhook.id}/history`)).text,
      seen,
      JSON.stringify(rows),
    ].join()
    expect(later).not.toContain(secret)
  })

  it.each([
    ['https://127.0.0.1:8443/hook', '127.0.0.1 is at a loopback address'],
    ['https://localhost/hook', 'localhost is at a loopback address'],
    ['https://crm.localhost./hook', 'crm.localhost. is at a loopback address'],
    ['https://[fd00::1]/hook', 'fd00::1 is at a unique-local address'],
    ['https://10.1.2.3/{%leads.title%}', '10.1.2.3 is at a private address'],
    ['https://93.184.216.34/hook', null],
    ['https://example.com/hook', null],
    ['https://localhost.example.com/hook', null],
  ])('warns of a URL that it will not call: %s', async (url, beginning) => {
    const wanted =
      beginning === null
        ? undefined
        : {
            warnings: [
              {
                field: 'url',
                message: `${beginning}, which this server calls only if the setting ACCORD_WEBHOOK_ALLOW_CIDRS allows it.`,
              },
            ],
          }
    const created = await server.admin.post(path, { ...hook, url })
    expect([created.status, created.body.meta]).toEqual([201, wanted])
    const updated = await server.admin.put(`${path}/${created.body.data.id}`, { url })
    expect([updated.status, updated.body.meta]).toEqual([200, wanted])
  })

  it('names both settings for http to its own machine', async () => {
    const { body } = await server.admin.post(path, { ...hook, url: 'http://127.0.0.1:9000/' })
    expect(body.errors.url.join(' ')).toMatch(/ACCORD_WEBHOOK_ALLOW_HTTP=on .*ACCORD_WEBHOOK_ALLOW_CIDRS /)
  })

  it.each([
    ['http://example.com', 'Must be an absolute https URL; the setting ACCORD_WEBHOOK_ALLOW_HTTP=on allows http.'],
    ['/hooks', 'Must be an absolute https URL.'],
    ['javascript:alert(1)', 'Must be an absolute https URL.'],
    ['https://{%leads.title%}.example.com/', 'Placeholders may follow the host only.'],
    ['https://user:pass@example.com/', 'Must not carry a name or password; send a header.'],
  ])('refuses to send to %s', async (url, sentence) => {
    const { status, body } = await server.admin.post(path, { ...hook, url })
    expect([status, body.errors]).toEqual([422, { url: [sentence] }])
    expect(server.events()).toEqual([])
  })

  it('takes placeholders behind the host, and http where the installation allows it', async () => {
    const url = 'https://example.com/leads/{%leads.id%}/{% leads.title %}'
    expect((await create({ url })).url).toBe(url)
    const open = await startServer({ config: { webhookAllowHttp: true } })
    expect((await open.admin.post(path, { ...hook, url: 'http://localhost:9000' })).status).toBe(201)
    await open.close()
  })

  it('refuses headers of the server, headers that are none, and values of several lines, all at once', async () => {
    const { body } = await server.admin.post(path, {
      ...hook,
      headers: [
        { key: 'Host', value: 'x' },
        { key: 'webhook-id', value: 'x' },
        { key: 'a b', value: 'x' },
        { key: 'X-Team', value: 'a\r\nX-Evil: b' },
        { key: 'X-Ok', value: null },
        { key: 'Transfer-Encoding', value: 'chunked' },
      ],
    })
    expect(Object.keys(body.errors)).toEqual([
      'headers.0.key',
      'headers.1.key',
      'headers.2.key',
      'headers.3.value',
      'headers.5.key',
    ])
  })

  it('refuses events that are never stored, and knows renamed ones', async () => {
    const refused = await server.admin.post(path, {
      ...hook,
      events: ['lead.*.after', 'lead.create.before', 'lead.made'],
    })
    expect(Object.keys(refused.body.errors)).toEqual(['events.1', 'events.2'])
    const untold = await server.admin.post(path, {
      ...hook,
      events: ['*', 'settings.webhook.*.after', 'user.token.*.after'],
    })
    expect(Object.keys(untold.body.errors)).toEqual(['events.1', 'events.2'])
    const events = ['*', 'contact.person.delete.after', '*.tag.create.after']
    expect((await create({ events })).events).toEqual(events)
  })

  it('wants a payload that fits its type', async () => {
    const errors = async (body: object) => (await server.admin.post(path, { ...hook, ...body })).body.errors ?? {}
    expect(Object.keys(await errors({ payload_type: 'raw' }))).toEqual(['raw_payload_type', 'payload'])
    const raw = { payload_type: 'raw', raw_payload_type: 'json' }
    expect(Object.keys(await errors({ ...raw, payload: '{"a": ' }))).toEqual(['payload'])
    expect(Object.keys(await errors({ payload_type: 'x-www-form-urlencoded', payload: 'a=b' }))).toEqual(['payload'])
    const payload = '{"title": "{%leads.title%}", "value": {%leads.lead_value%}}'
    expect((await create({ ...raw, payload })).payload).toBe(payload)
  })

  it('allows fifty and no more', async () => {
    const row = await server.store.db
      .selectFrom('webhooks')
      .selectAll()
      .where('id', '=', (await create()).id)
      .executeTakeFirstOrThrow()
    for (let count = 2; count <= 50; count++) {
      const { id: _id, ...copy } = { ...row, name: `w${count}`, name_key: `w${count}` }
      await server.store.db.insertInto('webhooks').values(copy).execute()
    }
    const { status, body } = await server.admin.post(path, { ...hook, name: 'One more' })
    expect([status, body.code]).toEqual([409, 'state_conflict'])
  })
})

describe('rotateWebhookSecret', () => {
  it('makes a new secret and keeps the old one for a day', async () => {
    const { id, secret } = await create()
    server.events()
    const { status, body } = await server.admin.post(`${path}/${id}/rotate-secret`)
    expect(status).toBe(200)
    expect(body.data.secret).not.toBe(secret)
    expect(body.data.version).toBe(2)
    expect(server.seen.at(-1)?.changed).toEqual(['secret'])
    expect(server.events()).toEqual(['settings.webhook.update.before', 'settings.webhook.update.after'])
    const row = await server.store.db.selectFrom('webhooks').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
    expect(row.previous_secret_until).toBe('2026-03-02T09:30:00.000Z')
    expect(server.app.services.encryption.decrypt(row.previous_secret_sealed ?? '')).toBe(secret)
  })
})

describe('updateWebhook', () => {
  it('takes back the reply to the creation, its secret too, as a change of nothing', async () => {
    const { data } = (await server.admin.post(path, hook)).body
    const { status, body, text } = await server.admin.put(`${path}/${data.id}`, data)
    expect(status, text).toBe(200)
    expect(body.data.version).toBe(data.version)
  })

  it('forgets why the server switched it off when it is switched on again', async () => {
    const { id } = await create()
    await server.store.db
      .updateTable('webhooks')
      .set({ is_active: 0, disabled_reason: 'gone', failing_since: '2026-02-01T00:00:00.000Z' })
      .where('id', '=', id)
      .execute()
    const { body } = await server.admin.put(`${path}/${id}`, { is_active: true })
    expect(body.data).toMatchObject({ is_active: true, disabled_reason: null, failing_since: null })
  })
})

describe('deleteWebhook', () => {
  it('is refused while a workflow sends it', async () => {
    const { id } = await create()
    const actions = [{ id: 'trigger_webhook', value: id }]
    expect((await server.admin.put('/settings/workflows/1', { actions })).status).toBe(200)
    const { status, body } = await server.admin.delete(`${path}/${id}`)
    expect([status, body.conflicts]).toEqual([409, [{ entity_type: 'workflows', id: 1, field: 'actions' }]])
    expect((await server.admin.get(`${path}/${id}`)).status).toBe(200)
  })
})
