// Rules of web forms as definitions that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import { deleteNamed } from '../support/deleted.ts'
import { useServer } from '../support/using.ts'

const path = '/settings/web-forms'
const basic = {
  title: 'Contact us',
  submit_button_label: 'Send',
  submit_success_action: 'message',
  submit_success_content: 'Thank you.',
}

const attribute: Record<string, number> = {}
const server = useServer({}, async (server) => {
  const { body } = await server.admin.get('/settings/attributes?per_page=100')
  for (const { id, code, entity_type } of body.data) attribute[`${entity_type}.${code}`] = id
})

const create = async (changes: object = {}) => (await server.admin.post(path, { ...basic, ...changes })).body.data
const codes = (form: { attributes: { attribute: { entity_type: string; code: string } }[] }) =>
  form.attributes.map((field) => `${field.attribute.entity_type}.${field.attribute.code}`)

describe('createWebForm', () => {
  it('has name and e-mail address of the person, required, and a key of its own', async () => {
    const { status, body } = await server.admin.post(path, basic)
    expect(status).toBe(201)
    expect(body.data.form_id).toMatch(/^[0-9a-f]{32}$/)
    expect(codes(body.data)).toEqual(['persons.name', 'persons.emails'])
    expect(body.data.attributes.every((field: { is_required: boolean }) => field.is_required)).toBe(true)
    expect(server.events()).toEqual(['settings.web_forms.create.before', 'settings.web_forms.create.after'])
    expect((await create()).form_id).not.toBe(body.data.form_id)
  })

  it('says which required attributes it does not ask for, when it or one of them is saved', async () => {
    const own = (entity_type: string, code: string, more: object = {}) =>
      server.admin.post('/settings/attributes', { entity_type, code, name: code, type: 'text', ...more })
    const { id } = await create({ title: 'First' })
    await create({ title: 'Asleep', is_active: false })
    const { body } = await own('persons', 'vat', { is_required: true })
    const inForm = (name: string) => ({
      field: 'attributes',
      message: `Persons require ${name}, which the form does not ask for. Submissions without it are accepted.`,
    })
    const inAttribute = {
      field: 'is_required',
      message: 'The web form First does not ask for it. Submissions without it are accepted.',
    }
    expect(body.meta).toEqual({ warnings: [inAttribute] })
    expect((await own('persons', 'with_default', { is_required: true, default_value: 'x' })).body.meta).toBeUndefined()
    expect((await own('leads', 'region', { is_required: true })).body.meta).toBeUndefined()
    const later = (await own('persons', 'size')).body
    expect(later.meta).toBeUndefined()
    const turned = await server.admin.put(`/settings/attributes/${later.data.id}`, { is_required: true })
    expect(turned.body.meta).toEqual({ warnings: [inAttribute] })
    expect((await server.admin.get(`${path}/${id}`)).body.data.warnings).toEqual([inForm('vat'), inForm('size')])
    const asking = await server.admin.put(`${path}/${id}`, { attributes: [{ attribute_id: body.data.id }] })
    expect(asking.body.meta).toEqual({ warnings: [inForm('size')] })
    expect(asking.body.data.warnings).toEqual([inForm('size')])
    const hidden = [
      { attribute_id: body.data.id },
      { attribute_id: later.data.id, is_hidden: true, default_value: 'XL' },
    ]
    const { body: all } = await server.admin.put(`${path}/${id}`, { attributes: hidden })
    expect([all.meta, all.data.warnings]).toEqual([undefined, []])
    expect((await server.admin.post(path, { ...basic, create_lead: true })).body.meta.warnings).toHaveLength(3)
  })

  it('keeps the fields in their order and adds what must be there', async () => {
    const form = await create({
      create_lead: true,
      attributes: [
        { attribute_id: attribute['leads.title'], name: 'What about?', placeholder: 'Your question' },
        { attribute_id: attribute['persons.emails'] },
        { attribute_id: attribute['leads.lead_value'], is_hidden: true, default_value: 100 },
      ],
    })
    expect(codes(form)).toEqual(['leads.title', 'persons.emails', 'leads.lead_value', 'persons.name'])
    expect(form.attributes[0]).toMatchObject({ name: 'What about?', placeholder: 'Your question', is_required: true })
    expect(form.attributes[2]).toMatchObject({ is_hidden: true, default_value: 100 })
  })

  it('refuses fields of leads when it creates none, attributes of others, doubles and bad defaults, all at once', async () => {
    const { status, body } = await server.admin.post(path, {
      ...basic,
      attributes: [
        { attribute_id: attribute['leads.title'] },
        { attribute_id: attribute['products.sku'] },
        { attribute_id: attribute['persons.job_title'] },
        { attribute_id: attribute['persons.job_title'] },
        { attribute_id: attribute['persons.user_id'], default_value: 99 },
        { attribute_id: attribute['persons.name'], is_required: false },
        {},
        { attribute_id: attribute['persons.emails'], is_hidden: true },
      ],
    })
    expect(status).toBe(422)
    expect(Object.keys(body.errors)).toEqual([
      'attributes.0.attribute_id',
      'attributes.1.attribute_id',
      'attributes.3.attribute_id',
      'attributes.4.default_value',
      'attributes.5.is_required',
      'attributes.6.attribute_id',
      'attributes.7.is_hidden',
    ])
    expect(server.events()).toEqual([])
  })

  it('redirects only to http addresses', async () => {
    const redirect = { ...basic, submit_success_action: 'redirect' }
    for (const submit_success_content of ['Thank you.', 'javascript:alert(1)', '/thanks']) {
      const { body } = await server.admin.post(path, { ...redirect, submit_success_content })
      expect(body.errors).toEqual({ submit_success_content: ['Must be an http or https URL to go to.'] })
    }
    expect((await create({ ...redirect, submit_success_content: 'https://example.com/thanks' })).id).toBeGreaterThan(0)
  })
})

describe('updateWebForm', () => {
  it('leaves the fields alone when it says nothing of them, and never loses the two that must be there', async () => {
    const { id, attributes } = await create({ attributes: [{ attribute_id: attribute['persons.job_title'] }] })
    const renamed = (await server.admin.put(`${path}/${id}`, { title: 'Hello' })).body.data
    expect(renamed.attributes).toEqual(attributes)
    const emptied = (await server.admin.put(`${path}/${id}`, { attributes: [] })).body.data
    expect(codes(emptied)).toEqual(['persons.name', 'persons.emails'])
    expect(emptied.version).toBe(3)
    const again = (await server.admin.put(`${path}/${id}`, emptied)).body.data
    expect(again).toMatchObject({ version: 3, attributes: emptied.attributes })
  })

  it('keeps defaults that it does not change and the order that it sends, also a default that names what is gone', async () => {
    const source = (await server.admin.post('/sources', { name: 'Fair' })).body.data
    const form = await create({
      create_lead: true,
      attributes: [
        { attribute_id: attribute['leads.lead_value'], default_value: 12.5, sort_order: 7 },
        { attribute_id: attribute['leads.lead_source_id'], default_value: source.id, sort_order: 8 },
      ],
    })
    expect((await deleteNamed(server, `/sources/${source.id}`)).status).toBe(200)
    const back = await server.admin.put(`${path}/${form.id}`, form)
    expect([back.status, back.body.data]).toEqual([200, form])
    const ids = form.attributes.map(({ id }: { id: number }) => ({ id, placeholder: 'Hint' }))
    const hinted = await server.admin.put(`${path}/${form.id}`, { attributes: ids })
    expect(hinted.body.data.attributes).toEqual(
      form.attributes.map((field: object, index: number) => ({ ...field, placeholder: 'Hint', sort_order: index + 1 })),
    )
    const turned = await server.admin.put(`${path}/${form.id}`, { attributes: ids.toReversed() })
    expect(codes(turned.body.data)).toEqual(codes(form).toReversed())
    const changed = { attributes: [{ attribute_id: attribute['leads.lead_value'], default_value: 'much' }] }
    expect((await server.admin.put(`${path}/${form.id}`, changed)).status).toBe(422)
  })

  it('does not stop making leads while fields of leads are on it', async () => {
    const { id } = await create({ create_lead: true, attributes: [{ attribute_id: attribute['leads.title'] }] })
    const { status, body } = await server.admin.put(`${path}/${id}`, { create_lead: false })
    expect([status, Object.keys(body.errors)]).toEqual([422, ['create_lead']])
  })
})

describe('deleteAttribute', () => {
  it('takes the attribute off the forms', async () => {
    const vat = (
      await server.admin.post('/settings/attributes', {
        code: 'vat',
        name: 'VAT',
        type: 'text',
        entity_type: 'persons',
      })
    ).body.data
    const { id } = await create({ attributes: [{ attribute_id: vat.id }] })
    expect((await server.admin.delete(`/settings/attributes/${vat.id}`)).status).toBe(200)
    expect(codes((await server.admin.get(`${path}/${id}`)).body.data)).toEqual(['persons.name', 'persons.emails'])
  })
})
