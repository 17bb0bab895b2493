// Saved views in the audiences of campaigns, and the traces that an erased person has in views.
import { describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { useSmtp } from '../support/outside.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const campaigns = '/settings/marketing/campaigns'
const smtp = useSmtp()
const server = useServer(() => ({ config: { smtpUrl: smtp.url, campaignRate: 1000 } }))

async function make(path: string, body: object, caller: Caller = server.admin) {
  const { status, text, body: reply } = await caller.post(path, body)
  expect(status, text).toBe(201)
  return reply.data
}
const person = (name: string, more: object = {}) =>
  make('/contacts/persons', { name, emails: [{ value: `${name.toLowerCase()}@example.com` }], ...more })
const view = async (where: object, more: object = {}, caller: Caller = server.admin): Promise<number> =>
  (await make('/views', { name: 'Readers', type: 'persons', where, ...more }, caller)).id
async function campaign(filter: object): Promise<number> {
  const content = '<p>Dear {%persons.name%}</p>'
  const template = await make('/settings/email-templates', { name: 'Spring', subject: 'Unused', content })
  const audience = { type: 'filter', filter }
  const body = { name: 'Spring', subject: 'Hello', is_active: true, email_template_id: template.id, audience }
  return (await make(campaigns, body)).id
}
const size = async (id: number, caller: Caller = server.admin) =>
  (await caller.get(`${campaigns}/${id}/audience`)).body.data
const permissions = ['views', 'views.create', 'views.edit', 'views.delete', 'contacts', 'contacts.persons']

describe('a view in the audience of a campaign', () => {
  it('selects the persons of every owner, with the conditions that it has at the run', async () => {
    const ben = await addUser(server, 'Ben', { view: 'individual' })
    for (const name of ['Ada', 'Grace', 'Joan']) await person(name, { user_id: name === 'Joan' ? ben.id : 1 })
    const readers = await view({ name: { in: ['Ada', 'Joan'] } })
    const id = await campaign({ view: readers })
    expect(await size(id)).toMatchObject({ matched: 2, problem: null })
    expect(await size(id, ben)).toMatchObject({ matched: 1, problem: null })
    await server.admin.put(`/views/${readers}`, { where: { name: { in: ['Grace', 'Joan'] } } })
    expect((await server.admin.post(`${campaigns}/${id}/run`)).status).toBe(202)
    await server.work()
    expect(smtp.received.map(({ to }) => to.join()).sort()).toEqual(['grace@example.com', 'joan@example.com'])
  })

  it('is combined with the other filters', async () => {
    for (const name of ['Ada', 'Grace', 'Joan']) await person(name)
    const id = await campaign({ view: await view({ name: { in: ['Ada', 'Joan'] } }), 'name[not]': ['Ada'] })
    expect(await size(id)).toMatchObject({ matched: 1 })
  })

  it('cannot be deleted while the campaign uses it, unless another view replaces it', async () => {
    const [first, second] = [await view({ name: 'Ada' }), await view({}, { name: 'All' })]
    const id = await campaign({ view: first })
    const refused = await server.admin.delete(`/views/${first}`)
    expect(refused).toMatchObject({ status: 409, body: { code: 'in_use' } })
    expect(refused.body.conflicts).toEqual([{ entity_type: 'campaigns', id, field: 'audience.filter' }])
    const leads = (await make('/views', { name: 'L', type: 'leads', where: {} })).id
    expect((await server.admin.delete(`/views/${first}?replace_with=${leads}`)).status).toBe(422)
    expect((await server.admin.delete(`/views/${first}?replace_with=${second}`)).status).toBe(200)
    expect((await server.admin.get(`${campaigns}/${id}`)).body.data.audience.filter).toEqual({ view: second })
    await server.admin.delete(`${campaigns}/${id}`)
    expect((await server.admin.delete(`/views/${second}`)).status).toBe(200)
  })

  it('must be one of persons that the editor sees', async () => {
    const body = { name: 'Spring', subject: 'Hello', email_template_id: null }
    const leads = (await make('/views', { name: 'L', type: 'leads', where: {} })).id
    for (const wrong of [leads, 999]) {
      const reply = await server.admin.post(campaigns, {
        ...body,
        audience: { type: 'filter', filter: { view: wrong } },
      })
      expect([reply.status, Object.keys(reply.body.errors)]).toContainEqual(
        expect.arrayContaining(['audience.filter.view']),
      )
    }
    const ed = await addUser(server, 'Ed', {
      permissions: [...permissions, 'settings.automation.campaigns', 'settings.automation.campaigns.create'],
    })
    const hidden = await view({})
    const audience = { type: 'filter', filter: { view: hidden } }
    expect((await ed.post(campaigns, { ...body, audience })).body.errors['audience.filter.view']).toEqual([
      `No view has id ${hidden}.`,
    ])
  })

  it('may get other conditions only from a user who may change campaigns and sees all persons', async () => {
    const ben = await addUser(server, 'Ben', { permissions })
    const readers = await view({ name: 'Ada' }, {}, ben)
    const id = await campaign({ view: readers })
    const at = `/views/${readers}`
    expect(await ben.put(at, { where: {} })).toMatchObject({ status: 403 })
    expect((await ben.put(at, { name: 'Renamed', where: { name: 'Ada' } })).status).toBe(200)
    const edit = ['settings.automation.campaigns', 'settings.automation.campaigns.edit']
    const eve = await addUser(server, 'Eve', { view: 'individual', permissions: [...permissions, ...edit] })
    await server.admin.put(at, { user_id: eve.id })
    expect((await eve.put(at, { where: {} })).status).toBe(403)
    expect((await server.admin.put(at, { where: {} })).status).toBe(200)
    await server.admin.delete(`${campaigns}/${id}`)
    expect((await eve.put(at, { where: { name: 'Joan' } })).status).toBe(200)
  })

  it('stops the campaign when what it names was deleted', async () => {
    await person('Ada')
    const tag = (await make('/tags', { name: 'Quiet' })).id
    const type = { entity_type: 'persons', code: 'club', name: 'Club', type: 'boolean' }
    const attribute = (await make('/settings/attributes', type)).id
    const unwanted = await campaign({ view: await view({ not: [{ tag_id: { in: [tag] } }] }) })
    const members = await view({ custom_attributes: { club: true } }, { name: 'Members' })
    await server.admin.put(`${campaigns}/${unwanted}`, { is_active: true })
    expect(await size(unwanted)).toMatchObject({ matched: 1, problem: null })
    expect((await server.admin.delete(`/tags/${tag}`)).status).toBe(200)
    const problem = `The view Readers of the audience no longer works. where.not.0.tag_id: No tag has id ${tag}.`
    expect(await size(unwanted)).toMatchObject({ matched: 0, problem })
    const run = await server.admin.post(`${campaigns}/${unwanted}/run`)
    expect([run.status, run.body.detail]).toEqual([409, problem])
    await server.admin.put(`${campaigns}/${unwanted}`, { audience: { type: 'filter', filter: { view: members } } })
    expect((await server.admin.delete(`/settings/attributes/${attribute}`)).status).toBe(200)
    expect((await size(unwanted)).problem).toContain('where.custom_attributes.club: Unknown attribute.')
    expect((await server.admin.get(`/contacts/persons?view=${members}`)).status).toBe(422)
  })
})

describe('the erasure of a person', () => {
  it('leaves no trace in the names and conditions of views, which still work', async () => {
    const { id } = await person('Zq Canary', { emails: [{ value: 'zq@canary.example' }] })
    const where = { or: [{ email: 'zq@canary.example' }, { name: { contains: 'Zq Canary' } }, { id }] }
    const readers = await view(where, { name: 'About Zq Canary' })
    expect((await server.admin.get(`/contacts/persons?view=${readers}`)).body.data).toHaveLength(1)
    const erased = await server.admin.post(`/contacts/persons/${id}/erase`, {})
    expect(erased.status, erased.text).toBeLessThan(300)
    const { text, body } = await server.admin.get(`/views/${readers}`)
    expect(text).not.toMatch(/canary/i)
    expect(body.data.where.or).toHaveLength(3)
    expect((await server.admin.get(`/contacts/persons?view=${readers}`)).body.data).toEqual([])
    const row = await server.store.db.selectFrom('saved_views').selectAll().where('id', '=', readers).execute()
    expect(JSON.stringify(row)).not.toMatch(/canary/i)
  })
})
