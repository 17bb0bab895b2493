// The format of version 1: lists, filters, values and errors, and the rules of both APIs.
import { beforeEach, describe, expect, it } from 'vitest'
import { pagesShown } from '../../../src/http/compat-v1/replies.ts'
import { startServer } from '../../support/app.ts'
import { file } from '../../support/form.ts'
import { signedInPage } from '../../support/page.ts'
import { useServer } from '../../support/using.ts'
import { type Version1, version1 } from '../../support/version1.ts'
import { addUser } from '../../support/viewers.ts'

let v1: Version1
const server = useServer({ config: { compatV1: true } })
beforeEach(() => {
  v1 = version1(server, server.admin.token)
})

const ids = (reply: { body: any }): number[] => reply.body.data.map((each: any) => each.id)
const shown = async (path: string) => (await server.admin.get(path)).body.data

async function person(name: string, email: string, more: object = {}): Promise<any> {
  const body = { name, emails: [{ value: email, label: 'work' }], ...more }
  const reply = await v1.post('/contacts/persons', body)
  expect(reply.status, reply.text).toBe(200)
  return reply.body.data
}

async function sources(...names: string[]): Promise<void> {
  for (const name of names) await server.admin.post('/sources', { name })
}

describe('a list', () => {
  it('is sorted by sort and order, falling without order, and by id without both', async () => {
    const names = async (query: string) =>
      (await v1.get(`/settings/sources?${query}`)).body.data.map((each: any) => each.name)
    expect(await names('')).toEqual(['Direct', 'Phone', 'Web Form', 'Web', 'Email'])
    expect(await names('sort=name')).toEqual(['Web Form', 'Web', 'Phone', 'Email', 'Direct'])
    expect(await names('sort=name&order=asc')).toEqual(['Direct', 'Email', 'Phone', 'Web', 'Web Form'])
    expect(await names('sort=name&order=DESC')).toEqual(['Web Form', 'Web', 'Phone', 'Email', 'Direct'])
    expect(await names('sort=nothing&order=asc')).toEqual(['Direct', 'Phone', 'Web Form', 'Web', 'Email'])
  })

  it('has ten records, or limit, at most 100; a page that is not a number is the first', async () => {
    const sizeOf = async (query: string) => {
      const { meta } = (await v1.get(`/settings/sources?${query}`)).body
      return [meta.per_page, meta.current_page]
    }
    expect(await sizeOf('')).toEqual([10, 1])
    expect(await sizeOf('limit=2&page=2')).toEqual([2, 2])
    expect(await sizeOf('limit=5000')).toEqual([100, 1])
    expect(await sizeOf('limit=all&page=0')).toEqual([10, 1])
    expect(await sizeOf('limit=-1&page=first')).toEqual([10, 1])
  })

  it('has links that keep the parameters, and buttons for the pages', async () => {
    const { links, meta } = (await v1.get('/settings/sources?limit=2&page=2&sort=id')).body
    const url = (page: number) => `http://localhost:80/api/v1/settings/sources?limit=2&page=${page}&sort=id`
    expect(links).toEqual({ first: url(1), last: url(3), prev: url(1), next: url(3) })
    expect(meta).toEqual({
      current_page: 2,
      from: 3,
      last_page: 3,
      links: [
        { url: url(1), label: '&laquo; Previous', active: false },
        { url: url(1), label: '1', active: false },
        { url: url(2), label: '2', active: true },
        { url: url(3), label: '3', active: false },
        { url: url(3), label: 'Next &raquo;', active: false },
      ],
      path: 'http://localhost:80/api/v1/settings/sources',
      per_page: 2,
      to: 4,
      total: 5,
    })
    for (const link of Object.values(links))
      if (link)
        expect(
          (await server.inject({ url: String(link), headers: { authorization: `Bearer ${server.admin.token}` } }))
            .statusCode,
        ).toBe(200)
  })

  it('shows the first pages, the last, and those around the current one', () => {
    const text = (current: number, last: number) =>
      pagesShown(current, last)
        .map((page) => page ?? '…')
        .join(' ')
    expect(text(1, 1)).toBe('1')
    expect(text(5, 13)).toBe('1 2 3 4 5 6 7 8 9 10 11 12 13')
    expect(text(7, 14)).toBe('1 2 3 4 5 6 7 8 9 10 … 13 14')
    expect(text(8, 14)).toBe('1 2 … 5 6 7 8 9 10 11 12 13 14')
    expect(text(20, 40)).toBe('1 2 … 17 18 19 20 21 22 23 … 39 40')
    expect(text(99, 20)).toBe('1 2 … 11 12 13 14 15 16 17 18 19 20')
  })

  it('with pagination=0 has the first 100 records alone', async () => {
    await sources(...Array.from({ length: 12 }, (_, index) => `Source ${index}`))
    const { body } = await v1.get('/settings/sources?pagination=0&limit=3&page=2')
    expect([Object.keys(body), body.data.length]).toEqual([['data'], 17])
    expect(Object.keys((await v1.get('/settings/sources?pagination=1')).body)).toEqual(['data', 'links', 'meta'])
  })
})

describe('a filter', () => {
  it('takes a comma list, an array, and a custom attribute', async () => {
    await server.admin.post('/settings/attributes', {
      code: 'city',
      name: 'City',
      type: 'text',
      entity_type: 'persons',
    })
    const [ada, grace, alan] = [
      await person('Ada', 'ada@example.com', { city: 'London' }),
      await person('Grace', 'grace@example.com', { city: 'New York' }),
      await person('Alan', 'alan@example.com'),
    ]
    expect(ids(await v1.get(`/contacts/persons?id=${ada.id},${alan.id}&sort=id&order=asc`))).toEqual([ada.id, alan.id])
    expect(ids(await v1.get(`/contacts/persons?id[]=${ada.id}&id[]=${grace.id}&order=asc&sort=id`))).toEqual([
      ada.id,
      grace.id,
    ])
    expect(ids(await v1.get('/contacts/persons?city=London'))).toEqual([ada.id])
    expect(ids(await v1.get('/contacts/persons?created_at[gte]=2026-01-01&name=Alan'))).toEqual([alan.id])
    expect(ids(await v1.get('/contacts/persons?email=ADA@example.com,grace@example.com'))).toHaveLength(2)
    expect(ids(await v1.get('/contacts/persons?emails=ada@example.com'))).toEqual([ada.id])
  })

  it('that is unknown is ignored', async () => {
    expect(
      (await v1.get('/settings/sources?utm_source=mail&fields=id&include=x&cursor=&count=none')).body.meta.total,
    ).toBe(5)
  })

  it('that no value can pass gives an empty list', async () => {
    await person('Ada', 'ada@example.com')
    for (const query of ['user_id=me', 'user_id=', 'id=1.5', 'organization_id=0x1', 'created_at[gte]=yesterday']) {
      const { status, body } = await v1.get(`/contacts/persons?${query}&limit=3`)
      expect([query, status, body.data, body.meta.total, body.meta.per_page]).toEqual([query, 200, [], 0, 3])
    }
  })

  it('for an address or a number never gives every record', async () => {
    await person('Ada', 'ada@example.com', { contact_numbers: [{ value: '+1 202 555 0101', label: 'work' }] })
    await server.admin.post('/leads', { title: 'Deal', lead_value: 1 })
    for (const query of [
      'email=',
      'email=nothing',
      'emails[0][value]=ada',
      'contact_numbers=',
      'phone=x',
      'mobile=1',
      'email_address=a',
      'contact_emails=b',
    ])
      expect([query, (await v1.get(`/contacts/persons?${query}`)).body.data]).toEqual([query, []])
    expect(ids(await v1.get('/contacts/persons?contact_numbers=12025550101'))).toEqual(
      ids(await server.admin.get('/contacts/persons?phone=12025550101')),
    )
    expect((await v1.get('/leads?email=ada@example.com')).body.data).toEqual([])
    expect((await v1.get('/leads?person.phone=1')).body.data).toEqual([])
    expect((await v1.get('/leads/search?phone=1')).body).toEqual({ data: [] })
  })
})

describe('a search', () => {
  it('joins its parts, and compares whole values only with =', async () => {
    const ada = await person('Ada Lovelace', 'ada@example.com')
    await person('Ada Byron', 'byron@example.com')
    const search = async (query: string) => ids(await v1.get(`/contacts/persons/search?${query}`))
    expect(await search('search=name:Ada;email:ada@example.com&searchFields=name:like;email:=')).toEqual([ada.id])
    expect(await search('search=Ada&searchFields=name')).toEqual([])
    expect(await search('search=Ada Lovelace&searchFields=name')).toEqual([ada.id])
    expect(await search('search=Love;lace')).toEqual([ada.id])
    expect(await search('search=favorite:Lovelace')).toEqual([ada.id])
    expect(await search('search=Ada&orderBy=name&sortedBy=desc')).toEqual([ada.id, ada.id + 1])
    expect(await search(`search=${'x'.repeat(200)}`)).toEqual([])
    expect(await search('search=')).toHaveLength(2)
  })
})

describe('a body', () => {
  it('has custom attributes beside the other fields, in any spelling', async () => {
    const define = async (code: string, type: string, more: object = {}) =>
      (await server.admin.post('/settings/attributes', { code, name: code, type, entity_type: 'persons', ...more }))
        .body.data
    const options = [{ name: 'One' }, { name: 'Two' }]
    const select = await define('level', 'select', { options })
    const many = await define('topics', 'multiselect', { options })
    for (const [code, type] of Object.entries({
      budget: 'price',
      vip: 'boolean',
      born: 'date',
      met: 'datetime',
      site: 'text',
      office: 'address',
      backup: 'email',
      paper: 'file',
      head: 'subheading',
    }))
      await define(code, type)
    const [one, two] = [select.options[0].id, many.options.map((each: any) => each.id)]
    const paper = (await server.admin.post('/files', ...(await uploadOf('paper.txt')))).body.data
    const ada = await person('Ada', 'ada@example.com', {
      level: String(one),
      topics: two.join(','),
      budget: '1500',
      vip: 'on',
      born: '1815-12-10',
      met: '2026-01-02 03:04:05',
      site: 42,
      office: { address: '1 Main St', city: 'London', country: 'GB', postcode: 'N1', state: '' },
      backup: { 0: { value: 'b@example.com', label: 'home' } },
      paper: String(paper.id),
      head: 'ignored',
      nothing: 'ignored',
    })
    expect(ada).toMatchObject({
      level: one,
      topics: two,
      budget: '1500.0000',
      vip: 1,
      born: '1815-12-10',
      met: '2026-01-02T03:04:05.000000Z',
      site: '42',
      backup: [{ value: 'b@example.com', label: 'home' }],
    })
    expect(ada).not.toHaveProperty('custom_attributes')
    const stored = (await shown(`/contacts/persons/${ada.id}`)).custom_attributes
    expect(stored).toMatchObject({
      level: one,
      budget: 1500,
      vip: true,
      met: '2026-01-02T03:04:05.000Z',
      paper: { name: 'paper.txt' },
    })
    expect((await v1.put(`/contacts/persons/${ada.id}`, { ...ada, budget: '', vip: '0', topics: [] })).status).toBe(200)
    expect((await shown(`/contacts/persons/${ada.id}`)).custom_attributes).toMatchObject({
      budget: null,
      vip: false,
      site: '42',
    })
    const bad = await v1.put(`/contacts/persons/${ada.id}`, { budget: 'much', level: 'x' })
    expect([bad.status, Object.keys(bad.body.errors)]).toEqual([422, ['level', 'budget']])

    const lead = await v1.post('/leads', {
      title: 'Deal',
      lead_value: 1,
      person: { name: 'Bob', emails: [{ value: 'bob@example.com' }], site: 'x' },
    })
    expect((await shown(`/contacts/persons/${lead.body.data.person_id}`)).custom_attributes.site).toBe('x')
  })

  it('that a reply gave can be sent back', async () => {
    const { body } = await v1.post('/leads', {
      title: 'Deal',
      lead_value: '1.5',
      expected_close_date: '2026-05-25',
      description: '',
    })
    const before = await shown(`/leads/${body.data.id}`)
    const lead = (await v1.get(`/leads/${body.data.id}`)).body.data
    const reply = await v1.put(`/leads/${body.data.id}`, lead)
    expect(reply.status, reply.text).toBe(200)
    expect(await shown(`/leads/${body.data.id}`)).toEqual(before)
  })

  it('replaces the method of a POST, where the path has the method', async () => {
    const { id } = (await server.admin.post('/tags', { name: 'VIP' })).body.data
    expect((await v1.urlencoded('POST', `/settings/tags/${id}`, { _method: 'put', name: 'Very' })).body.data.name).toBe(
      'Very',
    )
    expect((await v1.post(`/settings/tags/${id}`, { name: 'Most' }, { 'x-http-method-override': 'PUT' })).status).toBe(
      200,
    )
    expect((await shown(`/tags/${id}`)).name).toBe('Most')
    const plain = await v1.post(`/settings/tags/${id}`, { name: 'x' })
    expect([plain.status, plain.headers.allow]).toEqual([405, 'GET, PUT, DELETE'])
    expect((await v1.post(`/settings/tags/${id}`, { _method: 'PATCH' })).status).toBe(405)
    expect((await v1.post(`/settings/tags/${id}?_method=DELETE`)).status).toBe(200)
    expect((await server.admin.get(`/tags/${id}`)).status).toBe(404)
  })

  it('that cannot be read is refused after a missing token', async () => {
    const send = (payload: string, type: string, token: string | null = server.admin.token) =>
      server.inject({
        method: 'POST',
        url: '/api/v1/leads',
        payload,
        headers: { 'content-type': type, ...(token && { authorization: `Bearer ${token}` }) },
      })
    const statuses = async (...sent: Parameters<typeof send>[]) => {
      const found: number[] = []
      for (const each of sent) found.push((await send(...each)).statusCode)
      return found
    }
    expect(
      await statuses(
        ['{"title": ', 'application/json'],
        ['["title"]', 'application/json'],
        ['title', 'text/plain'],
        ['{"title":"x","lead_value":0.12345678901234567}', 'application/json'],
        [`${'a=1&'.repeat(300)}`, 'application/x-www-form-urlencoded'],
        ['a[b]=1&a=2', 'application/x-www-form-urlencoded'],
        ['nothing', 'multipart/form-data; boundary=x'],
        ['nothing', 'multipart/form-data'],
      ),
    ).toEqual([400, 400, 415, 422, 400, 400, 400, 400])
    expect(await statuses(['{"title": ', 'application/json', null], ['title', 'text/plain', null])).toEqual([401, 401])
    expect((await version1(server, null).form('/activities', { type: 'file', file: file('a.txt') })).status).toBe(401)
  })
})

async function uploadOf(name: string) {
  const { form } = await import('../../support/form.ts')
  const { body, headers } = await form({ file: file(name) })
  return [body, { headers }] as const
}

describe('an error', () => {
  it('has a message and the errors by field', async () => {
    const { status, headers, body } = await v1.post('/leads', { lead_value: 'much' })
    expect([status, headers['content-type']]).toEqual([422, 'application/json; charset=utf-8'])
    expect(body).toEqual({
      message: expect.stringMatching(/and 1 more error/),
      errors: { title: ['The field is required.'], lead_value: ['Must be a number.'] },
      code: 'validation_failed',
      request_id: expect.any(String),
    })
    const missing = await v1.get('/leads/99')
    expect([missing.status, missing.body.message]).toEqual([404, 'No lead has id 99.'])
    expect((await v1.get('/leads/abc')).status).toBe(404)
    expect((await v1.get('/nowhere')).body).toMatchObject({ message: expect.any(String), code: 'not_found' })
  })

  it('names the fields as the request did', async () => {
    const user = { name: 'x', email: 'x@example.com', role_id: 1, password: 'a long secret', confirm_password: 'other' }
    const { body } = await v1.post('/settings/users', { ...user, groups: [99] })
    expect(Object.keys(body.errors).sort()).toEqual(['confirm_password', 'groups.0'])
  })

  it('is JSON for a caller without a token, also in a browser', async () => {
    const reply = await server.inject({ url: '/api/v1/leads', headers: { accept: 'text/html' } })
    expect([reply.statusCode, reply.json().message]).toEqual([401, expect.any(String)])
  })

  it('is 422 for a value that is taken, and 400 for a refused deletion', async () => {
    await person('Ada', 'ada@example.com')
    const taken = await v1.post('/contacts/persons', { name: 'Other', emails: [{ value: 'ada@example.com' }] })
    expect([taken.status, Object.keys(taken.body.errors)]).toEqual([422, ['emails.0.value']])
    await v1.post('/leads', { title: 'Deal', lead_value: 1, person_id: 1 })
    for (const path of ['/contacts/persons/1', '/settings/pipelines/1', '/settings/users/1', '/settings/roles/1']) {
      const refused = await v1.delete(path)
      expect([path, refused.status, typeof refused.body.message]).toEqual([path, 400, 'string'])
    }
  })

  it('is 405 with Allow for another method; OPTIONS lists the methods', async () => {
    const asked = async (method: 'PATCH' | 'OPTIONS' | 'PUT' | 'HEAD', url: string) => {
      const { statusCode, headers } = await server.inject({
        method,
        url: `/api/v1${url}`,
        headers: { authorization: `Bearer ${server.admin.token}` },
      })
      return [statusCode, headers.allow]
    }
    expect(await asked('PATCH', '/leads/1')).toEqual([405, 'GET, PUT, DELETE, POST, HEAD, OPTIONS'])
    expect(await asked('OPTIONS', '/leads')).toEqual([204, 'GET, POST, HEAD, OPTIONS'])
    expect(await asked('PUT', '/leads')).toEqual([405, 'GET, POST, HEAD, OPTIONS'])
    expect(await asked('HEAD', '/leads')).toEqual([200, undefined])
    // A HEAD must not start an import.
    expect((await asked('HEAD', '/settings/data-transfer/imports/start/1'))[0]).toBe(405)
  })
})

describe('the rules of the canonical API', () => {
  it('hold for permissions and abilities', async () => {
    const reader = version1(server, (await addUser(server, 'Reader', { permissions: ['leads', 'leads.view'] })).token)
    expect((await reader.get('/leads')).status).toBe(200)
    const refused = await reader.post('/leads', { title: 'x', lead_value: 1 })
    expect([refused.status, refused.body.required]).toEqual([403, 'leads.create'])
    expect((await reader.get('/settings/users')).status).toBe(403)
    expect((await reader.post('/leads', { title: 'x' })).status).toBe(403)
    const { token } = await server.as(1, ['leads:read'])
    expect((await version1(server, token).post('/leads', { title: 'x', lead_value: 1 })).status).toBe(403)
    expect((await version1(server, token).get('/leads')).status).toBe(200)
  })

  it('hold for visibility', async () => {
    const { body } = await v1.post('/leads', { title: 'Of the administrator', lead_value: 1 })
    const own = version1(server, (await addUser(server, 'Own', { view: 'individual' })).token)
    expect((await own.get(`/leads/${body.data.id}`)).status).toBe(404)
    expect((await own.get('/leads?pagination=0')).body).toEqual({ data: [] })
    expect((await own.get('/leads/search?search=administrator')).body).toEqual({ data: [] })
    expect((await own.put(`/leads/stage/edit/${body.data.id}`, { lead_pipeline_stage_id: 5 })).status).toBe(404)
    expect((await own.get('/leads/get')).body.data[0].leads.meta.total).toBe(0)
    const mine = await own.post('/leads', { title: 'Mine', lead_value: 1 })
    expect((await own.get('/leads')).body.data).toMatchObject([{ id: mine.body.data.id }])
  })

  it('give a caller who may only create a reply with short references', async () => {
    const permissions = ['leads', 'leads.create', 'contacts.persons.create']
    const writer = version1(server, (await addUser(server, 'Writer', { permissions })).token)
    const { status, body } = await writer.post('/leads', {
      title: 'x',
      lead_value: 1,
      person: { name: 'Ada', emails: [{ value: 'a@example.com' }] },
    })
    expect([status, body.data.person, body.message]).toEqual([
      200,
      { id: 1, name: 'Ada', email: 'a@example.com' },
      'Lead created.',
    ])
  })

  it('hold for retries, dry runs, versions and events', async () => {
    const once = () => v1.post('/settings/tags', { name: 'Once' }, { 'idempotency-key': 'k1' })
    const [first, second] = [await once(), await once()]
    expect([second.headers['idempotency-replayed'], second.body]).toEqual(['true', first.body])
    server.events()
    const tried = await v1.post('/leads', { title: 'Tried', lead_value: 1 }, { 'accord-dry-run': 'true' })
    expect([tried.status, tried.headers['accord-dry-run'], tried.body.data.title]).toEqual([200, 'true', 'Tried'])
    expect([server.events(), (await v1.get('/leads')).body.data]).toEqual([[], []])
    const { id } = first.body.data
    const stale = await server.inject({
      method: 'PUT',
      url: `/api/v1/settings/tags/${id}`,
      payload: { name: 'Twice' },
      headers: { authorization: `Bearer ${server.admin.token}`, 'if-match': '"9"' },
    })
    expect(stale.statusCode).toBe(412)
    await v1.post('/leads', { title: 'Deal', lead_value: 1 })
    expect(server.events()).toEqual(['lead.create.before', 'lead.create.after'])
  })

  it('hold for sessions: a GET that stands for a change needs the CSRF token', async () => {
    const page = await signedInPage(server)
    const v1Path = '/../v1'
    expect((await page.get(`${v1Path}/leads`)).status).toBe(200)
    const started = await page.get(`${v1Path}/settings/data-transfer/imports/start/1`)
    expect([started.status, started.body.code]).toEqual([403, 'csrf_mismatch'])
    expect((await page.post(`${v1Path}/settings/tags`, { name: 'x' }, { 'x-xsrf-token': '' })).status).toBe(403)
    expect((await page.post(`${v1Path}/settings/tags`, { name: 'x' })).status).toBe(200)
  })

  it('hold for rate limits', async () => {
    const limited = await startServer({ config: { compatV1: true, rateFactor: 0.01 } })
    const client = version1(limited, limited.admin.token)
    const statuses = []
    for (let times = 0; times < 15; times++) statuses.push((await client.get('/settings/tags')).status)
    expect(statuses.slice(0, 5)).toEqual([200, 200, 200, 200, 200])
    expect(statuses.at(-1)).toBe(429)
    const refused = await client.get('/settings/tags')
    expect([refused.headers['retry-after'], refused.body.message]).toEqual([expect.any(String), expect.any(String)])
    await limited.close()
  })
})
