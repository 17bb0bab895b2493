// What a user who does not see all persons learns from campaigns: no number, stored filter or
// filled placeholder tells about a hidden person. Mails are sent to a real SMTP server.
import { describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { useSmtp } from '../support/outside.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const campaigns = '/settings/marketing/campaigns'
const people = '/contacts/persons'

let eve: Caller & { id: number }
let count = 0

const smtp = useSmtp()
const server = useServer(
  () => ({ config: { smtpUrl: smtp.url, campaignRate: 1000 } }),
  async (server) => {
    eve = await addUser(server, 'Eve', { view: 'individual' })
  },
)

const made = async (caller: Caller, path: string, body: object) => {
  const answer = await caller.post(path, body)
  expect(answer.status === 201 ? '' : answer.text).toBe('')
  return answer.body.data
}
const person = (name: string, changes: object = {}, caller: Caller = server.admin) =>
  made(caller, people, { name, emails: [{ value: `${name.toLowerCase()}@example.com` }], ...changes })
const campaign = async (caller: Caller, changes: object = {}): Promise<number> => {
  const content = '<p><a href="https://evil.example/{%persons.job_title%}">Dear {%persons.name%}</a></p>'
  const template = await made(server.admin, '/settings/email-templates', {
    name: `Spring ${++count}`,
    subject: 'x',
    content,
  })
  const sent = { name: 'Spring', subject: 'To {%persons.name%}', is_active: true, email_template_id: template.id }
  return (await made(caller, campaigns, { ...sent, ...changes })).id
}
const size = async (id: number, caller: Caller = eve) => (await caller.get(`${campaigns}/${id}/audience`)).body.data
const run = async (id: number, caller: Caller = server.admin) => {
  const answer = await caller.post(`${campaigns}/${id}/run`)
  await server.work()
  return answer
}
const mails = () => smtp.received.map(({ raw }) => String(raw)).join('\n')

describe('the numbers of a campaign', () => {
  it('do not tell whether an address is suppressed, refused or mailed because of a hidden person', async () => {
    await person('Ada', { subscribed: false })
    await person('Grace')
    const id = await campaign(server.admin)
    await run(id)
    const before = await size(id)
    expect(before).toMatchObject({ matched: 0, suppressed: 0, already_sent: 0, reachable: 0 })
    await made(server.admin, '/settings/marketing/suppressions', { address: 'grace@example.com' })
    expect(await size(id)).toEqual(before)
    await person('Own', { user_id: eve.id })
    expect(await size(id)).toMatchObject({ ...before, matched: 1, reachable: 1 })
    expect((await eve.get(`${campaigns}/${id}/preview`)).body.data).toMatchObject({ recipients: 1, already_sent: 0 })
    expect((await eve.get(`${campaigns}/${id}`)).body.data.stats).toMatchObject({ sent: 0, suppressed: 0 })
    expect((await server.admin.get(`${campaigns}/${id}`)).body.data.stats).toMatchObject({ sent: 1, suppressed: 1 })
    expect(await size(id, server.admin)).toMatchObject({ matched: 3 })
  })

  it('are 0 for a caller who may not read persons', async () => {
    await person('Ada')
    const id = await campaign(server.admin)
    const permissions = ['settings', 'settings.automation', 'settings.automation.campaigns']
    const blind = await addUser(server, 'Blind', { permissions })
    const narrow = await server.as(1, ['automation:read'])
    for (const caller of [blind, narrow]) expect(await size(id, caller)).toMatchObject({ matched: 0, reachable: 0 })
  })
})

describe('a stored filter', () => {
  it('is shown, also in events, to callers who may set it, and stays when others save the campaign', async () => {
    const filter = { job_title: ['Spymaster'] }
    const id = await campaign(server.admin, { audience: { type: 'filter', filter } })
    const narrow = await server.as(1, ['automation:read', 'automation:write'])
    for (const caller of [eve, narrow]) {
      const { body, text } = await caller.get(`${campaigns}/${id}`)
      expect([body.data.audience, text.includes('Spymaster')]).toEqual([
        { type: 'filter', filter: null, tag_id: null, import_id: null },
        false,
      ])
      for (const path of [`${campaigns}/${id}/history`, '/events?entity_type=campaigns'])
        expect((await caller.get(path)).text).not.toContain('Spymaster')
      expect((await caller.put(`${campaigns}/${id}`, { name: 'Later', audience: body.data.audience })).status).toBe(200)
    }
    expect((await server.admin.get(`${campaigns}/${id}`)).body.data.audience).toMatchObject({ filter })
  })
})

describe('the placeholders of a campaign', () => {
  it('show what the user who changed it last may see, and nothing of a hidden person', async () => {
    await person('Ada', { job_title: 'Countess', user_id: 1 })
    await person('Own', { job_title: 'Clerk', user_id: eve.id })
    const id = await campaign(eve)
    await run(id)
    expect(smtp.received.map(({ to }) => to.join()).sort()).toEqual(['ada@example.com', 'own@example.com'])
    expect(mails()).toContain('evil.example/Clerk')
    for (const word of ['Countess', 'To Ada', 'Dear Ada']) expect(mails()).not.toContain(word)
    const again = await campaign(eve, { name: 'Again' })
    await server.admin.put(`${campaigns}/${again}`, { name: 'Checked' })
    await run(again)
    expect(mails()).toContain('evil.example/Countess')
  })

  it('need a user: the campaign is not sent while this user is inactive or deleted', async () => {
    await person('Ada')
    const id = await campaign(eve)
    expect((await eve.post(`${campaigns}/${id}/run`)).status).toBe(202)
    await server.admin.put(`/settings/users/${eve.id}`, { is_active: false })
    await server.work()
    const sends = (await server.admin.get(`${campaigns}/${id}/sends`)).body.data
    expect(sends).toMatchObject([{ state: 'failed', error: expect.stringContaining('changed this campaign last') }])
    const refused = await run(id)
    expect([refused.status, refused.body.code]).toEqual([409, 'state_conflict'])
    await server.admin.delete(`/settings/users/${eve.id}`)
    expect((await run(id)).status).toBe(409)
    server.clock.set('2026-03-02T00:06:00.000Z')
    await server.tick()
    await server.work()
    expect(smtp.received).toEqual([])
    await server.admin.put(`${campaigns}/${id}`, { name: 'Mine now' })
    expect((await run(id)).status).toBe(202)
  })
})
