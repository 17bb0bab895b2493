// Hostile requests: large bodies with many errors, numbers that a float cannot represent, invalid
// texts, and timestamps that cannot be stored.
import { beforeAll, describe, expect, it } from 'vitest'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()
beforeAll(async () => {
  // Compiles the schemas, so that the tests do not include the compile time.
  for (const path of ['/login', '/leads', '/leads/mass-delete']) await server.admin.post(path, {})
})

const mebibyte = 1024 * 1024 - 64
/** The values that a body may have, with and without a credential. */
const [most, mostPublic] = [9_900, 990]
const fill = (make: (index: number) => string, count: number): string => {
  const parts: string[] = []
  for (let size = 0, index = 0; size < mebibyte - 200 && index < count; index++) {
    const part = make(index)
    parts.push(part)
    size += part.length + 1
  }
  return parts.join(',')
}

describe('a body full of mistakes', () => {
  const bodies: [what: string, path: string, body: string][] = [
    ['unknown keys', '/login', `{${fill((index) => `"k${index}":1`, mostPublic)}}`],
    ['control characters', '/login', `{"email":[${fill(() => '"\\u0000"', mostPublic)}]}`],
    ['ids', '/leads/mass-delete', `{"ids":[${fill(() => '"x"', most)}]}`],
    [
      'unknown keys of lines',
      '/leads',
      `{"title":"a","products":[${fill((index) => `{"a${index}":1,"b":2,"c":3}`, most / 4)}]}`,
    ],
    ['wrong lines', '/leads', `{"title":"a","products":[${fill(() => '[]', most / 2)}]}`],
    ['an unknown key with many values', '/leads', `{"title":"a","x":[${fill(() => '"\\u0000"', most)}]}`],
    ['one long key', '/login', `{"${'k'.repeat(120 * 1024)}":1}`],
    ['one long choice', '/leads', `{"title":"${'k'.repeat(mebibyte - 40)}"}`],
    ['rounded numbers', '/leads/mass-delete', `{"ids":[${fill(() => '9007199254740993', most)}]}`],
    ['one number', '/leads', `{"lead_value":1${'0'.repeat(mebibyte - 40)}1}`],
    ['combining marks', '/leads', `{"title":"a","description":"a${'\u0315\u0300'.repeat((mebibyte - 60) / 4)}"}`],
    ['backslashes', '/leads', `{"title":"${'\\\\'.repeat((mebibyte - 40) / 2)}"}`],
  ]

  // Takes a third of a second on an idle machine. A quadratic algorithm would take minutes and
  // exceed the timeout.
  it.each(bodies)('made of %s is refused briefly', async (_what, path, body) => {
    const { status, text, body: problem } = await server.admin.post(path, body)
    expect([status, problem.code]).toEqual([422, 'validation_failed'])
    expect(text.length).toBeLessThan(64 * 1024)
    expect(Object.keys(problem.errors).length).toBeLessThanOrEqual(101)
  })

  it('names the list that is too long, and says that there is more', async () => {
    const [, path = '', body = ''] = bodies[2] ?? []
    const { errors } = (await server.admin.post(path, body)).body
    expect(errors.ids).toEqual(['Must not have more than 100 entries.'])
    expect(errors.body).toEqual(['More is wrong than is listed here.'])
  })
})

describe('a number that a float cannot hold', () => {
  it.each(['1.00000000000000000001', '99999999999.99990000001', '9007199254740993', '1e400'])(
    'such as %s is refused, wherever it stands',
    async (number) => {
      const sentence = 'Must be a number with at most 15 significant digits.'
      const one = await server.admin.post('/leads', `{"title":"a","lead_value":${number}}`)
      expect([one.status, one.body.errors.lead_value.at(-1)]).toEqual([422, sentence])
      const below = await server.admin.post(
        '/leads',
        `{"title":"\\"}","lead_value":1,"products":[{"product_id":1},{"price":${number}}]}`,
      )
      expect([below.status, below.body.errors['products.1.price'].at(-1)]).toEqual([422, sentence])
    },
  )

  it('is ignored with the key that is ignored', async () => {
    const { body } = await server.admin.post('/leads', { title: 'a', lead_value: 1 })
    const path = `/leads/${body.data.id}`
    const { status } = await server.admin.put(path, '{"title":"b","products_amount":12345678901234567.0001}')
    expect(status).toBe(200)
    const refused = await server.admin.put(path, '{"title":7,"products_amount":1.00000000000000000001}')
    expect(Object.keys(refused.body.errors)).toEqual(['title'])
  })

  it('is refused as a text and in the query, and so is a plus sign', async () => {
    for (const text of ['+5', '1.00001', '123456789012345.6789']) {
      const { status, body } = await server.admin.post('/leads', { title: 'a', lead_value: text })
      expect.soft([text, status, Object.keys(body.errors)]).toEqual([text, 422, ['lead_value']])
    }
    for (const text of ['1.00000000000000000001', '+5', '1e1', '0x1']) {
      const { status, body } = await server.admin.get('/leads', { query: { 'lead_value[gte]': text, id: `1,${text}` } })
      expect
        .soft([text, status, Object.keys(body.errors ?? {}).sort()])
        .toEqual([text, 422, ['query.id', 'query.lead_value[gte]']])
    }
  })
})

describe('a text', () => {
  const create = (name: unknown, more: object = {}) => server.admin.post('/sources', { name, ...more })

  it.each([
    ['\u0000', 'Must not contain control characters.'],
    ['a\u0085b', 'Must not contain control characters.'],
    ['a\u009bb', 'Must not contain control characters.'],
    ['a\u007fb', 'Must not contain control characters.'],
    ['a\ud800b', 'Must be valid Unicode text.'],
    ['a\udc00', 'Must be valid Unicode text.'],
    [`a${'\u0300'.repeat(31)}`, 'Must not have more than 30 combining marks in a row.'],
  ])('%j is refused', async (name, sentence) => {
    const { status, body } = await create(name)
    expect([status, body.errors]).toEqual([422, { name: [sentence] }])
  })

  it('is refused together with everything else', async () => {
    const { body } = await create('a\u0007', { nope: 1 })
    expect(Object.keys(body.errors).sort()).toEqual(['name', 'nope'])
  })

  it('is refused after the lookup of the record', async () => {
    expect((await server.admin.put('/sources/999999', { name: 'a\u0007' })).status).toBe(404)
    const options = { headers: { 'if-match': '"999"' } }
    expect((await server.admin.put('/sources/1', { name: 'a\u0007' }, options)).status).toBe(412)
  })

  it('has line ends of one kind', async () => {
    const { body } = await server.admin.post('/products', {
      sku: 'line-ends',
      name: 'a',
      price: 1,
      description: 'a\r\nb\rc\nd\u{1f600}',
    })
    expect(body.data.description).toBe('a\nb\nc\nd\u{1f600}')
  })

  it('is refused in the query', async () => {
    for (const [name, query] of [
      ['q', 'q=a%00b'],
      ['name', 'name=x,a%C2%85b'],
    ]) {
      const { status, body } = await server.admin.get(`/sources?${query}`)
      expect.soft([status, Object.keys(body.errors)]).toEqual([422, [`query.${name}`]])
    }
  })
})

describe('a moment at the end of time', () => {
  const far = useSharedServer({ config: { timezone: 'America/New_York' } })

  it.each([
    '9999-12-31',
    '9999-12-31T23:30',
    '9999-12-31 20:00:00',
    '10000-01-01',
    '0000-12-31',
    '0001-01-01T00:00:00+14:00',
  ])('%s is refused in a query, whatever the operator', async (text) => {
    const fields = ['gt', 'gte', 'lt', 'lte'].map((operator) => `created_at[${operator}]`)
    const { status, body } = await far.admin.get('/leads', {
      query: Object.fromEntries(fields.map((field) => [field, text])),
    })
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, fields.map((field) => `query.${field}`)])
  })

  it('is not 9999-12-30, and a date takes a timestamp', async () => {
    const query = {
      'created_at[lte]': '9999-12-30',
      'created_at[gte]': '2026-01-01T00:00:00+05:30',
      'expected_close_date[gte]': '2026-03-01T23:30:00-08:00',
    }
    expect((await far.admin.get('/leads', { query })).status).toBe(200)
  })
})
