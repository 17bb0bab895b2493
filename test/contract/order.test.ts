// The order of checks: before authentication, only the size of a body is checked. The
// method is checked before the body, and the record in the path before errors of the body.
import { describe, expect, it } from 'vitest'
import { fact } from '../support/schema.ts'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()

describe('before it is known who asks', () => {
  const inject = async (method: string, url: string, headers: Record<string, string>, payload?: string) => {
    const { statusCode, body } = await server.inject({
      method: method as 'GET',
      url: `/api/admin${url}`,
      headers: { accept: 'application/json', ...headers },
      ...(payload !== undefined && { payload }),
    })
    return [statusCode, body === '' ? undefined : JSON.parse(body).code]
  }
  const signed = () => ({ authorization: `Bearer ${server.admin.token}` })

  it.each(['', 'garbage', '/', 'application/', '; charset=utf-8', 'text/plain'])(
    'a Content-Type %j is not looked at',
    async (type) => {
      expect(await inject('POST', '/sources', { 'content-type': type }, '{}')).toEqual([401, 'unauthenticated'])
      expect(await inject('POST', '/sources', { 'content-type': type, ...signed() }, '{}')).toEqual([
        415,
        'unsupported_media_type',
      ])
    },
  )

  it.each(['?q=%zz', '?%ff=1', '?q=%'])('a query %j is not looked at', async (query) => {
    expect(await inject('GET', `/sources${query}`, {})).toEqual([401, 'unauthenticated'])
    expect(await inject('GET', `/sources${query}`, signed())).toEqual([400, 'malformed_request'])
  })

  it('an id of any length is none of a record', async () => {
    for (const id of ['1'.repeat(501), '1'.repeat(8000)]) {
      expect(await inject('GET', `/sources/${id}`, {})).toEqual([401, 'unauthenticated'])
      expect(await inject('GET', `/sources/${id}`, signed())).toEqual([404, 'not_found'])
    }
  })

  it('only the size is', async () => {
    expect(await inject('POST', '/sources', { 'content-type': 'garbage' }, ' '.repeat(1024 * 1024 + 1))).toEqual([
      413,
      'payload_too_large',
    ])
    expect(await inject('GET', `/sources?q=${'x'.repeat(9000)}`, {})).toEqual([400, 'malformed_request'])
  })

  it('a broken path leads nowhere', async () => {
    expect(await inject('GET', '/sources/%zz', {})).toEqual([400, 'malformed_request'])
  })
})

describe('a method that a path does not know', () => {
  const others = ['TRACE', 'PROPFIND', 'QUERY', 'SEARCH', 'LOCK', 'PATCH', 'PURGE', 'HEAD']

  it.each(others)('%s is answered 405 with Allow', async (method) => {
    for (const [id, path] of [
      ['massDeleteLeads', '/leads/mass-delete'],
      ['updateLeadProduct', '/leads/1/products/1'],
      ['login', '/login'],
    ] as const) {
      const { statusCode, headers } = await server.inject({ method: method as 'GET', url: `/api/admin${path}` })
      expect.soft([path, statusCode]).toEqual([path, 405])
      expect.soft(String(headers.allow).split(', ')).toContain(fact(id).method.toUpperCase())
    }
  })

  it('is not refused at an unknown path', async () => {
    for (const method of others.slice(0, 4)) {
      const { statusCode } = await server.inject({ method: method as 'GET', url: '/api/admin/nothing' })
      expect.soft([method, statusCode]).toEqual([method, 404])
    }
  })

  it('is answered before its body is read', async () => {
    const payload = ' '.repeat(1024 * 1024 + 1)
    const headers = { 'content-type': 'garbage' }
    const { statusCode } = await server.inject({ method: 'PATCH', url: '/api/admin/sources/1', headers, payload })
    expect(statusCode).toBe(405)
  })
})

describe('a wrong body', () => {
  it('for a line that is not there answers 404', async () => {
    const person = { name: 'Owner of the line', emails: [{ value: 'line@example.com' }] }
    const lead = await server.admin.post('/leads', { title: 'With lines', lead_value: 1, person })
    const product = await server.admin.post('/products', { sku: 'line', name: 'Line', price: 1 })
    const path = `/leads/${lead.body.data.id}/products/${product.body.data.id}`
    expect((await server.admin.put(path, { quantity: 'many' })).status).toBe(404)
    const attached = await server.admin.post(path.replace(/\/\d+$/, ''), { product_id: product.body.data.id })
    expect(attached.status).toBe(200)
    expect((await server.admin.put(path, { quantity: 'many' })).status).toBe(422)
    expect((await server.admin.put('/leads/999999/products/1', { quantity: 'many' })).status).toBe(404)
  })
})

describe('a dry run', () => {
  it('is true or false, also when signing in and out', async () => {
    const credentials = { email: 'admin@example.com', password: 'correct horse battery', device_name: 'd' }
    for (const [path, body] of [
      ['/login', credentials],
      ['/logout', {}],
    ] as const) {
      const wrong = await server.admin.post(path, body, { headers: { 'accord-dry-run': 'TRUE' } })
      expect
        .soft([path, wrong.status, Object.keys(wrong.body.errors ?? {})])
        .toEqual([path, 422, ['header.Accord-Dry-Run']])
    }
    // A login has no dry run, because its token would not work.
    const login = await server.admin.post('/login', credentials, { headers: { 'accord-dry-run': 'true' } })
    expect([login.status, Object.keys(login.body.errors)]).toEqual([422, ['header.Accord-Dry-Run']])
    const tried = await server.admin.post('/logout', {}, { headers: { 'accord-dry-run': 'true' } })
    expect([tried.status, tried.headers['accord-dry-run']]).toEqual([200, 'true'])
    expect((await server.admin.get('/account')).status).toBe(200)
    const long = await server.admin.post('/logout', {}, { headers: { 'idempotency-key': 'k'.repeat(256) } })
    expect(Object.keys(long.body.errors)).toEqual(['header.Idempotency-Key'])
  })
})
