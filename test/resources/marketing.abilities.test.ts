// A token can save only campaigns that its abilities allow to send, because they are sent later
// with all rights of the user. The same goes for the templates of campaigns and workflows.
import { beforeAll, expect, it } from 'vitest'
import { unique } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'

const path = '/settings/marketing/campaigns'
let template: number
const server = useSharedServer()
beforeAll(async () => {
  template = (
    await server.admin.post('/settings/email-templates', { name: 'News', subject: 'News', content: '<p>Hi</p>' })
  ).body.data.id
})

const body = () => ({ name: `Campaign ${unique()}`, subject: 'News', email_template_id: template, is_active: false })
const tokenWith = (...abilities: string[]) => server.as(1, ['automation:*', ...abilities])

it.each([
  ['persons:read', ['emails:*', 'leads:*']],
  ['emails:write', ['persons:*', 'emails:read']],
])('needs %s for a new campaign, and for a change of one', async (required, abilities) => {
  const caller = await tokenWith(...abilities)
  const refused = await caller.post(path, body())
  expect([refused.status, refused.body.code, refused.body.required]).toEqual([403, 'forbidden', required])
  const made = await server.admin.post(path, body())
  expect(made.status, made.text).toBe(201)
  const { id } = made.body.data
  expect((await caller.put(`${path}/${id}`, { subject: 'Win {%persons.name%}' })).body.required).toBe(required)
  const able = await tokenWith(...abilities, required)
  expect((await able.post(path, body())).status).toBe(201)
  expect((await able.put(`${path}/${id}`, { subject: 'Win {%persons.name%}' })).status).toBe(200)
})

it('asks nothing of a change that changes nothing, which lends no rights', async () => {
  const sent = body()
  const { id } = (await server.admin.post(path, sent)).body.data
  expect((await (await tokenWith()).put(`${path}/${id}`, sent)).status).toBe(200)
})

it('needs the same for a change of the template of an active campaign', async () => {
  const made = await server.admin.post(path, { ...body(), is_active: true })
  expect(made.status, made.text).toBe(201)
  const change = { content: `<p>${unique()}</p>` }
  const put = (caller: Awaited<ReturnType<typeof tokenWith>>) =>
    caller.put(`/settings/email-templates/${template}`, change)
  const refused = await put(await tokenWith('emails:write'))
  expect([refused.status, refused.body.required]).toEqual([403, 'persons:read'])
  expect((await put(await tokenWith('emails:write', 'persons:read'))).status).toBe(200)
  expect((await put(await tokenWith())).status).toBe(200)
})

it('needs the same for a change of a template that a workflow sends', async () => {
  const own = { name: `Thanks ${unique()}`, subject: 'Thanks', content: '<p>Hi</p>' }
  const { id } = (await server.admin.post('/settings/email-templates', own)).body.data
  const workflow = {
    name: `Thank ${unique()}`,
    entity_type: 'persons',
    event: 'contacts.person.create.after',
    actions: [{ id: 'send_email_to_person', value: id }],
  }
  const put = async (...abilities: string[]) =>
    (await tokenWith(...abilities)).put(`/settings/email-templates/${id}`, { content: `<p>${unique()}</p>` })
  expect((await put()).status).toBe(200)
  const made = await server.admin.post('/settings/workflows', workflow)
  expect(made.status, made.text).toBe(201)
  const refused = await put('emails:write')
  expect([refused.status, refused.body.required]).toEqual([403, 'persons:read'])
  expect((await put('emails:write', 'persons:read')).status).toBe(200)
  expect((await (await tokenWith()).put(`/settings/email-templates/${id}`, { name: own.name })).status).toBe(200)
})
