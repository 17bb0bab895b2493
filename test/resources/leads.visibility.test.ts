// A caller without the right to read persons or mails sees only references in a lead, and cannot
// guess other fields by searching.
import { describe, expect, it } from 'vitest'
import { permissionKeys } from '../../src/contract/operations.gen.ts'
import type { Caller } from '../support/app.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

type Someone = Caller & { id: number }

let anna: Someone
let ben: Someone

const server = useServer({}, async (server) => {
  anna = await addUser(server, 'Anna', { view: 'individual' })
  ben = await addUser(server, 'Ben', { view: 'individual' })
})

const emails = [{ value: 'first@example.com' }, { value: 'hushed.address@example.org' }]

/** Creates a lead of Anna with a person of another owner. */
const leadWith = async (owner: number): Promise<number> => {
  const make = given(server.admin)
  const person = await make.person({ name: 'Petra Person', emails, user_id: owner })
  return (await make.lead({ title: 'Forty seats', user_id: anna.id, person_id: person.id })).id
}

/** All operations that search leads by words. */
const ways: [name: string, find: (caller: Caller, q: string) => Promise<number[]>][] = [
  ['listLeads', async (caller, q) => (await caller.get(`/leads?q=${q}`)).body.data.map(idOf)],
  ['exportLeads', async (caller, q) => ids((await caller.get(`/leads/export?format=csv&q=${q}`)).text)],
  [
    'kanbanLeads',
    async (caller, q) =>
      (await caller.get(`/leads/kanban?q=${q}`)).body.data.flatMap((stage: any) => stage.leads.data.map(idOf)),
  ],
  ['searchRecords', async (caller, q) => (await caller.get(`/search?types=leads&q=${q}`)).body.data.map(idOf)],
]
const idOf = ({ id }: { id: number }): number => id
const ids = (csv: string): number[] =>
  csv
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => Number.parseInt(line, 10))

describe.each(ways)('%s', (_name, find) => {
  it('finds a lead by every address of its person, also of a person of another owner', async () => {
    const id = await leadWith(ben.id)
    for (const word of ['Petra', 'first@example.com', 'Forty', 'hushed', 'hushed.address@example.org'])
      expect(await find(anna, word)).toEqual([id])
    expect(await find(ben, 'Petra')).toEqual([])
  })

  it('finds it by the first address alone for those who may not read persons', async () => {
    const id = await leadWith(ben.id)
    const permissions = permissionKeys.filter((key) => !key.startsWith('contacts'))
    const seller = await addUser(server, 'Seller', { permissions })
    expect(await find(seller, 'first@example.com')).toEqual([id])
    expect(await find(seller, 'hushed')).toEqual([])
  })
})

describe('detachLeadQuote and detachQuoteLead', () => {
  it('answer 404 for a record out of sight, as if it were not linked, and leave the link', async () => {
    const make = given(server.admin)
    const [mine, his] = [await make.lead({ user_id: anna.id }), await make.lead({ user_id: ben.id })]
    const [hers, others] = [await make.quote({ user_id: anna.id }), await make.quote({ user_id: ben.id })]
    await server.admin.post(`/leads/${mine.id}/quotes`, { quote_id: others.id })
    await server.admin.post(`/leads/${his.id}/quotes`, { quote_id: hers.id })
    const path = `/quotes/${hers.id}/leads/${his.id}`
    expect((await anna.delete(path)).status).toBe(404)
    expect((await server.admin.delete(path)).status).toBe(200)
    // Her lead shows her the quote of Ben, until she unlinks it.
    expect((await anna.delete(`/leads/${mine.id}/quotes/${others.id}`)).status).toBe(200)
    expect((await anna.get(`/quotes/${others.id}`)).status).toBe(404)
  })
})

describe('attachLeadEmail', () => {
  it('shows a mail that was linked before to those alone who may read mail', async () => {
    const lead = await given(server.admin).lead({ user_id: anna.id })
    const draft = { subject: 'Terms', html: '<p>hushed terms</p>', to: ['a@example.com'], is_draft: true }
    const mail = (await server.admin.post('/emails', { ...draft, lead_id: lead.id })).body.data
    const attach = (caller: Caller) => caller.post(`/leads/${lead.id}/emails`, { email_id: mail.id })
    expect((await attach(server.admin)).body.data.html).toContain('hushed terms')
    for (const [abilities, required] of [
      [['leads:read', 'leads:write'], 'emails:write'],
      [['leads:read', 'leads:write', 'emails:write'], 'emails:read'],
    ] as const) {
      const refused = await attach(await server.as(1, [...abilities]))
      expect([refused.status, refused.body.required]).toEqual([403, required])
      expect(refused.text).not.toContain('hushed')
    }
    const permissions = permissionKeys.filter((key) => key !== 'mail.view')
    const refused = await attach(await addUser(server, 'Clerk', { permissions }))
    expect([refused.status, refused.body.required]).toEqual([403, 'mail.view'])
  })
})

describe('previewCampaign', () => {
  it('fills in no person for callers who may not read persons', async () => {
    const { id: person } = await given(server.admin).person({ name: 'Petra Person', emails })
    const content = '<p>{%persons.name%} {%persons.emails%}</p>'
    const post = async (path: string, body: object) => (await server.admin.post(path, body)).body.data
    const template = await post('/settings/email-templates', { name: 'T', subject: 'S', content })
    const campaign = { name: 'C', subject: 'S', email_template_id: template.id }
    const { id } = await post('/settings/marketing/campaigns', campaign)
    const path = `/settings/marketing/campaigns/${id}/preview`
    expect((await server.admin.get(path)).text).toContain('hushed')
    const permissions = ['settings', 'settings.automation', 'settings.automation.campaigns']
    const marketer = await addUser(server, 'Marketer', { permissions })
    const seen = await marketer.get(path)
    expect([seen.status, seen.body.data.person_id]).toEqual([200, null])
    expect(seen.text).not.toMatch(/Petra|hushed/)
    expect((await marketer.get(`${path}?person_id=${person}`)).status).toBe(422)
  })
})
