// Exports contain all records that a list would show, from one moment, in a format that
// spreadsheets and imports can read. test/timing/exports.test.ts measures their memory.
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { unescapeFormula } from '../../../src/kernel/resource/csv-cells.ts'
import { handlers } from '../../../src/operations.ts'
import { fill, follow, pathOf } from '../../properties/data.ts'
import { type Caller, start, startServer, type TestServer } from '../../support/app.ts'
import { isPostgres, openAt } from '../../support/engine.ts'
import { useFolder } from '../../support/folders.ts'
import { given } from '../../support/given.ts'
import { addProducts } from '../../support/products.ts'
import {
  document,
  fact,
  facts,
  parametersOf,
  requiredOf,
  follow as resolve,
  type SchemaObject,
} from '../../support/schema.ts'
import { statementsOf } from '../../support/statements.ts'
import { useSharedServer } from '../../support/using.ts'
import { addUser } from '../../support/viewers.ts'

type Row = Record<string, any>

const exported = facts.filter(([, { path, method }]) => method === 'get' && path.endsWith('/export')).map(([id]) => id)
const listOf = (id: string): string => id.replace(/^export/, 'list')
const slugOf = (id: string): string => fact(id).path.split('/').at(-2) ?? ''
const built = ['leads', 'persons', 'organizations', 'quotes', 'products', 'activities'] as const

async function ndjson(caller: Caller, list: string, query = ''): Promise<Row[]> {
  const { status, text, headers } = await caller.get(`${pathOf(list)}/export?${query}`)
  if (status !== 200) throw new Error(`${status} ${text}`)
  expect(headers['content-type']).toBe('application/x-ndjson')
  return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
}

async function csv(caller: Caller, list: string, query = ''): Promise<{ names: string[]; rows: Row[]; text: string }> {
  const { status, text, headers } = await caller.get(`${pathOf(list)}/export?format=csv&${query}`)
  if (status !== 200) throw new Error(`${status} ${text}`)
  expect(headers['content-type']).toBe('text/csv; charset=utf-8')
  const strict = { record_delimiter: ['\r\n'] }
  const [names = []] = parse(text, { ...strict, to: 1 }) as string[][]
  return { names, rows: parse(text, { ...strict, columns: true }) as Row[], text }
}

describe.each(exported)('%s', (id) => {
  it('takes every filter and sort key of its list, and what a page is for not at all', () => {
    const pages = ['page', 'per_page', 'count', 'cursor', 'include', 'fields']
    const wanted = Object.keys(fact(listOf(id)).query).filter((name) => !pages.includes(name))
    expect(Object.keys(fact(id).query).sort()).toEqual(['bom', 'format', 'separator', 'timezone', ...wanted].sort())
    expect(fact(id).permission).toBe(`${fact(listOf(id)).permission}.export`)
  })
})

describe('an export', () => {
  const server = useSharedServer()
  /** The ids of the first two tags. */
  let tags: number[]
  beforeAll(async () => {
    await fill(server)
    tags = (await server.store.db.selectFrom('tags').select('id').orderBy('id').limit(2).execute()).map(({ id }) => id)
    await given(server.admin).lead({ tag_ids: tags })
    for (const subject of ['acme', 'Zeta', 'acme']) await given(server.admin).quote({ subject })
    await server.keep()
  })

  it.each(built)('of %s is what paging through the list gives, whatever the filter and the sort', async (list) => {
    const sorts = resolve(sortOf(list)).enum as string[]
    const queries = fc.record({
      sort: fc.uniqueArray(fc.constantFrom(...sorts), {
        minLength: 1,
        maxLength: 3,
        selector: (name) => name.replace('-', ''),
      }),
      filter: fc.constantFrom(
        '',
        'q=a',
        'q=acme',
        'id[not]=1,3',
        'updated_at[gte]=2026-03-01T09:35:00.000Z',
        'user_id[null]=true',
        `tag_id=${tags[0]}`,
        'q=nothing',
      ),
    })
    await fc.assert(
      fc.asyncProperty(queries, async ({ sort, filter }) => {
        const [name = ''] = filter.split('=')
        const known = Object.hasOwn(fact(operationOf(list)).query, name)
        const query = `sort=${sort.join(',')}${known ? `&${filter}` : ''}`
        const pages = await follow(server.admin, `${pathOf(list)}?per_page=7&${query}`, 'next')
        const records = pages.flatMap(({ data }) => data)
        expect(await ndjson(server.admin, list, query)).toEqual(records)
        const { rows } = await csv(server.admin, list, query)
        expect(rows.map(({ id }) => Number(id))).toEqual(records.map(({ id }) => id))
      }),
      { seed: 5, numRuns: 12 },
    )
  })

  const operationOf = (list: string): string => `list${list.charAt(0).toUpperCase()}${list.slice(1)}`
  const sortOf = (list: string) =>
    parametersOf(operationOf(list), 'query').find(({ name }) => name === 'sort')?.schema.items

  it('comes with a name of its own and the day, in JSON lines unless the caller requests CSV', async () => {
    const nameOf = async (query: string) =>
      (await server.admin.get(`/contacts/persons/export${query}`)).headers['content-disposition']
    expect(await nameOf('')).toBe('attachment; filename=persons-2026-03-01.ndjson')
    expect(await nameOf('?format=csv')).toBe('attachment; filename=persons-2026-03-01.csv')
  })

  it('begins with a byte order mark on request, and with semicolons', async () => {
    await server.admin.post('/contacts/organizations', { name: 'Käse; Brot' })
    const begin = async (query: string) => {
      const { text } = await server.admin.get(`/contacts/organizations/export?format=csv${query}`)
      return [text.charCodeAt(0) === 0xfeff, text.replace('\ufeff', '').slice(0, 8), text.includes('"Käse; Brot"')]
    }
    expect(await begin('')).toEqual([false, 'id,name,', false])
    expect(await begin('&bom=true')).toEqual([true, 'id,name,', false])
    expect(await begin('&separator=%3B')).toEqual([true, 'id;name;', true])
    expect(await begin('&separator=%3B&bom=false')).toEqual([false, 'id;name;', true])
    const { status } = await server.admin.get('/contacts/organizations/export?format=csv&separator=x')
    expect(status).toBe(422)
  })

  it('comes as CSV when Accept says so, and as its format says above all', async () => {
    const typeOf = async (query: string, accept: string) => {
      const { headers } = await server.admin.get(`/leads/export${query}`, { headers: { accept } })
      expect(headers.vary).toContain('Accept')
      return String(headers['content-type']).split(';')[0]
    }
    expect(await typeOf('', 'text/csv')).toBe('text/csv')
    expect(await typeOf('', 'text/csv;q=0.5, application/x-ndjson')).toBe('application/x-ndjson')
    expect(await typeOf('', 'application/json')).toBe('application/x-ndjson')
    expect(await typeOf('?format=ndjson', 'text/csv')).toBe('application/x-ndjson')
    expect(await typeOf('?format=csv', 'application/x-ndjson')).toBe('text/csv')
  })

  it('of nothing is an empty text, or a header without rows', async () => {
    expect(await ndjson(server.admin, 'leads', 'id=999999')).toEqual([])
    const { names, rows } = await csv(server.admin, 'leads', 'id=999999')
    expect([names.slice(0, 3), rows]).toEqual([['id', 'title', 'description'], []])
  })

  it('is refused as the list would be, before a byte is sent', async () => {
    const { status, body, headers } = await server.admin.get('/leads/export?sort=nope&q=&per_page=5&format=xml')
    expect([status, Object.keys(body.errors).sort()]).toEqual([
      422,
      ['query.format', 'query.per_page', 'query.q', 'query.sort'],
    ])
    expect(headers['content-disposition']).toBeUndefined()
  })

  it('holds what the caller may see and nothing else', async () => {
    const own = await addUser(server, 'Own', { view: 'individual' })
    expect(await ndjson(own, 'leads')).toEqual([])
    const person = await given(own).person({ name: 'Mine' })
    const lead = await given(own).lead({ title: 'Mine', person_id: person.id })
    for (const [list, id] of [
      ['leads', lead.id],
      ['persons', person.id],
    ] as const) {
      expect((await ndjson(own, list)).map((row) => row.id)).toEqual([id])
      expect((await csv(own, list)).rows.map((row) => Number(row.id))).toEqual([id])
      expect((await ndjson(server.admin, list)).length).toBeGreaterThan(10)
    }
    server.events()
    await ndjson(own, 'leads')
    expect(server.events()).toEqual(['data_transfer.exports.started'])
    await server.rewind()
  })

  it('asks the database as often for many records as for few, batch by batch', async () => {
    const count = async (query: string) => (await statementsOf(() => ndjson(server.admin, 'leads', query))).length
    await count('')
    const few = await server.store.db.selectFrom('leads').select('id').orderBy('id').limit(3).execute()
    expect(await count('')).toBe(await count(`id=${few.map(({ id }) => id)}`))
  })
})

describe('a CSV', () => {
  let server: TestServer
  let make: ReturnType<typeof given>
  beforeAll(async () => {
    server = await startServer()
    make = given(server.admin)
    await server.keep()
  })
  afterEach(() => server.rewind())
  afterAll(() => server.close())

  it.each(exported)(
    'of %s has a column for everything a record says, and other records by their id alone',
    async (id) => {
      const slug = slugOf(id)
      const { names } = await csv(server.admin, slug)
      expect(new Set(names).size).toBe(names.length)
      const schema = replyOf(id)
      const named: Record<string, string> = { products: 'product', items: 'items' }
      const covers = (property: string): boolean =>
        names.includes(named[property] ?? property) ||
        names.some((name) => name.startsWith(`${property}.`) || isIdOf(name, property))
      // Properties that only an include or a timeline adds are not exported.
      const shown = requiredOf(schema).filter((name) => !['custom_attributes', 'additional'].includes(name))
      expect(shown.filter((property) => !covers(property))).toEqual([])
      const known = (name: string): boolean =>
        Object.values(named).includes(name) || /_ids?$/.test(name) || shown.includes(name.split('.')[0] ?? '')
      expect(names.filter((name) => !known(name))).toEqual([])
    },
  )

  const replyOf = (id: string): SchemaObject => {
    const show = facts.find(
      ([, { method, path }]) => method === 'get' && path === fact(id).path.replace('export', '{id}'),
    )
    const reply = (document.paths as any)[show?.[1].path ?? ''].get.responses['200'].content['application/json'].schema
    return resolve(resolve(reply).properties?.data)
  }
  /**
   * Returns whether a column has the id of a property: `person_id` of `person`, `lead_ids` of
   * `leads`, `lead_source_id` of `source`.
   */
  const isIdOf = (name: string, property: string): boolean =>
    new RegExp(`(^|_)(${property}_id|${property.replace(/ies$/, 'y').replace(/s$/, '')}_ids)$`).test(name)

  it('flattens what is nested in the way imports read it', async () => {
    const organization = await make.organization({
      name: 'Acme',
      address: { city: 'Łódź', country: 'PL', address: 'ul. 1, "B"' },
    })
    const tags = [await make.tag({ name: 'cold' }), await make.tag({ name: 'warm' })]
    const emails = [
      { value: 'a@example.com', label: 'work' },
      { value: 'b@example.com', label: 'home' },
    ]
    const person = await make.person({ name: 'Ada', emails, organization_id: organization.id, job_title: null })
    const products = [await make.product({ price: 1.5 }), await make.product({ price: 20 })]
    const lines = [
      { product_id: products[0]?.id ?? 0, quantity: 3 },
      { product_id: products[1]?.id ?? 0, price: 19.99 },
    ]
    const lead = await make.lead({
      title: 'Engines',
      person_id: person.id,
      products: lines,
      tag_ids: tags.map(({ id }) => id),
    })
    const note = await make.activity({
      type: 'note',
      comment: 'x',
      lead_ids: [lead.id],
      person_ids: [person.id],
      participants: { users: [1], persons: [person.id] },
    })
    const one = async (list: string) => (await csv(server.admin, list)).rows[0]
    expect(await one('organizations')).toMatchObject({
      id: String(organization.id),
      name: 'Acme',
      'address.address': 'ul. 1, "B"',
      'address.country': 'PL',
      'address.state': '',
      'address.city': 'Łódź',
      user_id: '1',
      persons_count: '1',
      version: '1',
    })
    expect(await one('persons')).toMatchObject({
      emails: 'a@example.com:work|b@example.com:home',
      job_title: '',
      organization_id: String(organization.id),
      tags: '',
    })
    expect(await one('leads')).toMatchObject({
      person_id: String(person.id),
      organization_id: String(organization.id),
      lead_pipeline_stage_id: '1',
      is_rotten: 'false',
      rotten_days: '0',
      tags: 'cold|warm',
      product: `id=${products[0]?.id},price=1.5,quantity=3|id=${products[1]?.id},price=19.99,quantity=1`,
      products_amount: '24.49',
      created_at: start,
    })
    expect(await one('activities')).toMatchObject({
      id: String(note.id),
      is_done: 'true',
      participants: `user_id=1|person_id=${person.id}`,
      lead_ids: String(lead.id),
      person_ids: String(person.id),
      organization_ids: '',
    })
  })

  it('has a column for each attribute of the installation, also in an export of nothing', async () => {
    const stamps = { created_at: start, updated_at: start }
    const attribute = (code: string, type: 'text' | 'address' | 'subheading', sort_order: number) => ({
      code,
      name: code,
      name_key: code,
      type,
      entity_type: 'organizations' as const,
      sort_order,
      is_user_defined: 1,
      ...stamps,
    })
    await server.store.db
      .insertInto('attributes')
      .values([attribute('sector', 'text', 2), attribute('seat', 'address', 1), attribute('heading', 'subheading', 3)])
      .execute()
    const { names } = await csv(server.admin, 'organizations', 'id=999999')
    expect(names.slice(-10)).toEqual([
      'seat.address',
      'seat.country',
      'seat.state',
      'seat.city',
      'seat.postcode',
      'sector',
      'external_ids',
      'created_at',
      'updated_at',
      'version',
    ])
  })

  it('survives RFC 4180 with any text, and holds nothing a spreadsheet would compute', async () => {
    const letter = fc.constantFrom(
      '=',
      '+',
      '-',
      '@',
      '\t',
      '"',
      ',',
      '\n',
      '\r',
      ';',
      "'",
      '|',
      'a',
      'é',
      ' ',
      '1',
      '😀',
      '\u2028',
    )
    const sampled = fc.sample(fc.string({ unit: letter, minLength: 1, maxLength: 6 }), { numRuns: 200, seed: 3 })
    const texts = ['  =1', "'=1", "''=1", 'a;=2', "a;'=2", 'a\t@b', 'a\r\n=2', 'a\n=2,3', 'a\rb', ...sampled]
    const row = { price: 0, created_at: start, updated_at: start }
    await server.store.db
      .insertInto('products')
      .values(
        texts.map((description, index) => ({
          sku: `s${index}`,
          sku_key: `s${index}`,
          name: 'n',
          name_key: 'n',
          description,
          ...row,
        })),
      )
      .execute()
    const { rows, text } = await csv(server.admin, 'products', 'sort=id')
    expect(rows.map(({ description }) => unescapeFormula(description ?? ''))).toEqual(texts)
    // Outside of quotes, CRLF ends a record, and no other line break occurs.
    const bare = text.replaceAll(/"(?:[^"]|"")*"/g, '')
    expect(bare.split('\r\n').length).toBe(texts.length + 2)
    expect(bare.replaceAll('\r\n', '')).not.toMatch(/[\r\n]/)
    // No cell begins with a formula character, for any delimiter.
    expect(text).not.toMatch(/(^|[\r\n;\t])[=+\-@\t]/)
    expect(text.endsWith('\r\n')).toBe(true)
    for (const cell of rows.flatMap((each) => Object.values(each))) expect(cell).not.toMatch(/^ *[=+@\t\r]/)
  })

  it('leaves a negative number a number', async () => {
    await make.lead({})
    const { rows } = await csv(server.admin, 'leads')
    expect(rows[0]?.rotten_days).toBe('0')
  })
})

// test/postgres/snapshots.test.ts tests long reads on PostgreSQL.
describe.runIf(!isPostgres)('an export of 30,000 products from a database on disk', () => {
  const folder = useFolder('export')
  const open: { opened: number; closed: number } = { opened: 0, closed: 0 }
  const count = 30_000
  const server = useSharedServer({
    open: (image) => {
      const store = openAt(join(folder, 'accord.db'))(image)
      const counted = async () => {
        const snapshot = await store.snapshot()
        open.opened++
        return { ...snapshot, close: () => snapshot.close().then(() => void open.closed++) }
      }
      return { ...store, snapshot: counted }
    },
  })
  let port: number

  beforeAll(async () => {
    await addProducts(server.store.db, count, 'long '.repeat(60))
    await server.app.http.listen({ host: '127.0.0.1', port: 0 })
    port = (server.app.http.server.address() as { port: number }).port
  })

  async function begin(query = ''): Promise<{ reply: IncomingMessage; call: ClientRequest }> {
    const headers = { authorization: `Bearer ${server.admin.token}`, accept: 'application/json' }
    const call = request({ host: '127.0.0.1', port, path: `/api/admin/products/export?sort=id&${query}`, headers })
    call.end()
    const [reply] = (await once(call, 'response')) as [IncomingMessage]
    return { reply, call }
  }

  const settled = () => expect.poll(() => open.opened - open.closed).toBe(0)

  it('shows one moment, and lets others work meanwhile', async () => {
    const { reply } = await begin()
    let text = ''
    let lines = 0
    let last: Row = {}
    const answered: number[] = []
    let isOver = false
    const others = (async () => {
      while (!isOver) {
        answered.push((await server.admin.get('/sources')).status)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    })()
    for await (const chunk of reply) {
      if (text === '' && lines === 0) {
        // The other rows are not read yet. The export must not contain changes that are made now.
        expect((await server.admin.put(`/products/${count}`, { name: 'Renamed' })).status).toBe(200)
        expect((await server.admin.delete(`/products/${count - 1}`)).status).toBe(200)
        await given(server.admin).product({ sku: 'too late' })
      }
      text += chunk
      const complete = text.split('\n')
      text = complete.pop() ?? ''
      lines += complete.length
      if (complete.length > 0) last = JSON.parse(complete.at(-1) ?? '')
    }
    isOver = true
    await others
    expect([lines, text, last.id, last.name]).toEqual([count, '', count, `Product ${count}`])
    expect(answered.length).toBeGreaterThan(20)
    expect(new Set(answered)).toEqual(new Set([200]))
    await settled()
  })

  it.each(['format=ndjson', 'format=csv'])('ends with the caller who goes away (%s)', async (format) => {
    const { reply, call } = await begin(format)
    await once(reply, 'data')
    expect(open.opened).toBe(open.closed + 1)
    call.destroy()
    await settled()
  })

  it('is one of four at most: the next is asked to come back, until one has ended, and a HEAD takes no place', async () => {
    const calls: ClientRequest[] = []
    const authorization = `Bearer ${server.admin.token}`
    for (let count = 0; count < 4; count++) {
      const head = { method: 'HEAD', url: '/api/admin/products/export', headers: { authorization } } as const
      expect((await server.inject(head)).statusCode).toBe(200)
      const { reply, call } = await begin()
      await once(reply, 'readable')
      expect(reply.statusCode).toBe(200)
      calls.push(call)
    }
    const { status, body, headers } = await server.admin.get('/products/export?id=1')
    expect([status, body.code, headers['retry-after']]).toEqual([503, 'unavailable', '30'])
    const other = await startServer()
    expect((await other.admin.get('/products/export?id=1')).status).toBe(200)
    await other.close()
    for (const call of calls) call.destroy()
    await settled()
    expect((await server.admin.get('/products/export?id=1')).status).toBe(200)
  })

  it('is given up after a quarter of an hour, however patiently its rows are taken', async () => {
    const products = handlers.exportProducts as (ctx: any, input: any) => Promise<any>
    const { parts } = await products(contextOf(server), { query: { sort: ['id'] } })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const rows = parts.body[Symbol.asyncIterator]()
      const minutes = async (): Promise<number> => {
        for (let minute = 0; ; minute++) {
          if ((await rows.next().catch(() => ({ done: true }))).done) return minute
          await vi.advanceTimersByTimeAsync(59_000)
        }
      }
      expect(await minutes()).toBe(16)
    } finally {
      vi.useRealTimers()
    }
    await settled()
  })

  it('breaks off when the token of its caller is revoked meanwhile, so that no reader takes it for complete', async () => {
    const products = handlers.exportProducts as (ctx: any, input: any) => Promise<any>
    const { token } = await server.as(1)
    const calling = {
      headers: { authorization: `Bearer ${token}` },
      ip: '127.0.0.1',
      requestOrigin: 'http://localhost',
    }
    const ctx = { ...contextOf(server), ...calling, operation: 'exportProducts' }
    const { parts } = await products(ctx, { query: { sort: ['id'] } })
    const rows = parts.body[Symbol.asyncIterator]()
    expect((await rows.next()).value).toContain('Product 1')
    await server.admin.delete(`/tokens/${token?.split('|')[0]}`)
    await expect(rows.next()).rejects.toMatchObject({ code: 'unauthenticated' })
    await settled()
  })

  it('is given up when the client takes no rows for a minute', async () => {
    const products = handlers.exportProducts as (ctx: any, input: any) => Promise<any>
    const { parts } = await products(contextOf(server), { query: { sort: ['id'] } })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const rows = parts.body[Symbol.asyncIterator]()
      expect((await rows.next()).value).toContain('Product 1')
      await vi.advanceTimersByTimeAsync(59_000)
      expect((await rows.next()).value).toContain('Product 201')
      await vi.advanceTimersByTimeAsync(61_000)
      await expect(rows.next()).rejects.toThrow('closed while it was read')
    } finally {
      vi.useRealTimers()
    }
    await expect.poll(() => open.closed - open.opened).toBeGreaterThanOrEqual(0)
  })
})

const contextOf = ({ app, store }: TestServer) => ({
  services: app.services,
  db: store.db,
  unit: null,
  user: null,
  token: null,
  time: new Date(start),
  query: '',
  headers: {},
})
