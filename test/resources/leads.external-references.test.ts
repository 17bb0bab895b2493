// Records named by external ids in mass operations, merges, previews, views and replies to e-mails.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { newName } from '../support/names.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const { admin } = server
const make = given(admin)

const newId = () => newName('id').toLowerCase().replaceAll(' ', '-')
const by = (id: string) => ({ external_id: `shop:${id}` })
const draft = { subject: 'Question', html: '<p>Hello</p>', to: ['ada@example.com'], is_draft: true }
const identified = (id: string, more: object = {}) => ({ external_ids: { shop: id }, ...more })

async function create(path: string, body: object) {
  const { status, text, body: reply } = await admin.post(path, body)
  expect(status, text).toBe(201)
  return reply.data
}

describe('a mass operation', () => {
  it.each([
    ['lead', '/leads'],
    ['person', '/contacts/persons'],
    ['tag', '/tags'],
  ] as const)('deletes each %s once that its ids name in either way', async (kind, list) => {
    const [one, other] = [newId(), newId()]
    const records = [await make[kind](identified(one)), await make[kind](identified(other))]
    const remove = async (ids: unknown[]) => admin.post(`${list}/mass-delete`, { ids })
    expect((await remove([by(one), by('unknown')])).body.errors).toEqual({ 'ids.1': [expect.any(String)] })
    expect((await remove([by(one), { name: 'x' }])).body.errors).toEqual({
      'ids.1': ['Must be an id, or an object with external_id, such as {"external_id":"hubspot:123"}.'],
    })
    const reply = await remove([by(one), records[0]?.id, by(other)])
    expect(reply.status, reply.text).toBe(200)
    for (const record of records) expect((await admin.get(`${list}/${record?.id}`)).status).toBe(404)
  })

  it('finds the stage of the leads that are named by external ids', async () => {
    const id = newId()
    const lead = await make.lead(identified(id))
    const reply = await admin.post('/leads/mass-update', { ids: [by(id)], value: { code: 'won' } })
    expect(reply.status, reply.text).toBe(200)
    expect((await admin.get(`/leads/${lead.id}`)).body.data.stage.code).toBe('won')
  })

  it('names no record that the caller does not see', async () => {
    const id = newId()
    const lead = await make.lead(identified(id, { user_id: 1 }))
    const permissions = ['leads', 'leads.delete', 'leads.edit']
    const other = await addUser(server, newName('Other'), { permissions, view: 'individual' })
    for (const [path, more] of [
      ['/leads/mass-delete', {}],
      ['/leads/mass-update', { changes: { title: 'Taken' } }],
    ] as const) {
      const reply = await other.post(path, { ids: [by(id)], ...more })
      expect([reply.status, reply.body.errors], reply.text).toEqual([422, { 'ids.0': [expect.any(String)] }])
    }
    expect((await admin.get(`/leads/${lead.id}`)).status).toBe(200)
  })
})

describe('a merge', () => {
  it('takes persons by e-mail address and by external id', async () => {
    const [id, email] = [newId(), `${newId()}@example.com`]
    const kept = await make.person()
    const merged = await make.person(identified(id))
    const second = await make.person({ emails: [{ value: email, label: 'work' }] })
    const reply = await admin.post(`/contacts/persons/${kept.id}/merge`, { ids: [by(id), { email }] })
    expect(reply.status, reply.text).toBe(200)
    for (const gone of [merged, second]) expect((await admin.get(`/contacts/persons/${gone.id}`)).status).toBe(308)
  })
})

describe('a record of a type that the request tells', () => {
  it('fills the preview of a template', async () => {
    const id = newId()
    await make.person(identified(id, { name: 'Grace Hopper' }))
    const template = await create('/settings/email-templates', {
      name: newName('Template'),
      subject: 'Dear {%persons.name%}',
      content: '<p>Hello</p>',
    })
    const preview = async (body: object) => admin.post(`/settings/email-templates/${template.id}/preview`, body)
    const reply = await preview({ entity_type: 'persons', entity_id: by(id) })
    expect([reply.status, reply.text]).toEqual([200, expect.stringContaining('Grace Hopper')])
    for (const entity_type of ['leads', 'users', 'nothing', 7, undefined]) {
      const refused = await preview({ ...(entity_type !== undefined && { entity_type }), entity_id: by(id) })
      expect(refused.status, refused.text).toBe(422)
    }
  })

  it('is tested on a workflow, and a missing workflow is still missing', async () => {
    const id = newId()
    const activity = await make.activity(identified(id))
    const workflow = 1
    const test = async (at: unknown, entity_id: unknown) => admin.post(`/settings/workflows/${at}/test`, { entity_id })
    const reply = await test(workflow, by(id))
    expect(reply.body).toEqual((await test(workflow, activity.id)).body)
    expect(reply.status, reply.text).toBe(200)
    expect((await test(workflow, by('unknown'))).body.errors).toEqual({ entity_id: [expect.any(String)] })
    expect([(await test(999_999, by(id))).status, (await test('x', by(id))).status]).toEqual([404, 404])
  })
})

describe('other bodies', () => {
  it('name the answered e-mail, the tag of an audience, and the owner and groups of a view', async () => {
    const id = newId()
    const asked = await create('/emails', identified(id, draft))
    const tag = await make.tag(identified(id))
    const group = await make.group(identified(id))
    await admin.put('/settings/users/1', identified(id))
    expect((await create('/emails', { ...draft, parent_id: by(id) })).parent_id).toBe(asked.id)
    const template = await create('/settings/email-templates', {
      name: newName('Template'),
      subject: 'News',
      content: '<p>Hello</p>',
    })
    const campaign = await create('/settings/marketing/campaigns', {
      name: newName('Campaign'),
      subject: 'News',
      email_template_id: template.id,
      audience: { type: 'tag', tag_id: by(id) },
    })
    expect(campaign.audience).toMatchObject({ tag_id: tag.id })
    const view = { name: newName('View'), type: 'leads', where: { status: 1 }, user_id: by(id), group_ids: [by(id)] }
    const made = await admin.post('/views', view)
    expect(made.body.data, made.text).toMatchObject({ user_id: 1, group_ids: [group.id] })
    const person = await make.person(identified(id))
    const lead = await create('/leads', { title: 'Asked', lead_value: 1, email_id: by(id), person: { id: by(id) } })
    expect(lead.person_id).toBe(person.id)
    expect((await admin.get(`/emails/${asked.id}`)).body.data.lead_id).toBe(lead.id)
  })
})
