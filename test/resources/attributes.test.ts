// Custom attributes: the attribute itself with its options, and its effect on records.
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { isPostgres } from '../support/engine.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { pixel } from '../support/pictures.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()

type Attribute = Schema<'AttributeDefinition'>

/** Creates an attribute. By default, it belongs to organizations. */
async function define(changes: Record<string, unknown>): Promise<Attribute> {
  const { status, body, text } = await server.admin.post('/settings/attributes', {
    code: changes.type,
    name: 'Field',
    entity_type: 'organizations',
    ...changes,
  })
  if (status !== 201) throw new Error(text)
  return body.data
}

const industries = { type: 'select', code: 'industry', options: [{ name: 'Automotive' }, { name: 'Logistics' }] }
const optionIds = ({ options }: Attribute) => options.map(({ id }) => id)
const organization = (custom_attributes: Record<string, unknown> = {}) =>
  given(server.admin).organization({ custom_attributes })
const valuesOf = async (id: number) =>
  (await server.admin.get(`/contacts/organizations/${id}`)).body.data.custom_attributes
const write = (id: number, custom_attributes: unknown) =>
  server.admin.put(`/contacts/organizations/${id}`, { custom_attributes })

async function upload(sent: File): Promise<number> {
  const { body, headers } = await form({ file: sent })
  return (await server.admin.post('/files', body, { headers })).body.data.id
}

describe('listAttributes', () => {
  it('shows the 43 that are built in to everyone who is signed in, whatever the role', async () => {
    const clerk = await addUser(server, 'Clerk', { permissions: ['leads'] })
    const { status, body } = await clerk.get('/settings/attributes?is_user_defined=false')
    expect([status, body.meta.total]).toEqual([200, 43])
    expect((await clerk.post('/settings/attributes', { ...industries })).status).toBe(403)
  })

  it('is filtered by resource and type, and sorted by place', async () => {
    const { body } = await server.admin.get(
      '/settings/attributes?entity_type=persons&type=lookup,text&sort=-sort_order&is_required[not]=true&sort_order[gt]=4',
    )
    expect(body.data.map((each: Attribute) => each.code)).toEqual(['organization_id', 'user_id'])
  })
})

describe('createAttribute', () => {
  it('comes after the others, with its options in the order they were sent, and fires one pair', async () => {
    const made = await define(industries)
    expect(made).toMatchObject({ code: 'industry', sort_order: 4, is_user_defined: true, quick_add: true })
    expect(made.options.map(({ name, sort_order }) => [name, sort_order])).toEqual([
      ['Automotive', 1],
      ['Logistics', 2],
    ])
    expect(server.events()).toEqual(['settings.attribute.create.before', 'settings.attribute.create.after'])
  })

  it('is there at once in every record, unset, in its place among the others', async () => {
    const { id } = await organization()
    await define({ type: 'text', code: 'vat', sort_order: 9 })
    await define({ type: 'boolean', code: 'listed', sort_order: 8 })
    await define({ type: 'subheading', code: 'more' })
    expect(JSON.stringify(await valuesOf(id))).toBe('{"listed":null,"vat":null}')
  })

  it.each([
    ['a field of the resource', { type: 'text', code: 'persons_count' }, ['code']],
    ['a field of a body only', { type: 'text', code: 'tag_ids' }, ['code']],
    ['a built-in attribute', { type: 'text', code: 'address' }, ['code']],
    ['upper case', { type: 'text', code: 'VAT' }, ['code']],
    ['a word that every object inherits', { type: 'text', code: 'constructor' }, ['code']],
    ['a subheading that is required', { type: 'subheading', is_required: true }, ['is_required']],
    ['a look-up without a kind', { type: 'lookup' }, ['lookup_type']],
    ['a text with a kind', { type: 'text', lookup_type: 'leads' }, ['lookup_type']],
    [
      'a boolean with a kind and a default',
      { type: 'boolean', lookup_type: 'leads', default_value: true },
      ['lookup_type'],
    ],
    ['a date with a validation', { type: 'date', validation: 'url' }, ['validation']],
    ['a unique choice', { ...industries, is_unique: true }, ['is_unique']],
    ['a text with options', { type: 'text', options: [{ name: 'a' }] }, ['options']],
    ['options beside a kind', { ...industries, lookup_type: 'users' }, ['options']],
    ['options of one name', { ...industries, options: [{ name: 'a' }, { name: 'A' }] }, ['options.1.name']],
    ['a default that is none', { type: 'date', default_value: 'soon' }, ['default_value']],
    [
      'a default that names a missing record',
      { type: 'lookup', lookup_type: 'leads', default_value: 77 },
      ['default_value'],
    ],
    ['a default of a file', { type: 'file', default_value: 1 }, ['default_value']],
    [
      '501 options',
      { ...industries, options: Array.from({ length: 501 }, (_, n) => ({ name: `o${n}` })) },
      ['options'],
    ],
  ])('refuses %s', async (_what, changes, fields) => {
    const sent = { name: 'Field', entity_type: 'organizations', ...changes }
    const { status, body } = await server.admin.post('/settings/attributes', { code: 'field', ...sent })
    expect([status, Object.keys(body.errors ?? {})]).toEqual([422, fields])
    expect(server.events()).toEqual([])
  })

  it('refuses a code of another attribute with 409, but not one of another resource', async () => {
    const { id } = await define({ type: 'text', code: 'vat' })
    const again = { code: 'vat', name: 'VAT', type: 'text', entity_type: 'organizations' }
    const { status, body } = await server.admin.post('/settings/attributes', again)
    expect([status, body.conflicts]).toEqual([409, [{ entity_type: 'attributes', id, field: 'code' }]])
    expect((await server.admin.post('/settings/attributes', { ...again, entity_type: 'leads' })).status).toBe(201)
  })

  it('leaves nothing behind when it is only tried', async () => {
    const headers = { 'accord-dry-run': 'true' }
    const sent = { code: 'vat', name: 'VAT', type: 'text', entity_type: 'organizations' }
    expect((await server.admin.post('/settings/attributes', sent, { headers })).status).toBe(200)
    await define({ type: 'price', code: 'revenue' })
    expect((await organization({ revenue: 3 })).custom_attributes).toEqual({ revenue: 3 })
  })
})

describe('values', () => {
  it('are merged by code, cleared by null, and told with a hint when the code is unknown', async () => {
    const [automotive, logistics] = optionIds(await define(industries))
    await define({ type: 'text', code: 'vat' })
    const { id } = await organization({ vat: ' DE 1 ' })
    server.events()
    const industry = logistics
    expect((await write(id, { industry })).body.data.custom_attributes).toEqual({ industry, vat: 'DE 1' })
    expect(server.seen.at(-1)?.changed).toEqual(['custom_attributes.industry'])
    expect((await write(id, { vat: null })).body.data.custom_attributes).toEqual({ industry, vat: null })
    const { status, body } = await write(id, { indusrty: 1, industry: 9 })
    expect([status, body.errors]).toEqual([
      422,
      {
        'custom_attributes.indusrty': ['Unknown field. Did you mean `industry`?'],
        'custom_attributes.industry': [`Must be one of ${automotive}, ${logistics}.`],
      },
    ])
  })

  it('has its options in the order in which they are sent', async () => {
    const made = await define({ type: 'select', code: 'size', options: [{ name: 'S' }, { name: 'M' }, { name: 'L' }] })
    const turned = made.options.toReversed().map(({ id }: { id: number }) => ({ id }))
    const { body } = await server.admin.put(`/settings/attributes/${made.id}`, { options: [...turned, { name: 'XL' }] })
    expect(body.data.options.map(({ name }: { name: string }) => name)).toEqual(['L', 'M', 'S', 'XL'])
  })

  it('that stay the same change nothing: neither version nor log', async () => {
    await define({ type: 'price', code: 'revenue' })
    await define({ type: 'email', code: 'mails' })
    const made = await organization({ revenue: 1.1, mails: [{ value: 'a@example.com' }] })
    const { body } = await server.admin.put(`/contacts/organizations/${made.id}`, made)
    expect([body.data.version, server.seen.at(-1)?.changed]).toEqual([1, []])
  })

  it.each([
    ['text', { validation: 'numeric' }, ['-1.50', '+7'], ['1,5', '1e3', '.5']],
    ['text', { validation: 'decimal' }, ['0', '12.3456'], ['-1', '1.23456']],
    ['text', { validation: 'email' }, ['ada@example.com'], ['ada']],
    ['text', { validation: 'url' }, ['https://example.com/a?b'], ['example.com', 'ftp://example.com', 'http://']],
    ['text', {}, ['a'.repeat(255)], ['a'.repeat(256), 7, ['a']]],
    ['textarea', {}, ['one\r\ntwo'], ['a'.repeat(65_536)]],
    ['price', {}, [0, '12.5', '', 99_999_999_999.9999], [-1, 1.23456, 100_000_000_000, 'much']],
    ['boolean', {}, [true, 0, 'false', ''], ['yes', 2]],
    ['date', {}, ['2026-03-31', '2026-03-31T10:00:00Z'], ['2026-02-30', 'soon']],
    ['datetime', {}, ['2026-03-01 09:30', '2026-03-01T09:30:00+02:00'], ['2026-03-01T25:00:00Z', 'soon']],
    [
      'email',
      {},
      [[{ value: 'a@example.com' }], []],
      [[{ value: 'a' }], [{ value: 'a@b.de', label: 'x'.repeat(31) }], 'a@b.de'],
    ],
    [
      'phone',
      {},
      [[{ value: '+1 202', label: 'home' }]],
      [[{ value: 'call me' }], [{ value: '1 2' }, { value: '12' }]],
    ],
    ['address', {}, [{ city: 'London', country: 'gb' }], [{ country: 'XX' }, { town: 'London' }, 'London']],
    ['lookup', { lookup_type: 'lead_sources' }, [1, '1', ''], [99, 'one', [1]]],
    ['multiselect', { lookup_type: 'lead_types' }, [[2, 1], []], [[1, 1], [9], 1]],
    ['image', {}, [], [99, { id: 99, name: 'x' }, 'x']],
  ])('of type %s %j are checked', async (type, more, good, bad) => {
    await define({ type, code: 'field', ...more })
    const { id } = await organization()
    for (const field of good) expect.soft([field, (await write(id, { field })).status]).toEqual([field, 200])
    for (const field of bad) {
      const { status, body } = await write(id, { field })
      expect.soft([field, status]).toEqual([field, 422])
      expect.soft(Object.keys(body.errors).every((each) => each.startsWith('custom_attributes.field'))).toBe(true)
    }
  })

  it('of a subheading there are none', async () => {
    await define({ type: 'subheading', code: 'more' })
    const { id } = await organization()
    expect((await write(id, { more: 'x' })).body.errors).toEqual({ 'custom_attributes.more': ['Unknown field.'] })
  })

  it('that are required are needed on creation, and cannot be emptied later', async () => {
    const [industry] = optionIds(await define({ ...industries, is_required: true }))
    await define({ type: 'address', code: 'seat', is_required: true })
    await define({ type: 'text', code: 'vat', is_required: true, default_value: 'none' })
    await define({ type: 'boolean', code: 'listed', is_required: true })
    const { status, body } = await server.admin.post('/contacts/organizations', {
      name: 'A',
      custom_attributes: { seat: { city: 'B' } },
    })
    expect([status, Object.keys(body.errors).sort()]).toEqual([
      422,
      [
        'custom_attributes.industry',
        'custom_attributes.seat.address',
        'custom_attributes.seat.country',
        'custom_attributes.seat.postcode',
      ],
    ])
    const seat = { address: '1 Way', city: 'London', country: 'GB', postcode: 'W1' }
    const made = await organization({ industry, seat })
    expect(made.custom_attributes).toMatchObject({ vat: 'none', listed: false })
    expect((await write(made.id, {})).status).toBe(200)
    const emptied = await write(made.id, { industry: null, vat: ' ', seat: null })
    expect([emptied.status, Object.keys(emptied.body.errors)]).toEqual([
      422,
      ['custom_attributes.industry', 'custom_attributes.seat', 'custom_attributes.vat'],
    ])
  })

  it('of a record that has none are not asked for when the attribute becomes required, until they are written', async () => {
    const { id } = await organization()
    const vat = await define({ type: 'text', code: 'vat' })
    await server.admin.put(`/settings/attributes/${vat.id}`, { is_required: true })
    expect((await server.admin.put(`/contacts/organizations/${id}`, { name: 'Other' })).status).toBe(200)
    expect((await write(id, { vat: null })).status).toBe(200)
    expect((await write(id, { vat: 'x' })).status).toBe(200)
    expect((await write(id, { vat: null })).status).toBe(422)
  })

  it('that stay the same are taken although they fit no more', async () => {
    const vat = await define({ type: 'text', code: 'vat' })
    const seat = await define({ type: 'address', code: 'seat' })
    const ways = await define({ type: 'multiselect', code: 'ways', lookup_type: 'lead_types' })
    const { id } = await organization({ vat: 'none', seat: { city: 'London' }, ways: [] })
    await server.admin.put(`/settings/attributes/${vat.id}`, { validation: 'numeric' })
    for (const each of [seat, ways]) await server.admin.put(`/settings/attributes/${each.id}`, { is_required: true })
    const shown = (await server.admin.get(`/contacts/organizations/${id}`)).body.data
    const { status, body } = await server.admin.put(`/contacts/organizations/${id}`, { ...shown, name: 'Other' })
    expect([status, body.data?.custom_attributes]).toEqual([200, shown.custom_attributes])
    const refused = await write(id, { vat: 'other', seat: { city: 'Leeds' }, ways: null })
    expect([refused.status, Object.keys(refused.body.errors).sort()]).toEqual([
      422,
      [
        'custom_attributes.seat.address',
        'custom_attributes.seat.country',
        'custom_attributes.seat.postcode',
        'custom_attributes.vat',
        'custom_attributes.ways',
      ],
    ])
  })

  it('are logged whatever their attribute is called', async () => {
    await define({ type: 'text', code: 'token' })
    const { id } = await organization({ token: 'brass' })
    expect((await write(id, { token: 'tin' })).status).toBe(200)
    const logged = server.store.db
      .selectFrom('events')
      .select(['before', 'after'])
      .where('entity_type', '=', 'organizations')
    const { before, after } = await logged.orderBy('id', 'desc').executeTakeFirstOrThrow()
    expect([before, after].map((each) => JSON.parse(each ?? '{}').custom_attributes)).toEqual([
      { token: 'brass' },
      { token: 'tin' },
    ])
  })

  it('of a person created with a lead are validated at their place', async () => {
    await define({ type: 'text', code: 'nickname', entity_type: 'persons', is_required: true })
    const person = { name: 'Ada', emails: [{ value: 'ada@example.com' }] }
    const lead = { title: 'a', lead_value: 1 }
    const { status, body } = await server.admin.post('/leads', { ...lead, person })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['person.custom_attributes.nickname']])
    const sent = { ...lead, person: { ...person, custom_attributes: { nickname: 'Countess' } } }
    expect((await server.admin.post('/leads', sent)).status).toBe(201)
  })

  it('that must be unique are refused with 409 in the form they are compared in', async () => {
    await define({ type: 'text', code: 'vat', is_unique: true })
    await define({ type: 'phone', code: 'phones', is_unique: true })
    await define({ type: 'price', code: 'revenue', is_unique: true })
    const first = await organization({ vat: 'De 1', phones: [{ value: '+1 (202) 55' }], revenue: 1.1 })
    const name = 'Another'
    const { status, body } = await server.admin.post('/contacts/organizations', {
      name,
      custom_attributes: { vat: 'dE 1', phones: [{ value: '+1 202 1' }, { value: '+120255' }], revenue: '1.10' },
    })
    const fields = ['custom_attributes.vat', 'custom_attributes.phones.1.value', 'custom_attributes.revenue']
    expect([status, Object.keys(body.errors)]).toEqual([409, fields])
    expect(body.conflicts).toEqual(fields.map((field) => ({ entity_type: 'organizations', id: first.id, field })))
    expect((await write(first.id, { vat: 'DE 1' })).status).toBe(200)
    expect((await write(first.id, { vat: null })).status).toBe(200)
    expect(
      (await server.admin.post('/contacts/organizations', { name, custom_attributes: { vat: 'de 1' } })).status,
    ).toBe(201)
    expect((await server.admin.delete(`/contacts/organizations/${first.id}`)).status).toBe(200)
    const freed = await server.admin.post('/contacts/organizations', {
      name: 'Third',
      custom_attributes: { revenue: 1.1 },
    })
    expect(freed.status).toBe(201)
  })

  it('that must be unique do not name a record out of sight', async () => {
    await define({ type: 'text', code: 'vat', is_unique: true })
    await organization({ vat: 'x' })
    const clerk = await addUser(server, 'Clerk', { view: 'individual' })
    const { body } = await clerk.post('/contacts/organizations', { name: 'B', custom_attributes: { vat: 'x' } })
    expect(body.conflicts).toEqual([{ entity_type: 'organizations', id: null, field: 'custom_attributes.vat' }])
  })

  it('name only records the caller may see, and keep one that is out of sight', async () => {
    await define({ type: 'lookup', code: 'deal', lookup_type: 'leads' })
    const deal = (await given(server.admin).lead()).id
    const clerk = await addUser(server, 'Clerk', { view: 'individual' })
    const own = (await clerk.post('/contacts/organizations', { name: 'Own' })).body.data.id
    const refused = await clerk.put(`/contacts/organizations/${own}`, { custom_attributes: { deal } })
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      { 'custom_attributes.deal': [`No lead has id ${deal}.`] },
    ])
    expect((await write(own, { deal })).status).toBe(200)
    const kept = await clerk.put(`/contacts/organizations/${own}`, { name: 'Mine', custom_attributes: { deal } })
    expect([kept.status, kept.body.data.custom_attributes]).toEqual([200, { deal }])
  })

  it('of users name active ones', async () => {
    await define({ type: 'select', code: 'keeper', lookup_type: 'users' })
    const gone = await addUser(server, 'Gone', { isActive: false })
    const { id } = await organization({ keeper: 1 })
    expect((await write(id, { keeper: gone.id })).status).toBe(422)
  })

  it('of files are attached, shown as a file, taken back as one, and let go of', async () => {
    await define({ type: 'image', code: 'logo' })
    await define({ type: 'file', code: 'terms' })
    const [logo, terms] = [await upload(file('logo.png', pixel)), await upload(file('terms.txt', 'These.'))]
    const made = await organization({ logo, terms })
    expect(made.custom_attributes).toMatchObject({ logo: { id: logo, name: 'logo.png', content_type: 'image/png' } })
    expect((await server.admin.delete(`/files/${logo}`)).status).toBe(409)
    expect((await server.admin.put(`/contacts/organizations/${made.id}`, made)).body.data.version).toBe(1)
    expect((await write(made.id, { logo: terms })).status).toBe(422)
    expect((await write(made.id, { logo: null })).status).toBe(200)
    expect((await server.admin.get(`/files/${logo}`)).status).toBe(404)
    const copy = await organization({ terms })
    expect((copy.custom_attributes.terms as { id: number }).id).not.toBe(terms)
    await server.admin.delete(`/contacts/organizations/${made.id}`)
    expect((await server.admin.get(`/files/${terms}`)).status).toBe(404)
    expect(await valuesOf(copy.id)).toMatchObject({ terms: { name: 'terms.txt' } })
  })

  it.each(['/leads', '/contacts/persons', '/contacts/organizations', '/quotes', '/products', '/settings/warehouses'])(
    'are written, shown, found and sorted by on %s',
    async (path) => {
      const entity_type = path.split('/').at(-1) ?? ''
      await define({ type: 'text', code: 'tone', entity_type })
      const make = given(server.admin)
      const makers: Record<string, () => Promise<{ id: number }>> = {
        leads: make.lead,
        persons: make.person,
        organizations: make.organization,
        quotes: make.quote,
        products: make.product,
        warehouses: async () =>
          (
            await server.admin.post('/settings/warehouses', {
              name: `House ${Math.random()}`,
              contact_name: 'Ada',
              contact_emails: [{ value: `a${Math.random()}@example.com` }],
              contact_address: { address: '1', city: 'London', country: 'GB', postcode: 'W1' },
            })
          ).body.data,
      }
      const ids: number[] = []
      for (const tone of ['Blue', 'amber', null]) {
        const made = await makers[entity_type]?.()
        ids.push(made?.id ?? 0)
        const { status, body, text } = await server.admin.put(`${path}/${made?.id}`, { custom_attributes: { tone } })
        expect(status === 200 ? body.data.custom_attributes : text).toEqual({ tone })
      }
      const [blue, amber, none] = ids
      const found = async (query: string) =>
        (await server.admin.get(`${path}?${query}`)).body.data.map(({ id }: { id: number }) => id)
      expect(await found('custom_attributes[tone]=blue')).toEqual([blue])
      expect(await found('custom_attributes[tone]=AMBER,blue&sort=custom_attributes.tone')).toEqual([amber, blue])
      expect(await found('sort=-custom_attributes.tone')).toEqual([blue, amber, none])
    },
  )
})

describe('lists', () => {
  const find = async (query: string) => {
    const { body } = await server.admin.get(`/contacts/organizations?${query}&per_page=100`)
    return body.data?.map(({ name }: { name: string }) => name)
  }

  it('are sorted by option order, with cursors too, and put what is unset last in both directions', async () => {
    const { options } = await define({
      ...industries,
      options: [
        { name: 'B', sort_order: 2 },
        { name: 'A', sort_order: 1 },
      ],
    })
    const [b, a] = ['B', 'A'].map((name) => options.find((each) => each.name === name)?.id)
    for (const [name, industry] of Object.entries({ one: b, two: a, three: null, four: a, five: null }))
      await server.admin.post('/contacts/organizations', { name, custom_attributes: { industry } })
    expect(await find('sort=custom_attributes.industry,id')).toEqual(['two', 'four', 'one', 'three', 'five'])
    expect(await find('sort=-custom_attributes.industry,id')).toEqual(['one', 'two', 'four', 'three', 'five'])
    const seen: string[] = []
    let next: string | null = '/contacts/organizations?cursor=&per_page=2&sort=-custom_attributes.industry,id'
    while (next !== null) {
      const { body }: { body: Schema<'OrganizationPage'> } = await server.admin.get(next)
      seen.push(...body.data.map(({ name }) => name))
      next = body.links.next?.replace(/^.*\/api\/admin/, '') ?? null
    }
    expect(seen).toEqual(['one', 'two', 'four', 'three', 'five'])
  })

  it('refuse what is unknown or cannot be compared, all at once and at its place', async () => {
    await define(industries)
    await define({ type: 'address', code: 'seat' })
    await define({ type: 'date', code: 'founded' })
    const { status, body } = await server.admin.get(
      '/contacts/organizations?custom_attributes[industri]=1&custom_attributes[industry]=x&custom_attributes[seat]=x&custom_attributes[founded]=soon&custom_attributes[__proto__]=1',
    )
    expect([status, body.errors]).toEqual([
      422,
      {
        'query.custom_attributes[industri]': ['Unknown attribute. Did you mean `industry`?'],
        'query.custom_attributes[industry]': ['Must be ids, separated by commas.'],
        'query.custom_attributes[seat]': ['A list cannot be filtered by address.'],
        'query.custom_attributes[founded]': ['Must be dates such as 2026-03-31, separated by commas.'],
        'query.custom_attributes[__proto__]': ['Unknown attribute.'],
      },
    ])
    for (const [query, field] of [
      ['sort=custom_attributes.industri', 'query.sort'],
      ['sort=custom_attributes.seat', 'query.sort'],
      ['sort=custom_attributes.', 'query.sort'],
      ['custom_attributes=1', 'query.custom_attributes'],
      ['custom_attributes[industry]=1&custom_attributes[industry]=2', 'query.custom_attributes'],
      ['custom_attributes[industry]=1&custom_attributes=2', 'query.custom_attributes'],
      ['custom_attributes[industry][gte]=1', 'query.custom_attributes[industry][gte]'],
      ['custom_attributes[industry][like]=1', 'query.custom_attributes[industry][like]'],
      ['custom_attributes[industry][null]=x', 'query.custom_attributes[industry][null]'],
      ['custom_attributes[founded][gte]=soon', 'query.custom_attributes[founded][gte]'],
      ['custom_attributes[founded][gte]=2026-01-01,2026-01-02', 'query.custom_attributes[founded][gte]'],
      ['custom_attributes[industri][gte]=1', 'query.custom_attributes[industri][gte]'],
      ['custom_attributes[]=1', 'query.custom_attributes[]'],
      ['nope[industry]=1', 'query.nope[industry]'],
    ]) {
      const refused = await server.admin.get(`/contacts/organizations?${query}`)
      expect.soft([query, refused.status, Object.keys(refused.body.errors ?? {})]).toEqual([query, 422, [field]])
    }
  })

  it('take a hundred values of an attribute, and no more', async () => {
    await define({ type: 'email', code: 'mails' })
    const mails = (count: number) =>
      server.admin.get(
        `/contacts/organizations?custom_attributes[mails]=${Array.from({ length: count }, (_, n) => n)},1`,
      )
    expect((await mails(100)).status).toBe(200)
    const { status, body } = await mails(101)
    expect([status, Object.keys(body.errors)]).toEqual([422, ['query.custom_attributes[mails]']])
  })

  it('find a telephone number however it is written, unique or not', async () => {
    await define({ type: 'phone', code: 'phones' })
    await organization({ phones: [{ value: '+1 (202) 555-0100' }] })
    expect(await find('custom_attributes[phones]=%2B12025550100')).toHaveLength(1)
    expect(await find('custom_attributes[phones]=1.202.555.0100')).toHaveLength(1)
    expect(await find('custom_attributes[phones]=2025550100')).toHaveLength(0)
  })

  it('take operators, a day of timestamps from its start to its end, and unique values', async () => {
    await define({ type: 'datetime', code: 'met' })
    await define({ type: 'text', code: 'vat', is_unique: true })
    for (const [name, met, vat] of [
      ['early', '2026-03-30T23:59:59Z', 'A'],
      ['first', '2026-03-31T00:00:00Z', 'B'],
      ['last', '2026-03-31T23:59:59Z', 'C'],
      ['never', null, null],
    ])
      await server.admin.post('/contacts/organizations', { name, custom_attributes: { met, vat } })
    const of = (query: string) => find(`${query}&sort=id`)
    expect(await of('custom_attributes[met][gte]=2026-03-31')).toEqual(['first', 'last'])
    expect(await of('custom_attributes[met][lte]=2026-03-31')).toEqual(['early', 'first', 'last'])
    expect(await of('custom_attributes[met][gt]=2026-03-30')).toEqual(['first', 'last'])
    expect(await of('custom_attributes[met][lt]=2026-03-31')).toEqual(['early'])
    const both = 'custom_attributes[met][gte]=2026-03-31T00:00:00Z&custom_attributes[met][lt]=2026-03-31T12:00:00Z'
    expect(await of(both)).toEqual(['first'])
    expect(await of('custom_attributes[vat][not]=b')).toEqual(['early', 'last', 'never'])
    expect(await of('custom_attributes[vat][null]=true')).toEqual(['never'])
    expect(await of('custom_attributes[met][null]=true&custom_attributes[vat][null]=false')).toEqual([])
    const exported = await server.admin.get(
      '/contacts/organizations/export?format=ndjson&custom_attributes[vat][not]=B',
    )
    expect(exported.text.trim().split('\n')).toHaveLength(3)
  })

  it.runIf(!isPostgres)('use an index for filters, and the stored unique values for unique attributes', async () => {
    const { id } = await define(industries)
    const plan = async () =>
      (
        await sql<{
          detail: string
        }>`explain query plan select id from organizations where organizations.custom_attributes ->> '$.industry' in (1, 2)`.execute(
          server.store.db,
        )
      ).rows.map(({ detail }) => detail)
    expect((await plan()).join()).toContain(`organizations_attribute_${id}_index`)
    await server.admin.delete(`/settings/attributes/${id}`)
    expect((await plan()).join()).not.toContain('attribute')
    await define({ type: 'text', code: 'vat', is_unique: true })
    await organization({ vat: 'Ünïque' })
    expect(await find('custom_attributes[vat]=ÜNÏQUE')).toHaveLength(1)
  })

  it('show what is chosen by name when asked to', async () => {
    const [, industry] = optionIds(await define(industries))
    await define({ type: 'checkbox', code: 'ways', lookup_type: 'lead_sources' })
    const { id } = await organization({ industry, ways: [5, 1] })
    await organization()
    const { body } = await server.admin.get('/contacts/organizations?include=custom_labels&sort=id')
    expect(body.data.map((each: { custom_labels: unknown }) => each.custom_labels)).toEqual([
      { industry: 'Logistics', ways: ['Direct', 'Email'] },
      { industry: null, ways: null },
    ])
    expect((await server.admin.get(`/contacts/organizations/${id}`)).body.data).not.toHaveProperty('custom_labels')
  })
})

describe('lookupAttributeValues', () => {
  it('answers what the caller may see, by name, and nothing of a kind the caller may not list', async () => {
    const make = given(server.admin)
    for (const title of ['Zeta', 'alpha', 'Beta']) await make.lead({ title })
    const { body } = await server.admin.get('/settings/attribute-lookups/leads?per_page=2')
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(['alpha', 'Beta'])
    expect(body.meta).toMatchObject({ total: 3, last_page: 2 })
    const ids = body.data.map(({ id }: { id: number }) => id)
    expect((await server.admin.get(`/settings/attribute-lookups/leads?id=${ids[1]}`)).body.data).toHaveLength(1)
    expect((await server.admin.get('/settings/attribute-lookups/leads?q=ZE')).body.data).toHaveLength(1)
    const clerk = await addUser(server, 'Clerk', { view: 'individual', permissions: ['leads', 'leads.create'] })
    expect((await clerk.get('/settings/attribute-lookups/leads')).body.meta.total).toBe(0)
    await clerk.post('/leads', { title: 'Own', lead_value: 1 })
    expect((await clerk.get('/settings/attribute-lookups/leads')).body.data).toMatchObject([{ name: 'Own' }])
    expect((await clerk.get('/settings/attribute-lookups/lead_sources')).body.meta.total).toBe(0)
    expect((await server.admin.get('/settings/attribute-lookups/lead_pipeline_stages')).body.meta.total).toBe(6)
    expect((await server.admin.get('/settings/attribute-lookups/nothing')).status).toBe(404)
  })
})

describe('updateAttribute', () => {
  const change = (id: number, body: unknown, query = '') => server.admin.put(`/settings/attributes/${id}${query}`, body)

  it('keeps code, type and resource, and takes them back unchanged', async () => {
    const made = await define({ type: 'text', code: 'vat', default_value: 'none' })
    const { status, body } = await change(made.id, made)
    expect([status, body.data.version]).toEqual([200, 1])
    const refused = await change(made.id, { code: 'tax', type: 'date', entity_type: 'leads' })
    expect([refused.status, Object.keys(refused.body.errors).sort()]).toEqual([422, ['code', 'entity_type', 'type']])
  })

  it('of a built-in one changes name, place and quick_add only', async () => {
    expect((await change(1, { name: 'Subject', sort_order: 3, quick_add: false })).status).toBe(200)
    for (const body of [{ is_required: false }, { code: 'xy' }, { default_value: 'x' }, { is_unique: true }])
      expect.soft([body, (await change(1, body)).body.code]).toEqual([body, 'protected'])
    expect((await change(11, { is_unique: false })).body.code).toBe('protected')
  })

  it('of a built-in one takes back what was read, although records have values', async () => {
    const make = given(server.admin)
    for (const record of [make.organization, make.product, make.person]) await record()
    const { body } = await server.admin.get('/settings/attributes?is_unique=true&per_page=100')
    for (const shown of body.data) {
      const kept = await change(shown.id, shown)
      expect.soft([shown.code, kept.status, kept.body.data?.version]).toEqual([shown.code, 200, 1])
    }
  })

  it.runIf(!isPostgres)('leaves the unique values alone unless it turns', async () => {
    const made = await define({ type: 'text', code: 'vat', is_unique: true })
    await organization({ vat: 'a' })
    const kept = () => sql<{ rowid: number }>`select rowid, * from unique_values`.execute(server.store.db)
    await sql`update unique_values set rowid = rowid + 100`.execute(server.store.db)
    const { rows } = await kept()
    expect((await change(made.id, { ...made, name: 'VAT' })).status).toBe(200)
    expect((await kept()).rows).toEqual(rows)
  })

  it('looks at its default again when values must look otherwise, and drops one of other records', async () => {
    const vat = await define({ type: 'text', code: 'vat', default_value: 'none' })
    const refused = await change(vat.id, { validation: 'numeric' })
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['default_value']])
    expect((await change(vat.id, { validation: 'numeric', default_value: '0' })).status).toBe(200)
    const about = await define({ type: 'lookup', code: 'about', lookup_type: 'lead_sources', default_value: 1 })
    expect((await change(about.id, { ...about, lookup_type: 'leads' })).status).toBe(422)
    const { status, body } = await change(about.id, { lookup_type: 'leads' })
    expect([status, body.data.default_value]).toEqual([200, null])
  })

  it('adds, renames, swaps and sorts options, and finds them by name', async () => {
    const { id, options } = await define(industries)
    const [first, second] = options
    const { body } = await change(id, {
      options: [{ id: first?.id, name: 'logistics' }, { id: second?.id, name: 'Automotive' }, { name: 'Retail' }],
    })
    const third = body.data.options[2].id
    expect([first?.id, second?.id]).not.toContain(third)
    expect(body.data.options).toEqual([
      { id: first?.id, name: 'logistics', sort_order: 1 },
      { id: second?.id, name: 'Automotive', sort_order: 2 },
      { id: third, name: 'Retail', sort_order: 3 },
    ])
    expect(server.events()).toContain('settings.attribute.update.after')
    const again = await change(id, { options: [{ name: 'RETAIL', sort_order: 0 }, { name: 'Logistics' }] })
    expect(again.body.data.options.map((each: { id: number }) => each.id)).toEqual([third, first?.id])
    const refused = await change(id, { options: [{ id: 99 }, { sort_order: 1 }, { name: 'Retail' }, { id: third }] })
    expect([refused.status, Object.keys(refused.body.errors)]).toEqual([
      422,
      ['options.0.id', 'options.1.name', 'options.3.id'],
    ])
  })

  it('names the option that was meant, and only the options in use', async () => {
    const options = ['Small', 'Large', 'X-Large'].map((name) => ({ name }))
    const { body } = await server.admin.post('/settings/attributes', {
      ...{ entity_type: 'products', code: 'size', name: 'Size', type: 'select' },
      options,
    })
    const [small, large, huge] = body.data.options.map(({ id }: { id: number }) => id)
    const product = (size: unknown) =>
      server.admin.post('/products', { sku: `s${size}`, name: 'Shirt', price: 1, custom_attributes: { size } })
    const hints = await Promise.all(
      ['small', 'Lrge', 'x large', '#'].map(async (size) => (await product(size)).body.errors),
    )
    expect(hints.map((errors) => errors['custom_attributes.size'])).toEqual([
      [`Must be the id of an option. Did you mean ${small} (Small)?`],
      [`Must be the id of an option. Did you mean ${large} (Large)?`],
      [`Must be the id of an option. Did you mean ${huge} (X-Large)?`],
      ['Must be the id of an option.'],
    ])
    expect((await product(large)).status).toBe(201)
    const { status, body: refused } = await server.admin.put(`/settings/attributes/${body.data.id}`, {
      options: [{ id: huge }],
    })
    expect([status, refused.detail]).toEqual([
      409,
      'Large: in use; send force=true to take it from the records that have it.',
    ])
  })

  it('keeps an option that records have, unless it is forced to take it from them', async () => {
    const { id, options } = await define({ ...industries, type: 'multiselect' })
    const [first, second] = options.map((option) => option.id)
    const { id: holder } = await organization({ industry: [second, first] })
    await server.admin.put(`/settings/attributes/${id}`, { default_value: [first] })
    server.events()
    const only = { options: [{ id: second }] }
    const refused = await change(id, only)
    expect([refused.status, refused.body.code, refused.body.conflicts]).toEqual([
      409,
      'in_use',
      [{ entity_type: 'organizations', id: holder, field: 'custom_attributes.industry' }],
    ])
    expect(await valuesOf(holder)).toEqual({ industry: [second, first] })
    const forced = await change(id, only, '?force=true')
    expect([forced.status, forced.body.data.default_value]).toEqual([200, null])
    expect(await valuesOf(holder)).toEqual({ industry: [second] })
    expect(server.events()).toEqual(['settings.attribute.update.before', 'settings.attribute.update.after'])
  })

  it('takes an option from every record that has it, and only from those', async () => {
    const { id, options } = await define(industries)
    const [first, second] = options.map((option) => option.id)
    const [holder, other] = [await organization({ industry: first }), await organization({ industry: second })]
    expect((await change(id, { options: [{ id: second }] }, '?force=true')).status).toBe(200)
    const { body } = await server.admin.get(`/contacts/organizations?id=${holder.id},${other.id}&sort=id`)
    expect(body.data.map((each: Schema<'Organization'>) => [each.custom_attributes, each.version])).toEqual([
      [{ industry: null }, 2],
      [{ industry: second }, 1],
    ])
  })

  it('refuses to make unique what is not, names the records, and does not when they differ', async () => {
    const { id } = await define({ type: 'text', code: 'vat' })
    const [one, two] = [await organization({ vat: 'a' }), await organization({ vat: 'A' })]
    const { status, body } = await change(id, { is_unique: true })
    expect([status, body.code, body.conflicts.map((each: { id: number }) => each.id)]).toEqual([
      409,
      'unique_violation',
      [one.id, two.id],
    ])
    await write(two.id, { vat: 'b' })
    expect((await change(id, { is_unique: true })).status).toBe(200)
    expect((await write(two.id, { vat: 'A' })).status).toBe(409)
    expect((await change(id, { is_unique: false })).status).toBe(200)
    expect((await write(two.id, { vat: 'A' })).status).toBe(200)
  })

  it('lets persons share telephone numbers, and forbids it only when none is shared', async () => {
    const numbers = (await server.admin.get('/settings/attributes?entity_type=persons&code=contact_numbers')).body
      .data[0]
    const make = given(server.admin)
    const contact_numbers = [{ value: '+1 (202) 555-0100' }]
    const first = await make.person({ contact_numbers })
    const person = (value: string) => ({ name: 'P', emails: [{ value: `${value}@example.com` }], contact_numbers })
    expect(numbers.is_unique).toBe(false)
    expect((await server.admin.post('/contacts/persons', person('a'))).status).toBe(201)
    const found = await server.admin.get('/contacts/persons?phone=%2B1%20202%20555%200100')
    expect(found.body.meta.total).toBe(2)
    expect((await change(numbers.id, { is_unique: true })).status).toBe(409)
    await server.admin.put(`/contacts/persons/${first.id}`, { contact_numbers: [] })
    expect((await change(numbers.id, { is_unique: true })).status).toBe(200)
    expect((await server.admin.post('/contacts/persons', person('b'))).status).toBe(409)
  })

  it('turns to another kind of records only while no value names one', async () => {
    const { id } = await define({ type: 'lookup', code: 'about', lookup_type: 'lead_sources' })
    expect((await change(id, { lookup_type: 'lead_types' })).status).toBe(200)
    await organization({ about: 1 })
    const { status, body } = await change(id, { lookup_type: 'leads' })
    expect([status, body.code]).toEqual([409, 'in_use'])
  })
})

describe('deleteAttribute', () => {
  it('takes the value from every record, frees the code, and leaves built-in ones alone', async () => {
    const { id } = await define({ type: 'text', code: 'vat', is_unique: true })
    const held = await organization({ vat: 'x' })
    server.events()
    expect((await server.admin.delete(`/settings/attributes/${id}`)).status).toBe(200)
    expect(server.events()).toEqual(['settings.attribute.delete.before', 'settings.attribute.delete.after'])
    expect((await server.admin.get(`/contacts/organizations/${held.id}`)).body.data).toMatchObject({
      custom_attributes: {},
      version: 2,
    })
    await define({ type: 'price', code: 'vat' })
    expect(await valuesOf(held.id)).toEqual({ vat: null })
    const { status, body } = await server.admin.delete('/settings/attributes/1')
    expect([status, body.code]).toEqual([409, 'protected'])
  })

  it('lets go of its files, but for those that the record names in another', async () => {
    const terms = await define({ type: 'file', code: 'terms' })
    await define({ type: 'file', code: 'copy' })
    const [shared, own] = [await upload(file('a.txt', 'Shared.')), await upload(file('b.txt', 'Own.'))]
    const held = await organization({ terms: shared, copy: shared })
    await organization({ terms: own })
    expect((await server.admin.delete(`/settings/attributes/${terms.id}`)).status).toBe(200)
    expect(await valuesOf(held.id)).toMatchObject({ copy: { id: shared } })
    expect((await server.admin.get(`/files/${own}`)).status).toBe(404)
  })

  it('ends the cursors of its sort, also when another attribute gets its code', async () => {
    const define = async (type: string): Promise<string> => {
      const body = { code: 'rank', name: 'Rank', type, entity_type: 'leads' }
      const { status, body: reply, text } = await server.admin.post('/settings/attributes', body)
      expect(status, text).toBe(201)
      return `/settings/attributes/${reply.data.id}`
    }
    const path = await define('text')
    for (const rank of ['a', 'b', 'c'])
      await server.admin.post('/leads', { title: 'Deal', lead_value: 1, custom_attributes: { rank } })
    const first = await server.admin.get('/leads?sort=custom_attributes.rank&per_page=1&cursor=')
    const next = `/leads?sort=custom_attributes.rank&per_page=1&cursor=${first.body.meta.next_cursor}`
    expect((await server.admin.get(next)).status).toBe(200)
    expect((await server.admin.delete(path)).status).toBe(200)
    const refused = async () => {
      const { status, body } = await server.admin.get(next)
      return [status, Object.keys(body.errors)]
    }
    expect(await refused()).toEqual([422, ['query.sort']])
    // PostgreSQL does not compare a number with the text `a` of the cursor.
    await define('price')
    expect(await refused()).toEqual([422, ['query.cursor']])
  })
})

describe('massUpdateAttributes', () => {
  it('puts attributes into the quick-create form or takes them out', async () => {
    const { id } = await define(industries)
    const { body } = await server.admin.post('/settings/attributes/mass-update', {
      ids: [1, id, 999],
      value: false,
    })
    expect([body.data.processed, body.data.failed[0].status]).toEqual([[1, id], 404])
    expect((await server.admin.get('/settings/attributes?quick_add=false')).body.meta.total).toBe(2)
  })
})

describe('a record that is referred to', () => {
  it('is removed from values, lists and defaults when it is deleted, with an event for each record', async () => {
    const deal = await define({
      type: 'lookup',
      code: 'deal',
      lookup_type: 'leads',
      is_required: true,
      is_unique: true,
    })
    await define({ type: 'multiselect', code: 'deals', lookup_type: 'leads', entity_type: 'leads' })
    const [one, two] = [await given(server.admin).lead(), await given(server.admin).lead()]
    const holder = await organization({ deal: one.id })
    await server.admin.put(`/leads/${two.id}`, { custom_attributes: { deals: [two.id, one.id] } })
    await server.admin.put(`/settings/attributes/${deal.id}`, { default_value: one.id })
    server.events()
    expect((await server.admin.delete(`/leads/${one.id}`)).status).toBe(200)
    expect(server.events().filter((name) => name.endsWith('.after'))).toEqual([
      'lead.update.after',
      'settings.attribute.update.after',
      'contacts.organization.update.after',
      'lead.delete.after',
    ])
    expect(await valuesOf(holder.id)).toEqual({ deal: null })
    const left = (await server.admin.get(`/leads/${two.id}`)).body.data
    expect([left.custom_attributes, left.version]).toEqual([{ deals: [two.id] }, 3])
    expect((await server.admin.get(`/settings/attributes/${deal.id}`)).body.data.default_value).toBeNull()
    expect((await write(holder.id, { deal: two.id })).status).toBe(200)
  })

  it('is removed with one change of a record that names it in several attributes', async () => {
    for (const code of ['buyer', 'seller'])
      await define({ type: 'lookup', code, lookup_type: 'organizations', entity_type: 'leads' })
    const { id } = await organization()
    const lead = await given(server.admin).lead({ custom_attributes: { buyer: id, seller: id } as never })
    server.events()
    expect((await server.admin.delete(`/contacts/organizations/${id}`)).status).toBe(200)
    expect(server.events().filter((name) => name === 'lead.update.after')).toHaveLength(1)
    const { custom_attributes, version } = (await server.admin.get(`/leads/${lead.id}`)).body.data
    expect([custom_attributes, version]).toEqual([{ buyer: null, seller: null }, 2])
  })

  it('is removed even from records that the deleting user neither sees nor may change', async () => {
    await define({ type: 'lookup', code: 'deal', lookup_type: 'leads' })
    const clerk = await addUser(server, 'Clerk', { view: 'individual', permissions: ['leads.create', 'leads.delete'] })
    const lead = (await clerk.post('/leads', { title: 'a', lead_value: 1 })).body.data
    const holder = await organization({ deal: lead.id })
    expect((await clerk.delete(`/leads/${lead.id}`)).status).toBe(200)
    expect(await valuesOf(holder.id)).toEqual({ deal: null })
  })

  it('may be a stage that goes with its pipeline, or a user', async () => {
    await define({ type: 'select', code: 'stage', lookup_type: 'lead_pipeline_stages' })
    await define({ type: 'lookup', code: 'keeper', lookup_type: 'users' })
    const pipeline = await given(server.admin).pipeline()
    const keeper = await addUser(server, 'Keeper')
    const holder = await organization({ stage: pipeline.stages[1]?.id, keeper: keeper.id })
    expect((await server.admin.delete(`/pipelines/${pipeline.id}`)).status).toBe(200)
    expect((await server.admin.delete(`/settings/users/${keeper.id}`)).status).toBe(200)
    expect(await valuesOf(holder.id)).toEqual({ stage: null, keeper: null })
  })
})

describe('a record that is restored', () => {
  it('has its values again, without those of attributes, options and records that are gone', async () => {
    const kept = await define({ type: 'text', code: 'vat', is_unique: true })
    const { id, options } = await define(industries)
    await define({ type: 'multiselect', code: 'deals', lookup_type: 'leads' })
    await define({ type: 'text', code: 'note' })
    const [one, two] = [await given(server.admin).lead(), await given(server.admin).lead()]
    const held = await organization({ vat: 'x', industry: options[0]?.id, deals: [one.id, two.id], note: 'n' })
    await server.admin.delete(`/contacts/organizations/${held.id}`)
    await server.admin.put(`/settings/attributes/${id}`, { options: [{ id: options[1]?.id }] })
    await server.admin.delete(`/leads/${one.id}`)
    const note = (await server.admin.get('/settings/attributes?code=note')).body.data[0]
    await server.admin.delete(`/settings/attributes/${note.id}`)
    const { status, body } = await server.admin.post(`/contacts/organizations/${held.id}/restore`)
    expect([status, body.data?.custom_attributes]).toEqual([200, { vat: 'x', industry: null, deals: [two.id] }])
    expect(body.meta.dropped).toEqual([
      { entity_type: 'options', id: options[0]?.id, field: 'custom_attributes.industry' },
      { entity_type: 'leads', id: one.id, field: 'custom_attributes.deals' },
    ])
    expect(
      (await server.admin.post('/contacts/organizations', { name: 'B', custom_attributes: { vat: 'X' } })).status,
    ).toBe(409)
    expect(kept.is_unique).toBe(true)
  })

  it('has none of the values of another attribute that was called the same, nor what its attribute takes no more', async () => {
    const old = await define({ type: 'text', code: 'mails' })
    const about = await define({ type: 'lookup', code: 'about', lookup_type: 'lead_sources' })
    const vat = await define({ type: 'text', code: 'vat' })
    const rate = await define({ type: 'text', code: 'rate' })
    const held = await organization({ mails: 'hello', about: 1, vat: 'none', rate: '7' })
    await server.admin.delete(`/contacts/organizations/${held.id}`)
    await server.admin.delete(`/settings/attributes/${old.id}`)
    const mails = await define({ type: 'email', code: 'mails', is_unique: true })
    expect((await server.admin.put(`/settings/attributes/${about.id}`, { lookup_type: 'lead_types' })).status).toBe(200)
    for (const { id } of [vat, rate]) await server.admin.put(`/settings/attributes/${id}`, { validation: 'numeric' })
    const { status, body } = await server.admin.post(`/contacts/organizations/${held.id}/restore`)
    const left = { about: null, mails: null, rate: '7', vat: null }
    expect([status, body.data?.custom_attributes]).toEqual([200, left])
    expect(body.meta.dropped).toEqual([
      { entity_type: 'attributes', id: about.id, field: 'custom_attributes.about' },
      { entity_type: 'attributes', id: mails.id, field: 'custom_attributes.mails' },
      { entity_type: 'attributes', id: vat.id, field: 'custom_attributes.vat' },
    ])
    expect((await server.admin.get('/contacts/organizations/export')).status).toBe(200)
    expect((await server.admin.get('/contacts/organizations?custom_attributes[mails]=hello')).status).toBe(200)
  })

  it('does not take a telephone number that must be unique by now and is that of another', async () => {
    const numbers = (await server.admin.get('/settings/attributes?entity_type=persons&code=contact_numbers')).body
      .data[0]
    const turn = (is_unique: boolean) => server.admin.put(`/settings/attributes/${numbers.id}`, { is_unique })
    const make = given(server.admin)
    const contact_numbers = [{ value: '+1 202 555 0100' }]
    const [one, two] = [await make.person({ contact_numbers }), await make.person({ contact_numbers })]
    await server.admin.delete(`/contacts/persons/${one.id}`)
    expect((await turn(true)).status).toBe(200)
    const { status, body } = await server.admin.post(`/contacts/persons/${one.id}/restore`)
    const field = 'contact_numbers.0.value'
    expect([status, body.conflicts]).toEqual([409, [{ entity_type: 'persons', id: two.id, field }]])
    await server.admin.put(`/contacts/persons/${two.id}`, { contact_numbers: [] })
    expect((await server.admin.post(`/contacts/persons/${one.id}/restore`)).status).toBe(200)
    expect((await server.admin.put(`/contacts/persons/${two.id}`, { contact_numbers })).status).toBe(409)
  })
})
