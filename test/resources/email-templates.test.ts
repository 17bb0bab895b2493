// Rules of e-mail templates that the generated contract tests do not check: placeholders are
// replaced by formatted values.
import { describe, expect, it } from 'vitest'
import { fillIn } from '../../src/resources/email-templates/placeholders.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const path = '/settings/email-templates'

const server = useServer({ config: { timezone: 'Europe/Berlin' } })

async function preview(content: string, entity_type: string, entity_id: number, subject = 'Hello') {
  const name = `t${Math.random()}`
  const { body } = await server.admin.post(path, { name, subject: 'x', content: 'x' })
  // Older versions accepted unknown placeholders, which are now refused.
  const { db } = server.store
  await db.updateTable('email_templates').set({ subject, content }).where('id', '=', body.data.id).execute()
  server.events()
  return server.admin.post(`${path}/${body.data.id}/preview`, { entity_type, entity_id })
}

describe('createEmailTemplate', () => {
  it('refuses placeholders that mean nothing, and says what may be meant; what stands there already may stay', async () => {
    await server.admin.post('/settings/attributes', { code: 'vip', name: 'VIP', type: 'text', entity_type: 'leads' })
    const known =
      '{%leads.vip%} {% quotes.subject %} {%activities.participants%} {%app.url%} {%unsubscribe_url%} 5 % {%'
    const { status, body } = await server.admin.post(path, { name: 'Good', subject: known, content: known })
    expect(status).toBe(201)
    const refused = await server.admin.post(path, {
      name: 'Bad',
      subject: 'For {%leads.titel%}',
      content: '{%leads.titel%} {%Leads.Title%} {%persons.unheard_of%} {%constructor%}',
    })
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      {
        subject: ['Unknown placeholder {%leads.titel%}. Did you mean `leads.title`?'],
        content: [
          'Unknown placeholder {%leads.titel%}. Did you mean `leads.title`?',
          'Unknown placeholder {%Leads.Title%}. Did you mean `leads.title`?',
          'Unknown placeholder {%persons.unheard_of%}.',
          'Unknown placeholder {%constructor%}.',
        ],
      },
    ])
    await server.store.db.updateTable('email_templates').set({ content: '{%leads.old%}' }).execute()
    const put = async (content: string) => (await server.admin.put(`${path}/${body.data.id}`, { content })).status
    expect([await put('Dear {%leads.old%}'), await put('{%leads.new%}')]).toEqual([200, 422])
  })
})

describe('previewEmailTemplate', () => {
  it('fills in fields of a lead, its person, organization and owner, each as people read it', async () => {
    const make = given(server.admin)
    await server.admin.post('/settings/attributes', {
      code: 'vip',
      name: 'VIP',
      type: 'boolean',
      entity_type: 'leads',
    })
    const person = await make.person({
      name: 'Ada <b>',
      emails: [{ value: 'ada@example.com' }, { value: 'ada@home.example' }],
      organization_name: 'Analytical & Sons',
    })
    const lead = await make.lead({
      title: '40 seats',
      lead_value: 1234.5,
      person_id: person.id,
      custom_attributes: { vip: true },
    })
    const content =
      '<p>{%persons.name%} of {% organizations.name %}: {%leads.lead_value%}, {%leads.lead_source_id%}, {%leads.vip%}, {%persons.emails%}, [{%leads.expected_close_date%}], {%users.email%}, {%app.name%}, {%leads.hue%}, {%unsubscribe_url%}</p>'
    const { status, body } = await preview(content, 'leads', lead.id, 'Re {%leads.title%} {%nothing.here%}')
    expect(status).toBe(200)
    expect(body.data).toEqual({
      subject: 'Re 40 seats ',
      content:
        '<p>Ada &lt;b&gt; of Analytical &amp; Sons: $1,234.50, Direct, Yes, ada@example.com, ada@home.example, [], admin@example.com, Accord CRM, , {%unsubscribe_url%}</p>',
      unknown_placeholders: ['nothing.here', 'leads.hue'],
    })
    expect(server.events()).toEqual([])
  })

  it('fills in nothing where a field has no value and where there is no such record', async () => {
    const lead = await given(server.admin).lead({ person_id: null })
    const content =
      '[{%leads.closed_at%}|{%leads.lost_reason%}|{%leads.person_id%}|{%persons.name%}|{%persons.unsubscribed_at%}|{%organizations.name%}]'
    const { body } = await preview(content, 'leads', lead.id)
    expect(body.data).toMatchObject({ content: '[|||||]', unknown_placeholders: [] })
    // No recipient sees an unknown placeholder, or one of another record.
    const strange =
      '{%leads.stage%} {%leads.tags%} {%leads.custom_attributes%} {%quotes.subject%} {%organizations.users%}'
    expect((await preview(strange, 'leads', lead.id)).body.data).toMatchObject({
      content: expect.not.stringContaining('%'),
      unknown_placeholders: [
        'leads.stage',
        'leads.tags',
        'leads.custom_attributes',
        'quotes.subject',
        'organizations.users',
      ],
    })
  })

  it('shows moments in the time zone of the installation, and who takes part', async () => {
    const make = given(server.admin)
    const person = await make.person({ name: 'Ada' })
    const activity = await make.activity({
      type: 'call',
      title: 'First call',
      schedule_from: '2026-07-01T09:00:00Z',
      schedule_to: '2026-07-01T09:30:00Z',
      participants: { users: [1], persons: [person.id] },
    })
    const { body } = await server.admin.post(`${path}/1/preview`, { entity_type: 'activities', entity_id: activity.id })
    expect(body.data.subject).toBe('First call, July 1, 11:00 AM')
    expect(body.data.content).toMatch(/<td[^>]*>Wednesday, July 1, 2026, 11:00.{3}11:30.AM GMT\+2<\/td>/)
    expect(body.data.content).toContain('>Example Admin, Ada</td>')
    expect(body.data.unknown_placeholders).toEqual([])
  })

  it('refuses a missing or invisible record, and takes the person of a lead in sight', async () => {
    const make = given(server.admin)
    const person = await make.person({ name: 'Secret' })
    const caller = await addUser(server, 'Ina', { view: 'individual' })
    const ask = (entity_type: string, entity_id: number) => caller.post(`${path}/1/preview`, { entity_type, entity_id })
    expect((await ask('persons', person.id)).body.errors).toEqual({ entity_id: [`No person has id ${person.id}.`] })
    expect((await ask('leads', 99)).status).toBe(422)
    const lead = await make.lead({ user_id: caller.id, person_id: person.id })
    expect((await ask('leads', lead.id)).status).toBe(200)
    expect((await ask('persons', person.id)).status).toBe(200)
  })

  it('refuses at once what would be longer than a mail can be', async () => {
    const lead = await given(server.admin).lead({ description: '<'.repeat(65_000) })
    const longer = await preview('{%leads.description%}'.repeat(12_400), 'leads', lead.id)
    expect([longer.status, longer.body.errors]).toEqual([
      422,
      { entity_id: ['With its values, the content has more than 1000000 characters.'] },
    ])
    const head = await preview('x', 'leads', lead.id, '{%leads.description%}')
    expect([head.status, Object.keys(head.body.errors)]).toEqual([422, ['entity_id']])
    expect((await preview('{%leads.description%}', 'leads', lead.id)).status).toBe(200)
  })

  it('keeps a subject on one line', async () => {
    const { body } = await server.admin.post(path, { name: 'Lines', subject: 'Hello\r\nBcc: x', content: 'c' })
    expect(body.data.subject).toBe('Hello Bcc: x')
  })
})

describe('a fallback', () => {
  it.each([
    ['{%leads.title|your request%}', 'your request'],
    ['{% leads.title | your request %}', 'your request'],
    ['{%leads.gone|-%}', '-'],
    ['{%leads.gone|%}', ''],
    ['{%leads.size|-%}', '12'],
    ['{%leads.gone|a|b%}', 'a|b'],
    ['{%leads.title|<i>none</i>%}', '<i>none</i>'],
    ['{%leads.size|raw%}', '12'],
    ['{%leads.gone|raw%}', ''],
    ['{%unsubscribe_url|-%}', '{%unsubscribe_url|-%}'],
  ])('of %j gives %j', (template, filled) => {
    const values = new Map([
      ['leads.title', ''],
      ['leads.size', '12'],
      ['leads.size|raw', '12'],
    ])
    expect(fillIn(template, values, 'html', 99)?.filled).toBe(filled)
  })

  it('is accepted in a template, whose field must exist', async () => {
    const content = '{%leads.title|your request%}'
    expect((await server.admin.post(path, { name: 'Fallback', subject: content, content })).status).toBe(201)
    const { status, body } = await server.admin.post(path, { name: 'Typo', subject: 'x', content: '{%leads.titel|-%}' })
    expect([status, body.errors]).toEqual([
      422,
      { content: ['Unknown placeholder {%leads.titel%}. Did you mean `leads.title`?'] },
    ])
  })

  it('protects its field: an attribute that a template names cannot be deleted', async () => {
    const attribute = { code: 'kind', name: 'Kind', type: 'text', entity_type: 'leads' }
    const { id } = (await server.admin.post('/settings/attributes', attribute)).body.data
    await server.admin.post(path, { name: 'Kinds', subject: 'x', content: '{%leads.kind|any%}' })
    expect((await server.admin.delete(`/settings/attributes/${id}`)).body.code).toBe('in_use')
  })
})

describe('fillIn', () => {
  const values = new Map([['leads.title', '"40" <seats>\n& more']])
  it.each([
    ['html', '&quot;40&quot; &lt;seats&gt;<br>&amp; more'],
    ['json', '\\"40\\" <seats>\\n& more'],
    ['url', '%2240%22%20%3Cseats%3E%0A%26%20more'],
    ['text', '"40" <seats>, & more'],
  ] as const)('keeps a value a value in %s', (into, expected) => {
    expect(fillIn('{%leads.title%}', values, into, 99)).toEqual({ filled: expected, unknown: [] })
  })

  it('fills nothing into what a value says', () => {
    const nested = new Map([
      ['leads.title', '{%app.name%}'],
      ['app.name', 'x'],
    ])
    expect(fillIn('{%leads.title%}', nested, 'text', 99)?.filled).toBe('{%app.name%}')
  })
})
