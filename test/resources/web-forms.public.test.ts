// Public web forms: definition, page, script, and submissions, which create persons and leads.
import { describe, expect, it } from 'vitest'
import { deleteNamed } from '../support/deleted.ts'
import { given } from '../support/given.ts'
import { statementsOf } from '../support/statements.ts'
import { useServer } from '../support/using.ts'

const attribute: Record<string, number> = {}
const basic = {
  title: 'Contact us',
  submit_button_label: 'Send',
  submit_success_action: 'message',
  submit_success_content: 'Thank you.',
}

const server = useServer({}, async (server) => {
  const { body } = await server.admin.get('/settings/attributes?per_page=100')
  for (const { id, code, entity_type } of body.data) attribute[`${entity_type}.${code}`] = id
})

async function makeForm(changes: object = {}): Promise<{ id: number; path: string }> {
  const { status, body, text } = await server.admin.post('/settings/web-forms', { ...basic, ...changes })
  expect(status === 201 ? '' : text).toBe('')
  server.events()
  return { id: body.data.id, path: `//web-forms/forms/${body.data.form_id}` }
}

const field = (name: string, changes: object = {}) => ({ attribute_id: attribute[name], ...changes })

async function ownAttribute(entity_type: string, code: string, type: string, changes: object = {}): Promise<any> {
  const { body, status, text } = await server.admin.post('/settings/attributes', {
    entity_type,
    code,
    name: code,
    type,
    ...changes,
  })
  expect(status === 201 ? '' : text).toBe('')
  attribute[`${entity_type}.${code}`] = body.data.id
  server.events()
  return body.data
}

const grace = { name: 'Grace Hopper', emails: [{ value: 'grace@example.org' }] }
const persons = async () => (await server.admin.get('/contacts/persons?per_page=100&sort=id')).body.data
const leads = async () => (await server.admin.get('/leads?per_page=100&sort=id')).body.data

/** Posts a form like a browser without JavaScript. */
const post = (
  path: string,
  fields: Record<string, string> | [string, string][],
  headers: Record<string, string> = {},
) =>
  server.anonymous.post(path, new URLSearchParams(fields).toString(), {
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
  })

describe('getPublicWebForm', () => {
  it('has all that is needed to draw the form, without the hidden fields', async () => {
    await ownAttribute('persons', 'industry', 'select', { options: [{ name: 'Retail' }, { name: 'Mining' }] })
    const { path } = await makeForm({
      create_lead: true,
      form_title_color: '#123456',
      attributes: [
        field('persons.name', { name: 'Your name', placeholder: 'First and last' }),
        field('persons.emails'),
        field('persons.industry'),
        field('leads.lead_source_id', { is_required: false }),
        field('leads.lead_value', { is_hidden: true, default_value: 4711 }),
        field('leads.user_id', { default_value: 1 }),
        field('persons.organization_id'),
      ],
    })
    const { status, body, text } = await server.anonymous.get(path)
    expect(status).toBe(200)
    expect(body.data.fields.map((each: any) => [each.entity_type, each.code, each.type, each.is_required])).toEqual([
      ['persons', 'name', 'text', true],
      ['persons', 'emails', 'email', true],
      ['persons', 'industry', 'select', false],
      ['leads', 'lead_source_id', 'select', false],
      ['persons', 'organization_name', 'text', false],
    ])
    expect(body.data.fields[0]).toMatchObject({ label: 'Your name', placeholder: 'First and last' })
    expect(body.data.fields[2].options.map(({ name }: any) => name)).toEqual(['Retail', 'Mining'])
    expect(body.data.fields[3].options.map(({ name }: any) => name)).toContain('Web Form')
    expect(body.data.form_title_color).toBe('#123456')
    for (const secret of ['4711', 'Example Admin', '"id":1,"form_id"']) expect(text).not.toContain(secret)
  })

  it('answers 404 on every public route for a form that rests or is not there', async () => {
    const { path } = await makeForm({ is_active: false })
    for (const form of [path, '//web-forms/forms/nothing']) {
      for (const part of ['', '/form.html', '/form.js'])
        expect((await server.anonymous.get(form + part)).status).toBe(404)
      expect((await server.anonymous.post(form, { persons: grace })).status).toBe(404)
      expect((await server.anonymous.post(form, { nonsense: 1 })).status).toBe(404)
    }
    expect(await persons()).toEqual([])
  })

  it('answers any origin, without credentials, also when it refuses and when a browser asks first', async () => {
    const { path } = await makeForm()
    const origin = { origin: 'https://elsewhere.example' }
    for (const part of ['', '/form.html', '/form.js', 'x']) {
      const { headers } = await server.anonymous.get(path + part, { headers: origin })
      expect([headers['access-control-allow-origin'], headers['access-control-allow-credentials']]).toEqual([
        '*',
        undefined,
      ])
    }
    const refused = await server.anonymous.post(path, {}, { headers: origin })
    expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([422, '*'])
    const asked = await server.inject({ method: 'OPTIONS', url: path.slice(1), headers: origin })
    expect([asked.statusCode, asked.headers['access-control-allow-origin']]).toEqual([204, '*'])
    expect(asked.headers['access-control-allow-methods']).toBe('GET, POST, HEAD, OPTIONS')
    expect(String(asked.headers['access-control-allow-headers'])).toContain('Content-Type')
    const { headers } = await server.anonymous.get('/settings/web-forms', { headers: origin })
    expect(headers['access-control-allow-origin']).toBe(undefined)
  })
})

describe('getWebFormPage and getWebFormScript', () => {
  it('write every text as text', async () => {
    const bad = `</script><img src=x onerror="alert(1)">'&`
    await ownAttribute('persons', 'mood', 'select', { options: [{ name: bad }] })
    const { path } = await makeForm({
      title: bad,
      description: bad,
      submit_button_label: bad,
      attributes: [
        field('persons.job_title', { name: bad, placeholder: bad, default_value: bad }),
        field('persons.mood'),
      ],
    })
    const { text, headers } = await server.anonymous.get(`${path}/form.html`)
    expect(text).not.toContain('<img')
    expect(text.match(/<\/script>/g)).toHaveLength(1)
    expect(text).toContain('&lt;/script&gt;&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&#39;&amp;')
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/)
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    const script = await server.anonymous.get(`${path}/form.js`)
    expect(script.text).not.toContain('<img')
    expect(script.headers['content-type']).toBe('text/javascript; charset=utf-8')
    expect(() => new Function(script.text)).not.toThrow()
  })

  it('are not sent again while they are as they were', async () => {
    const { id, path } = await makeForm()
    for (const part of ['/form.html', '/form.js']) {
      const { headers } = await server.anonymous.get(path + part)
      const known = { headers: { 'if-none-match': String(headers.etag) } }
      expect((await server.anonymous.get(path + part, known)).status).toBe(304)
      await server.admin.put(`/settings/web-forms/${id}`, { title: `New ${part}` })
      expect((await server.anonymous.get(path + part, known)).status).toBe(200)
    }
  })
})

describe('submitWebForm', () => {
  it('makes a person, and says what the form says and no id', async () => {
    const { path } = await makeForm()
    const { status, body } = await server.anonymous.post(path, { persons: grace })
    expect([status, body]).toEqual([200, { message: 'Thank you.' }])
    expect(server.events()).toEqual(['contacts.person.create.before', 'contacts.person.create.after'])
    const [person] = await persons()
    expect(person).toMatchObject({
      name: 'Grace Hopper',
      user_id: null,
      emails: [{ value: 'grace@example.org', label: 'work' }],
    })
    const [event] = (await server.admin.get('/events?name=contacts.person.create.after')).body.data
    expect([event.origin, event.actor.type]).toEqual(['web_form', 'system'])
    expect(await leads()).toEqual([])
  })

  it('makes a lead with the person in the default pipeline, and defaults for what the form does not ask', async () => {
    const { path } = await makeForm({
      create_lead: true,
      submit_success_action: 'redirect',
      submit_success_content: 'https://example.com/thanks',
    })
    const { body } = await server.anonymous.post(path, { persons: grace })
    expect(body).toEqual({ message: 'Thank you.', redirect: 'https://example.com/thanks' })
    expect(server.events()).toEqual([
      'contacts.person.create.before',
      'lead.create.before',
      'contacts.person.create.after',
      'lead.create.after',
    ])
    const [lead] = await leads()
    expect(lead).toMatchObject({
      title: 'Lead From Web Form',
      lead_value: 0,
      user_id: null,
      source: { name: 'Web Form' },
      stage: { code: 'new' },
      pipeline: { id: 1 },
      person: { name: 'Grace Hopper' },
    })
  })

  it('stores equal values once within ten minutes', async () => {
    const { path } = await makeForm({ create_lead: true, attributes: [field('leads.title')] })
    const values = (title: string): [string, string][] => [
      ['persons[name]', 'Grace Hopper'],
      ['persons[emails][0][value]', 'grace@example.org'],
      ['leads[title]', title],
    ]
    const count = async () => (await server.admin.get('/leads')).body.meta.total
    const sent = await Promise.all([post(path, values('Chairs')), post(path, values('Chairs').reverse())])
    expect(sent.map(({ status }) => status)).toEqual([200, 200])
    expect(await count()).toBe(1)
    await post(path, values('Tables'))
    expect(await count()).toBe(2)
    server.clock.advanceMs(11 * 60_000)
    await post(path, values('Chairs'))
    expect(await count()).toBe(3)
    expect(await persons()).toHaveLength(1)
  })

  it('takes a required box only when it is ticked, whatever the page sends for it', async () => {
    await ownAttribute('persons', 'consent', 'boolean')
    const { path } = await makeForm({ attributes: [{ ...field('persons.consent'), is_required: true }] })
    const submit = async (...ticks: string[]) => {
      // Past the limit of submissions from one address.
      server.clock.advanceMs(3_600_000)
      const named: [string, string][] = [
        ['persons[name]', 'Grace Hopper'],
        ['persons[emails][0][value]', 'grace@example.org'],
      ]
      const { status, text } = await post(path, [
        ...named,
        ...ticks.map((each): [string, string] => ['persons[consent]', each]),
      ])
      return status === 422 ? Object.keys(JSON.parse(text).errors) : status
    }
    for (const ticks of [[], [''], ['0'], ['false'], ['off'], ['no'], ['1', '0']])
      expect([ticks, await submit(...ticks)]).toEqual([ticks, ['persons.consent']])
    expect(await persons()).toEqual([])
    for (const ticks of [['1'], ['true'], ['on'], ['Yes'], ['Ja'], ['sí'], ['0', '1']])
      expect(await submit(...ticks), String(ticks)).toBe(200)
    const [person] = await persons()
    expect(person.custom_attributes.consent).toBe(true)
  })

  it('takes what a form of HTML sends, with lists, addresses and boxes', async () => {
    const industry = await ownAttribute('persons', 'industry', 'select', { options: [{ name: 'Retail' }] })
    const topics = await ownAttribute('leads', 'topics', 'multiselect', {
      options: [{ name: 'a' }, { name: 'b' }, { name: 'c' }],
    })
    await ownAttribute('persons', 'home', 'address')
    await ownAttribute('persons', 'agrees', 'boolean')
    await ownAttribute('persons', 'news', 'boolean', { default_value: true })
    await ownAttribute('leads', 'budget', 'price')
    await ownAttribute('leads', 'when', 'datetime')
    const names = ['persons.industry', 'persons.home', 'persons.agrees', 'persons.news', 'persons.contact_numbers']
    const { path } = await makeForm({
      create_lead: true,
      attributes: [
        ...names,
        'persons.organization_id',
        'leads.title',
        'leads.topics',
        'leads.budget',
        'leads.when',
        'leads.lead_value',
      ].map((name) => field(name)),
    })
    const [one, , three] = topics.options.map(({ id }: { id: number }) => id)
    const { status, text } = await post(path, [
      ['persons[name]', ' Grace Hopper '],
      ['persons[emails][0][value]', 'grace@example.org'],
      ['persons[contact_numbers][0][value]', ''],
      ['persons[industry]', String(industry.options[0].id)],
      ['persons[home][city]', 'Arlington'],
      ['persons[home][country]', 'us'],
      ['persons[home][state]', ''],
      ['persons[agrees]', '1'],
      ['persons[organization_name]', 'Navy'],
      ['leads[title]', 'Compilers'],
      ['leads[topics][]', String(one)],
      ['leads[topics][]', String(three)],
      ['leads[budget]', '1250.50'],
      ['leads[when]', '2026-04-01T10:00'],
      ['leads[lead_value]', '99.5'],
      ['website', ''],
    ])
    expect([status, text]).toEqual([200, '{"message":"Thank you."}'])
    const [person] = await persons()
    expect(person).toMatchObject({ name: 'Grace Hopper', contact_numbers: [], organization: { name: 'Navy' } })
    expect(person.custom_attributes).toMatchObject({
      industry: industry.options[0].id,
      home: { city: 'Arlington', country: 'US', state: null },
      agrees: true,
      // The checkbox was shown but not checked.
      news: false,
    })
    const [lead] = await leads()
    expect(lead).toMatchObject({ title: 'Compilers', lead_value: 99.5 })
    expect(lead.custom_attributes).toEqual({ topics: [one, three], budget: 1250.5, when: '2026-04-01T10:00:00.000Z' })
  })

  it('selects the person of a known address regardless of the owner, without a change, and answers the same', async () => {
    const known = await given(server.admin).person({
      name: 'Known',
      emails: [{ value: 'Grace@Example.org', label: 'home' }],
      user_id: 1,
    })
    const { path } = await makeForm({ create_lead: true, attributes: [field('persons.job_title')] })
    const first = await server.anonymous.post(path, { persons: { ...grace, job_title: 'Admiral' } })
    const second = await server.anonymous.post(path, {
      persons: { name: 'Ada', emails: [{ value: 'ada@example.org' }] },
    })
    expect([first.status, first.text]).toEqual([second.status, second.text])
    const [after, ada] = await persons()
    expect({ ...after, leads_count: 0 }).toEqual({ ...known, leads_count: 0 })
    expect(ada.name).toBe('Ada')
    expect((await leads()).map((lead: any) => lead.person_id)).toEqual([known.id, ada.id])
  })

  it('answers a mistake the same whether or not the address is known', async () => {
    await given(server.admin).person({ emails: [{ value: 'grace@example.org' }] })
    await ownAttribute('persons', 'site', 'text', { validation: 'url' })
    const { path } = await makeForm({ attributes: [field('persons.site'), field('persons.contact_numbers')] })
    const wrong = { name: 'x', site: 'nowhere', contact_numbers: [{ value: 'call me' }] }
    const known = await server.anonymous.post(path, { persons: { ...wrong, emails: [{ value: 'grace@example.org' }] } })
    const other = await server.anonymous.post(path, { persons: { ...wrong, emails: [{ value: 'other@example.org' }] } })
    expect(known.status).toBe(422)
    expect(Object.keys(known.body.errors).sort()).toEqual(['persons.contact_numbers.0.value', 'persons.site'])
    expect(known.body.errors).toEqual(other.body.errors)
    expect(await persons()).toHaveLength(1)
  })

  it('refuses unknown, hidden and missing fields at once, by the names of the form', async () => {
    await ownAttribute('leads', 'reason', 'text')
    const { path } = await makeForm({
      create_lead: true,
      attributes: [
        field('leads.lead_value', { is_hidden: true, default_value: 500 }),
        field('leads.reason', { is_required: true }),
        field('persons.contact_numbers', { is_required: true }),
      ],
    })
    const { status, body } = await server.anonymous.post(path, {
      persons: {
        emails: [{ value: 'no address' }],
        contact_numbers: [{ value: ' ' }],
        job_title: 'Spy',
        __proto__x: 1,
      },
      leads: { lead_value: 1, user_id: 1, reason: '' },
    })
    expect(status).toBe(422)
    expect(body.errors).toEqual({
      'persons.job_title': ['The form has no such field.'],
      'persons.__proto__x': ['The form has no such field.'],
      'persons.name': ['The field is required.'],
      'persons.contact_numbers': ['The field is required.'],
      'persons.emails.0.value': ['Must be an e-mail address.'],
      'leads.lead_value': ['The form has no such field.'],
      'leads.user_id': ['The form has no such field.'],
      'leads.reason': ['The field is required.'],
    })
    expect(server.events()).toEqual([])
    const { body: plain } = await server.anonymous.post((await makeForm()).path, {
      persons: grace,
      leads: { title: 'x' },
    })
    expect(plain.errors).toEqual({ 'leads.title': ['The form has no such field.'] })
  })

  it('gives hidden fields their default, and forgets one that names what is gone', async () => {
    const source = await given(server.admin).source({ name: 'Fair' })
    const owner = await given(server.admin).user({ name: 'Owner' })
    const { path } = await makeForm({
      create_lead: true,
      attributes: [
        field('leads.title', { is_hidden: true, default_value: 'From the fair' }),
        field('leads.lead_source_id', { is_hidden: true, default_value: source.id }),
        field('leads.user_id', { default_value: owner.id }),
        field('persons.user_id', { is_hidden: true, default_value: owner.id }),
      ],
    })
    const other = { name: 'Ada', emails: [{ value: 'ada@example.org' }] }
    await server.anonymous.post(path, { persons: grace })
    await server.admin.put(`/settings/users/${owner.id}`, { is_active: false })
    const [lead] = await leads()
    expect([lead.title, lead.source.name, lead.user_id]).toEqual(['From the fair', 'Fair', owner.id])
    await server.admin.delete(`/leads/${lead.id}`)
    expect((await deleteNamed(server, `/sources/${source.id}`)).status).toBe(200)
    expect((await server.anonymous.post(path, { persons: other })).status).toBe(200)
    expect((await leads()).map((lead: any) => [lead.title, lead.source.name, lead.user_id])).toEqual([
      ['From the fair', 'Web Form', null],
    ])
    expect((await persons()).map((person: any) => person.user_id)).toEqual([owner.id, null])
  })

  it('does not reveal whether an address or number is known, and notes values that are not stored with the lead', async () => {
    const [numbers] = (await server.admin.get('/settings/attributes?entity_type=persons&code=contact_numbers')).body
      .data
    await server.admin.put(`/settings/attributes/${numbers.id}`, { is_unique: true })
    await ownAttribute('persons', 'vat', 'text', { is_unique: true, is_required: true })
    await ownAttribute('leads', 'code', 'text', { is_unique: true })
    await given(server.admin).person({
      emails: [{ value: 'grace@example.org' }],
      contact_numbers: [{ value: '+1 202 555 0100' }],
      custom_attributes: { vat: 'US1' },
    })
    await given(server.admin).person({ emails: [{ value: 'mine@example.org' }], custom_attributes: { vat: 'US2' } })
    await given(server.admin).lead({ custom_attributes: { code: 'A' } })
    const { path } = await makeForm({
      create_lead: true,
      attributes: [
        field('persons.contact_numbers', { name: 'Telephone' }),
        field('persons.vat', { name: 'VAT' }),
        field('leads.description'),
        field('leads.code'),
      ],
    })
    const send = async (addresses: string[], number: string, lead: object = {}) => {
      const emails = addresses.map((value) => ({ value }))
      const sent = { name: 'Visitor', emails, contact_numbers: [{ value: number }], vat: 'US1' }
      const { status, text } = await server.anonymous.post(path, { persons: sent, leads: lead })
      const [last] = (await server.admin.get('/leads?sort=-id&per_page=1')).body.data
      return [status, text, last.description, last.person.name] as const
    }
    const note = (...lines: string[]) => ['Also sent with the form, but not stored:', ...lines].join('\n')
    const fresh = await send(['new@example.org'], '1 (202) 555-0100', { description: 'Call me', code: 'a' })
    expect(fresh.slice(2)).toEqual([
      `Call me\n\n${note('VAT: US1', 'Telephone: 1 (202) 555-0100', 'code: a')}`,
      'Visitor',
    ])
    const known = await send(['grace@example.org', 'mine@example.org', 'third@example.org'], '+1 202 555 0100')
    expect(known.slice(0, 2)).toEqual(fresh.slice(0, 2))
    expect(known[2]).toBe(note('Emails: mine@example.org', 'Emails: third@example.org'))
    expect(
      (await persons()).map(({ emails, contact_numbers, custom_attributes }: any) => [
        emails.length,
        contact_numbers.length,
        custom_attributes.vat,
      ]),
    ).toEqual([
      [1, 1, 'US1'],
      [1, 0, 'US2'],
      [1, 0, null],
    ])
    const plain = await makeForm({ attributes: [field('persons.contact_numbers'), field('persons.vat')] })
    const persons2 = { ...grace, contact_numbers: [{ value: '+12025550100' }], vat: 'US3' }
    expect((await server.anonymous.post(plain.path, { persons: persons2 })).status).toBe(200)
  })

  it('accepts submissions without a required attribute that the form does not ask for', async () => {
    const { id, path } = await makeForm({ create_lead: true, attributes: [field('persons.organization_id')] })
    await ownAttribute('persons', 'size', 'text', { is_required: true })
    await ownAttribute('leads', 'region', 'text', { is_required: true })
    await ownAttribute('organizations', 'vat', 'text', { is_required: true })
    const sent = { ...grace, organization_name: 'Navy' }
    const { status, text } = await server.anonymous.post(path, { persons: sent })
    expect(status === 200 ? '' : text).toBe('')
    expect((await leads())[0].person.name).toBe('Grace Hopper')
    expect((await server.admin.get('/contacts/organizations')).body.data[0].custom_attributes).toEqual({ vat: null })
    await server.admin.put(`/settings/web-forms/${id}`, { attributes: [field('persons.size', { is_required: false })] })
    const other = { name: 'Ida', emails: [{ value: 'ida@example.org' }] }
    const refused = await server.anonymous.post(path, { persons: other })
    expect(refused.body.errors).toEqual({ 'persons.size': ['The field is required.'] })
    expect((await server.anonymous.post(path, { persons: { ...other, size: 'XL' } })).status).toBe(200)
    // The attributes stay required in the API.
    expect((await server.admin.post('/contacts/persons', { name: 'Eve' })).status).toBe(422)
  })

  it('refuses a dry run, which would be a way to ask without a trace', async () => {
    const { path } = await makeForm()
    const trial = { headers: { 'accord-dry-run': 'true' } }
    const { status, body } = await server.anonymous.post(path, { persons: grace }, trial)
    expect([status, Object.keys(body.errors)]).toEqual([422, ['header.Accord-Dry-Run']])
    expect([await persons(), server.events()]).toEqual([[], []])
  })

  it('tells who only programs fill in that all is well, and does nothing', async () => {
    const { path } = await makeForm({ create_lead: true, attributes: [field('leads.title')] })
    const { status, body } = await server.anonymous.post(path, { persons: grace, website: 'https://spam.example' })
    expect([status, body]).toEqual([200, { message: 'Thank you.' }])
    expect([server.events(), await persons()]).toEqual([[], []])
  })

  it('takes ten a minute from one address, for all forms together', async () => {
    const { path } = await makeForm()
    const statuses: number[] = []
    for (let count = 0; count < 11; count++) statuses.push((await server.anonymous.post(path, { persons: {} })).status)
    expect(statuses).toEqual([...Array(10).fill(422), 429])
    const refused = await server.anonymous.post(path, { persons: grace })
    expect([refused.status, Number(refused.headers['retry-after'])]).toEqual([429, 60])
    // A refused submission is cheap: it reads no attributes and counts no call.
    const asked = await statementsOf(() => server.anonymous.post(path, { persons: grace }))
    expect(asked.filter((each) => /attributes|call_counts/.test(each))).toEqual([])
    server.clock.advanceMs(60_000)
    expect((await server.anonymous.post(path, { persons: grace })).status).toBe(200)
  })

  it('answers a browser that posts by itself with a page that tells, or goes on', async () => {
    const fields = { 'persons[name]': 'Grace', 'persons[emails][0][value]': 'grace@example.org', website: '' }
    const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
    const told = await post((await makeForm({ submit_success_content: 'Thank <you>.' })).path, fields, html)
    expect([told.status, told.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(told.text).toContain('Thank &lt;you&gt;.')
    const redirect = { submit_success_action: 'redirect', submit_success_content: 'https://example.com/?a=1&b=2' }
    const gone = await post((await makeForm(redirect)).path, fields, html)
    expect(gone.text).toContain('<meta http-equiv="refresh" content="0;url=https://example.com/?a=1&amp;b=2">')
  })

  it('refuses forms that are too large, too deep or contradict themselves, and keys of every object', async () => {
    const { path } = await makeForm()
    const many = Array.from({ length: 201 }, (_, index): [string, string] => [`persons[x${index}]`, '1'])
    expect((await post(path, many)).body.code).toBe('malformed_request')
    expect((await post(path, { 'persons[a][b][c][d][e]': '1' })).body.code).toBe('malformed_request')
    expect(
      (
        await post(path, [
          ['persons[name]', 'a'],
          ['persons[name][x]', 'b'],
        ])
      ).body.code,
    ).toBe('malformed_request')
    const twice = await post(path, [
      ['persons[name]', 'a'],
      ['persons[name]', 'b'],
      ['persons[emails][0][value]', 'a@example.org'],
    ])
    expect(twice.body.errors).toEqual({ 'persons.name': ['Must not be sent more than once.'] })
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const { status, body } = await post(path, {
        [`persons[${name}]`]: 'x',
        'persons[name]': 'a',
        'persons[emails][][value]': 'a@example.org',
      })
      expect([status, Object.keys(body.errors)]).toEqual([422, [`persons.${name}`]])
    }
    expect(({} as any).polluted).toBe(undefined)
    expect(await persons()).toEqual([])
  })
})
