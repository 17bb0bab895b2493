// References inside stored rules: what a workflow, campaign, form, template, webhook or import
// names cannot be deleted, by any of the ways of deleting it.
import { describe, expect, it } from 'vitest'
import { systemContext } from '../../../src/kernel/context.ts'
import { completeImport } from '../../../src/resources/data-transfer/run/states.ts'
import { file, form as multipart } from '../../support/form.ts'
import { given, unique } from '../../support/given.ts'
import { someone } from '../../support/people.ts'
import { useServer } from '../../support/using.ts'

const server = useServer()
const make = given(server.admin)

type Json = Record<string, unknown>

async function create(path: string, body: Json): Promise<Json & { id: number }> {
  const { status, body: reply, text } = await server.admin.post(path, body)
  if (status !== 201) throw new Error(text)
  return reply.data
}

const attribute = (body: Json) =>
  create('/settings/attributes', { code: `a${unique()}`, name: 'Own', type: 'text', entity_type: 'leads', ...body })

/** A record that can be referred to: its path, and how it is created. */
const kinds: Record<string, { path: string; add: () => Promise<{ id: number }>; lookup?: string }> = {
  tags: { path: '/tags', add: () => make.tag({ name: `T${unique()}` }) },
  users: { path: '/settings/users', add: () => make.user(), lookup: 'users' },
  sources: { path: '/sources', add: () => make.source(), lookup: 'lead_sources' },
  types: { path: '/types', add: () => make.type(), lookup: 'lead_types' },
  pipelines: { path: '/pipelines', add: () => make.pipeline(), lookup: 'lead_pipelines' },
  organizations: { path: '/contacts/organizations', add: () => make.organization(), lookup: 'organizations' },
  persons: { path: '/contacts/persons', add: () => make.person(), lookup: 'persons' },
  leads: { path: '/leads', add: () => make.lead(), lookup: 'leads' },
  products: { path: '/products', add: () => make.product(), lookup: 'products' },
  quotes: { path: '/quotes', add: () => make.quote(), lookup: 'quotes' },
}
const lookedUp = Object.keys(kinds).filter((kind) => kinds[kind]?.lookup !== undefined)

const workflow = (changes: Json) =>
  create('/settings/workflows', {
    name: `W${unique()}`,
    entity_type: 'leads',
    event: 'lead.update.after',
    actions: [{ id: 'add_tag', value: 'Seen' }],
    ...changes,
  })
const template = (content: string, subject = 'Hello') =>
  create('/settings/email-templates', { name: `E${unique()}`, subject, content })
const campaign = async (filter: Json | null, subject = 'Hello') =>
  create('/settings/marketing/campaigns', {
    name: `C${unique()}`,
    subject,
    email_template_id: (await template('<p>x</p>')).id,
    marketing_event_id: (
      await create('/settings/marketing/events', { name: `M${unique()}`, description: 'x', date: '2026-12-24' })
    ).id,
    audience: filter === null ? { type: 'all' } : { type: 'filter', filter },
  })
const form = (attributes: Json[]) =>
  create('/settings/web-forms', {
    title: `F${unique()}`,
    submit_button_label: 'Send',
    submit_success_action: 'message',
    submit_success_content: 'Thanks',
    create_lead: true,
    attributes,
  })

/** Requires that the deletion is refused with the referring record, and succeeds without it. */
async function guards(
  path: string,
  referrer: { entity_type: string; id: number; field: string },
  remove: () => Promise<unknown>,
) {
  const refused = await server.admin.delete(path)
  expect([refused.status, refused.body.code], refused.text).toEqual([409, 'in_use'])
  expect(refused.body.conflicts).toContainEqual(referrer)
  await remove()
  expect((await server.admin.delete(path)).status).toBe(200)
}

const removing = (path: string) => async () => expect((await server.admin.delete(path)).status).toBe(200)

describe('a workflow', () => {
  it.each(lookedUp)('keeps the record of %s that a condition on an attribute names', async (kind) => {
    const { path, add, lookup } = kinds[kind] as (typeof kinds)[string]
    const [{ id }, own] = [await add(), await attribute({ type: 'lookup', lookup_type: lookup })]
    for (const operator of ['==', '!=']) {
      const { id: from } = await workflow({ conditions: [{ attribute: own.code, operator, value: id }] })
      const refused = await server.admin.delete(`${path}/${id}`)
      expect([refused.status, refused.body.code], refused.text).toEqual([409, 'in_use'])
      expect(refused.body.conflicts).toEqual([{ entity_type: 'workflows', id: from, field: 'conditions' }])
      await server.admin.delete(`/settings/workflows/${from}`)
    }
    expect((await server.admin.delete(`${path}/${id}`)).status).toBe(200)
  })

  it.each(['{}', '!{}'])('keeps the tag that a condition with %s names', async (operator) => {
    const { id } = await make.tag({ name: `T${unique()}` })
    const { id: from } = await workflow({ conditions: [{ attribute: 'tag_ids', operator, value: [id] }] })
    await guards(
      `/tags/${id}`,
      { entity_type: 'workflows', id: from, field: 'conditions' },
      removing(`/settings/workflows/${from}`),
    )
  })

  it.each([
    ['users', 'user_id'],
    ['sources', 'lead_source_id'],
    ['types', 'lead_type_id'],
    ['pipelines', 'lead_pipeline_id'],
  ] as const)('keeps the record of %s that an action sets', async (kind, field) => {
    const { path, add } = kinds[kind] as (typeof kinds)[string]
    const { id } = await add()
    const { id: from } = await workflow({ actions: [{ id: 'update_lead', attribute: field, value: id }] })
    await guards(
      `${path}/${id}`,
      { entity_type: 'workflows', id: from, field: 'actions' },
      // A change of the rule frees the record as its deletion does.
      async () =>
        expect(
          (await server.admin.put(`/settings/workflows/${from}`, { actions: [{ id: 'add_tag', value: 'x' }] })).status,
        ).toBe(200),
    )
  })

  it('keeps the user of an activity, its template, webhook, attribute and placeholder', async () => {
    const { id: user } = await make.user()
    const { id: mail } = await template('<p>x</p>')
    const { id: hook } = await create('/settings/webhooks', { name: `H${unique()}`, url: 'https://example.com/' })
    const own = await attribute({})
    const about = await workflow({
      entity_type: 'activities',
      event: 'activity.update.after',
      conditions: [{ attribute: 'user_id', operator: '!=', value: user }],
      actions: [{ id: 'send_email_to_participants', value: mail }],
    })
    const doing = await workflow({
      conditions: [{ attribute: own.code, operator: '!=', value: 'x' }],
      actions: [
        { id: 'send_email_to_person', value: mail },
        { id: 'trigger_webhook', value: hook },
        { id: 'add_note_as_activity', value: `Now {%leads.${own.code}%}` },
      ],
    })
    const of = (id: number, field: string) => ({ entity_type: 'workflows', id, field })
    for (const [path, ids] of [
      [`/settings/email-templates/${mail}`, [about.id, doing.id]],
      [`/settings/webhooks/${hook}`, [doing.id]],
    ] as const) {
      const { status, body } = await server.admin.delete(path)
      expect([status, body.conflicts]).toEqual([409, ids.map((id) => of(id, 'actions'))])
    }
    expect((await server.admin.delete(`/settings/attributes/${own.id}`)).body.conflicts).toEqual([
      of(doing.id, 'actions'),
      of(doing.id, 'conditions'),
    ])
    await guards(`/settings/users/${user}`, of(about.id, 'conditions'), removing(`/settings/workflows/${about.id}`))
  })

  it.each(['select', 'multiselect'])('keeps the option of a %s, with and without force', async (type) => {
    const own = await attribute({ type, options: [{ name: 'Red' }, { name: 'Blue' }] })
    const [red, blue] = own.options as { id: number }[]
    const several = type === 'multiselect'
    const { id: from } = await workflow({
      conditions: [{ attribute: own.code, operator: several ? '!{}' : '!=', value: several ? [red?.id] : red?.id }],
    })
    const path = `/settings/attributes/${own.id}`
    for (const query of ['', '?force=true']) {
      const { status, body } = await server.admin.put(path + query, { options: [{ id: blue?.id }] })
      expect([status, body.conflicts]).toEqual([409, [{ entity_type: 'workflows', id: from, field: 'conditions' }]])
    }
    expect((await server.admin.put(path, { options: [{ id: red?.id }] })).status).toBe(200)
  })

  it('keeps a stage, whether the stage or its pipeline is deleted', async () => {
    const pipeline = await make.pipeline()
    const stage = pipeline.stages.find(({ is_user_defined }) => is_user_defined)
    const { id: from } = await workflow({
      conditions: [{ attribute: 'lead_pipeline_stage_id', operator: '!=', value: stage?.id }],
    })
    const stages = pipeline.stages.filter(({ id }) => id !== stage?.id).map(({ id }) => ({ id }))
    const referrer = { entity_type: 'workflows', id: from, field: 'conditions' }
    const { status, body } = await server.admin.put(`/pipelines/${pipeline.id}`, { stages })
    expect([status, body.conflicts]).toEqual([409, [referrer]])
    await guards(`/pipelines/${pipeline.id}`, referrer, removing(`/settings/workflows/${from}`))
  })

  it('keeps a location, whether the location or its warehouse is deleted', async () => {
    const warehouse = await create('/settings/warehouses', {
      name: `W${unique()}`,
      contact_name: 'Ada',
      contact_emails: [{ value: `w${unique()}@example.com`, label: 'work' }],
      contact_address: { address: 'x', country: 'DE', state: 'BE', city: 'Berlin', postcode: '1' },
    })
    const location = await create('/settings/locations', { name: `L${unique()}`, warehouse_id: warehouse.id })
    const own = await attribute({ type: 'lookup', lookup_type: 'locations' })
    const { id: from } = await workflow({ conditions: [{ attribute: own.code, operator: '!=', value: location.id }] })
    const referrer = { entity_type: 'workflows', id: from, field: 'conditions' }
    expect((await server.admin.delete(`/settings/locations/${location.id}`)).body.conflicts).toEqual([referrer])
    await guards(`/settings/warehouses/${warehouse.id}`, referrer, removing(`/settings/workflows/${from}`))
  })

  it('keeps the lookup type of an attribute that a condition names', async () => {
    const own = await attribute({ type: 'lookup', lookup_type: 'persons' })
    await workflow({ conditions: [{ attribute: own.code, operator: '!=', value: (await make.person()).id }] })
    const { status, body } = await server.admin.put(`/settings/attributes/${own.id}`, { lookup_type: 'organizations' })
    expect([status, body.code]).toEqual([409, 'in_use'])
  })
})

describe('a campaign', () => {
  it.each([
    ['tags', 'tag_id'],
    ['users', 'user_id'],
    ['organizations', 'organization_id'],
  ] as const)('keeps the record of %s that its filter names or excludes', async (kind, key) => {
    const { path, add } = kinds[kind] as (typeof kinds)[string]
    for (const name of [key, `${key}[not]`]) {
      const { id } = await add()
      const { id: from } = await campaign({ [name]: [id] })
      await guards(
        `${path}/${id}`,
        { entity_type: 'campaigns', id: from, field: 'audience.filter' },
        removing(`/settings/marketing/campaigns/${from}`),
      )
    }
  })

  it('keeps the attribute, its option and its record in the filter, and the attribute in the subject', async () => {
    const entity_type = 'persons'
    const chosen = await attribute({ entity_type, type: 'select', options: [{ name: 'A' }, { name: 'B' }] })
    const looked = await attribute({ entity_type, type: 'lookup', lookup_type: 'products' })
    const told = await attribute({ entity_type })
    const [a, b] = chosen.options as { id: number }[]
    const product = await make.product()
    const custom_attributes = { [String(chosen.code)]: `${a?.id}`, [String(looked.code)]: `${product.id}` }
    const { id: from } = await campaign({ custom_attributes }, `Hello {%persons.${told.code}%}`)
    const answers = [
      await server.admin.delete(`/settings/attributes/${chosen.id}`),
      await server.admin.put(`/settings/attributes/${chosen.id}?force=true`, { options: [{ id: b?.id }] }),
      await server.admin.delete(`/products/${product.id}`),
      await server.admin.delete(`/settings/attributes/${told.id}`),
    ]
    const of = (field: string) => [409, [{ entity_type: 'campaigns', id: from, field }]]
    expect(answers.map(({ status, body }) => [status, body.conflicts])).toEqual([
      of('audience.filter'),
      of('audience.filter'),
      of('audience.filter'),
      of('subject'),
    ])
  })
})

describe('a web form', () => {
  it.each(lookedUp)('keeps the record of %s that a default names', async (kind) => {
    const { path, add, lookup } = kinds[kind] as (typeof kinds)[string]
    const [{ id }, own] = [await add(), await attribute({ type: 'lookup', lookup_type: lookup })]
    const { id: from } = await form([{ attribute_id: own.id, default_value: id }])
    await guards(
      `${path}/${id}`,
      { entity_type: 'web-forms', id: from, field: 'attributes' },
      removing(`/settings/web-forms/${from}`),
    )
  })

  it('keeps the option that a default names', async () => {
    const own = await attribute({ type: 'multiselect', options: [{ name: 'A' }, { name: 'B' }] })
    const [a, b] = own.options as { id: number }[]
    const { id: from } = await form([{ attribute_id: own.id, default_value: [a?.id] }])
    const { status, body } = await server.admin.put(`/settings/attributes/${own.id}`, { options: [{ id: b?.id }] })
    expect([status, body.conflicts]).toEqual([409, [{ entity_type: 'web-forms', id: from, field: 'attributes' }]])
  })
})

describe('a text', () => {
  it.each(['subject', 'content'])('of a template keeps the attribute in its %s', async (field) => {
    const own = await attribute({})
    const text = `Hello {%leads.${own.code}%}`
    const { id: from } = await template(field === 'content' ? text : 'x', field === 'subject' ? text : 'x')
    await guards(
      `/settings/attributes/${own.id}`,
      { entity_type: 'email-templates', id: from, field },
      removing(`/settings/email-templates/${from}`),
    )
  })

  it.each([
    ['url', (text: string) => ({ url: `https://example.com/${text}` })],
    ['payload', (text: string) => ({ payload_type: 'raw', raw_payload_type: 'text', payload: text })],
    ['query_params', (text: string) => ({ query_params: [{ key: 'a', value: text }] })],
    ['headers', (text: string) => ({ headers: [{ key: 'x-a', value: text }] })],
  ] as const)('of a webhook keeps the attribute in its %s', async (field, body) => {
    const own = await attribute({})
    const { id: from } = await create('/settings/webhooks', {
      name: `H${unique()}`,
      url: 'https://example.com/',
      ...body(`{%leads.${own.code}%}`),
    })
    await guards(
      `/settings/attributes/${own.id}`,
      { entity_type: 'webhooks', id: from, field },
      removing(`/settings/webhooks/${from}`),
    )
  })
})

describe('an import', () => {
  it('keeps the attribute of its mapping until it is completed', async () => {
    const own = await attribute({ entity_type: 'persons' })
    const sent = await multipart({ file: file('a.csv', 'Name,Own\nAda,x\n') })
    const upload = await server.admin.post('/files', sent.body, { headers: sent.headers })
    const { id } = await create('/settings/data-transfer/imports', {
      type: 'persons',
      action: 'append',
      validation_strategy: 'skip-errors',
      file_id: upload.body.data.id,
      mapping: { Name: 'name', Own: own.code },
    })
    const { status, body } = await server.admin.delete(`/settings/attributes/${own.id}`)
    expect([status, body.conflicts]).toEqual([409, [{ entity_type: 'imports', id, field: 'mapping' }]])
    await server.store.db.updateTable('imports').set({ state: 'processing' }).where('id', '=', id).execute()
    await completeImport(systemContext(server.app.services, 'cli'), id)
    expect((await server.admin.delete(`/settings/attributes/${own.id}`)).status).toBe(200)
  })
})

describe('replace_with', () => {
  const other = async (kind: string): Promise<[string, number, number]> => {
    const { path, add } = kinds[kind] as (typeof kinds)[string]
    return [path, (await add()).id, (await add()).id]
  }

  it.each(lookedUp)('puts another of the %s into workflows, campaigns and forms', async (kind) => {
    const [path, old, next] = await other(kind)
    const lookup_type = kinds[kind]?.lookup
    const own = await attribute({ type: 'lookup', lookup_type })
    const many = await attribute({ type: 'multiselect', lookup_type, entity_type: 'persons' })
    const { id: rule } = await workflow({
      conditions: [{ attribute: own.code, operator: '!=', value: old }],
      actions: [
        { id: 'update_lead', attribute: own.code, value: old },
        { id: 'update_person', attribute: many.code, value: [old, next] },
      ],
    })
    const { id: sent } = await campaign({ custom_attributes: { [String(many.code)]: `777777,${old}` } })
    const { id: shown } = await form([
      { attribute_id: own.id, default_value: old },
      { attribute_id: many.id, default_value: [old, next] },
    ])
    server.events()
    const { status, text } = await server.admin.delete(`${path}/${old}?replace_with=${next}`)
    expect(status, text).toBe(200)
    expect(server.events()).toEqual(
      expect.arrayContaining([
        'settings.workflow.update.after',
        'settings.marketing.campaigns.update.after',
        'settings.web_forms.update.after',
      ]),
    )
    const read = async (where: string) => (await server.admin.get(where)).body.data
    const after = await read(`/settings/workflows/${rule}`)
    expect(after.conditions.map(({ value }: Json) => value)).toEqual([next])
    expect(after.actions.map(({ value }: Json) => value)).toEqual([next, [next]])
    expect((await read(`/settings/marketing/campaigns/${sent}`)).audience.filter).toEqual({
      custom_attributes: { [String(many.code)]: `777777,${next}` },
    })
    const defaults = (await read(`/settings/web-forms/${shown}`)).attributes.map(
      ({ default_value }: Json) => default_value,
    )
    expect(defaults).toEqual(expect.arrayContaining([next, [next]]))
    // The rules now keep the replacement.
    expect((await server.admin.delete(`${path}/${next}`)).body.conflicts).toHaveLength(4)
  })

  it.each([
    ['tags', 'tag_id'],
    ['users', 'user_id'],
    ['organizations', 'organization_id'],
  ])('puts another of the %s into the filter of a campaign', async (kind, key) => {
    const [path, old, next] = await other(kind)
    const { id } = await campaign({ [key]: [old], [`${key}[not]`]: [old, next] })
    expect((await server.admin.delete(`${path}/${old}?replace_with=${next}`)).status).toBe(200)
    const { filter } = (await server.admin.get(`/settings/marketing/campaigns/${id}`)).body.data.audience
    expect(filter).toEqual({ [key]: [next], [`${key}[not]`]: [next] })
  })

  it('puts another template and webhook into a workflow', async () => {
    const [one, two] = [await template('<p>1</p>'), await template('<p>2</p>')]
    const hook = () => create('/settings/webhooks', { name: `H${unique()}`, url: 'https://example.com/' })
    const [first, second] = [await hook(), await hook()]
    const { id } = await workflow({
      actions: [
        { id: 'send_email_to_person', value: one.id },
        { id: 'trigger_webhook', value: first.id },
      ],
    })
    for (const path of [
      `/settings/email-templates/${one.id}?replace_with=${two.id}`,
      `/settings/webhooks/${first.id}?replace_with=${second.id}`,
    ])
      expect((await server.admin.delete(path)).status).toBe(200)
    const { actions } = (await server.admin.get(`/settings/workflows/${id}`)).body.data
    expect(actions.map(({ value }: Json) => value)).toEqual([two.id, second.id])
  })

  it('refuses the record itself, one that does not exist, and one that a rule cannot name', async () => {
    const [path, old] = await other('users')
    const idle = await make.user({ is_active: false })
    const { id } = await workflow({ actions: [{ id: 'update_lead', attribute: 'user_id', value: old }] })
    const sentences = []
    for (const by of [old, 999_999, idle.id]) {
      const { status, body } = await server.admin.delete(`${path}/${old}?replace_with=${by}`)
      expect([status, Object.keys(body.errors)]).toEqual([422, ['query.replace_with']])
      sentences.push(body.errors['query.replace_with'][0])
    }
    expect(sentences).toEqual([
      'Must be another user.',
      'No user has id 999999.',
      `workflows ${id}: No active user has id ${idle.id}.`,
    ])
    expect((await server.admin.get(`${path}/${old}`)).status).toBe(200)
  })

  it('needs the permission to change the rule, and changes nothing in a dry run', async () => {
    const [path, old, next] = await other('tags')
    const { id } = await workflow({ conditions: [{ attribute: 'tag_ids', operator: '!{}', value: [old] }] })
    const url = `${path}/${old}?replace_with=${next}`
    const { caller } = await someone(server, ['settings.other_settings.tags.delete'])
    expect(await caller.delete(url)).toMatchObject({
      status: 403,
      body: { required: 'settings.automation.workflows.edit' },
    })
    expect((await server.admin.delete(url, { headers: { 'accord-dry-run': 'true' } })).status).toBe(200)
    const { conditions } = (await server.admin.get(`/settings/workflows/${id}`)).body.data
    expect([conditions[0].value, (await server.admin.get(`${path}/${old}`)).status]).toEqual([[old], 200])
  })
})

describe('a deletion of several records', () => {
  it.each(['tags', 'users', 'persons', 'organizations', 'leads', 'products', 'quotes'])(
    'leaves the %s that a workflow names, and deletes the others',
    async (kind) => {
      const { path, add, lookup } = kinds[kind] as (typeof kinds)[string]
      const [one, other] = [await add(), await add()]
      const own = lookup === undefined ? null : await attribute({ type: 'lookup', lookup_type: lookup })
      await workflow({
        conditions: [
          own === null
            ? { attribute: 'tag_ids', operator: '!{}', value: [one.id] }
            : { attribute: own.code, operator: '!=', value: one.id },
        ],
      })
      const { body } = await server.admin.post(`${path}/mass-delete`, { ids: [one.id, other.id] })
      expect(body.data.processed).toEqual([other.id])
      expect(body.data.failed).toMatchObject([{ id: one.id, status: 409, code: 'in_use' }])
    },
  )
})

describe('a refused deletion', () => {
  it('hides the id of a rule that the caller may not read', async () => {
    const { id } = await make.tag({ name: `T${unique()}` })
    await workflow({ conditions: [{ attribute: 'tag_ids', operator: '!{}', value: [id] }] })
    const { caller } = await someone(server, ['settings.other_settings.tags.delete'])
    const { status, body } = await caller.delete(`/tags/${id}`)
    expect([status, body.conflicts]).toEqual([409, [{ entity_type: 'workflows', id: null, field: 'conditions' }]])
  })

  it('lists no more than 20 rules', async () => {
    const { id } = await make.tag({ name: `T${unique()}` })
    for (let made = 0; made < 21; made++)
      await workflow({ conditions: [{ attribute: 'tag_ids', operator: '!{}', value: [id] }] })
    expect((await server.admin.delete(`/tags/${id}`)).body.conflicts).toHaveLength(20)
  })
})

describe('a new installation', () => {
  it('keeps the templates of the seeded workflows', async () => {
    const { status, body } = await server.admin.delete('/settings/email-templates/1')
    expect([status, body.conflicts]).toEqual([409, [{ entity_type: 'workflows', id: 1, field: 'actions' }]])
  })
})
