// Records without an owner: users with a limited view see them as the configuration says, on every
// channel, with the records that a lead reaches.
import { describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { given } from '../support/given.ts'
import { newName } from '../support/names.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const { admin } = server
const make = given(admin)

const narrowest = (view: string | null) =>
  admin.put('/settings/configuration', { values: { 'visibility.ownerless': view } })

/** Creates a lead without an owner. Its person, organization and quote belong to another user. */
async function formLead() {
  const word = newName('Zebra')
  const { id: organization_id } = await make.organization({ name: newName('Org') })
  const person = await make.person({ name: newName('Person'), organization_id })
  const lead = await make.lead({ title: word, person_id: person.id, lead_value: 10 })
  await admin.put(`/leads/${lead.id}`, { user_id: null })
  const quote = await make.quote({ person_id: person.id, lead_id: lead.id })
  return { word, lead, person, organization_id, quote }
}

/** Returns how many of the records of a lead a caller finds, by channel. */
async function found(
  caller: Caller,
  { word, lead, person, organization_id, quote }: Awaited<ReturnType<typeof formLead>>,
) {
  const ids = async (path: string): Promise<number[]> =>
    (await caller.get(path)).body.data.map(({ id }: { id: number }) => id)
  const events = (await caller.get(`/events?entity_type=leads&entity_id=${lead.id}`)).body.data
  const board = (await caller.get(`/leads/kanban?q=${word}`)).body.data
  return {
    show: (await caller.get(`/leads/${lead.id}`)).status,
    list: (await ids(`/leads?title=${word}`)).length,
    search: (await ids(`/leads?q=${word}`)).length,
    global: (await caller.get(`/search?q=${word}`)).body.data.length,
    export: (await caller.get(`/leads/export?title=${word}`)).text.trim().split('\n').filter(Boolean).length,
    board: JSON.stringify(board).includes(word),
    person: (await caller.get(`/contacts/persons/${person.id}`)).status,
    persons: (await ids(`/contacts/persons?id=${person.id}`)).length,
    organization: (await caller.get(`/contacts/organizations/${organization_id}`)).status,
    quote: (await caller.get(`/quotes/${quote.id}`)).status,
    feed: events.length > 0,
  }
}

const all = {
  show: 200,
  list: 1,
  search: 1,
  global: 1,
  export: 1,
  board: true,
  person: 200,
  persons: 1,
  organization: 200,
  quote: 200,
  feed: true,
}
const none = {
  show: 404,
  list: 0,
  search: 0,
  global: 0,
  export: 0,
  board: false,
  person: 404,
  persons: 0,
  organization: 404,
  quote: 404,
  feed: false,
}

describe('a lead without an owner', () => {
  it.each([
    { view: null, group: none, individual: none },
    { view: 'global', group: none, individual: none },
    { view: 'group', group: all, individual: none },
    { view: 'individual', group: all, individual: all },
  ])('is seen by the views that $view includes', async ({ view, group, individual }) => {
    await narrowest(view)
    const made = await formLead()
    const member = await addUser(server, newName('member'), { view: 'group', group: newName('Team') })
    const alone = await addUser(server, newName('alone'), { view: 'individual' })
    expect(await found(member, made)).toEqual(group)
    expect(await found(alone, made)).toEqual(individual)
    expect(await found(admin, made)).toEqual(all)
  })

  it('is taken, and then seen by its owner alone', async () => {
    await narrowest('individual')
    const made = await formLead()
    const rita = await addUser(server, newName('rita'), { view: 'individual' })
    const sven = await addUser(server, newName('sven'), { view: 'individual' })
    expect((await rita.put(`/leads/${made.lead.id}`, { user_id: rita.id })).status).toBe(200)
    expect(await found(rita, made)).toEqual(all)
    expect(await found(sven, made)).toEqual(none)
  })

  it('is still seen when it is deleted, as is its quote', async () => {
    await narrowest('individual')
    const made = await formLead()
    const rita = await addUser(server, newName('rita'), { view: 'individual' })
    const deletions = async (type: string, id: number) =>
      (await rita.get(`/events?entity_type=${type}&entity_id=${id}&after=0`)).body.data
        .map(({ name }: { name: string }) => name)
        .filter((name: string) => name.endsWith('delete.after'))
    await admin.delete(`/quotes/${made.quote.id}`)
    await admin.delete(`/leads/${made.lead.id}`)
    expect(await deletions('leads', made.lead.id)).toEqual(['lead.delete.after'])
    expect(await deletions('quotes', made.quote.id)).toEqual(['quote.delete.after'])
    expect((await rita.post(`/leads/${made.lead.id}/restore`)).status).toBe(200)
    await narrowest('global')
    expect(await deletions('quotes', made.quote.id)).toEqual([])
  })

  it('counts in the reports of those who see it', async () => {
    await narrowest('individual')
    const rita = await addUser(server, newName('rita'), { view: 'individual' })
    const won = async () =>
      (await rita.post('/reports/query', { measure: 'won_value', from: '2026-01-01', to: '2026-12-31' })).body
    const before = JSON.stringify(await won())
    const { lead } = await formLead()
    const { stages } = (await admin.get(`/pipelines/${lead.lead_pipeline_id}`)).body.data
    const { id } = stages.find(({ code }: { code: string }) => code === 'won')
    await admin.put(`/leads/${lead.id}/stage`, { lead_pipeline_stage_id: id })
    expect(JSON.stringify(await won())).not.toBe(before)
  })
})
