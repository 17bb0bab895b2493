// A user who sees a lead sees and works with its person, organization, quotes, activities and
// e-mails, on every channel; a stranger, and an owner who lost the lead, sees none of them.
import { beforeAll, describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { given, unique } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

type Someone = Caller & { id: number }
type Entity = keyof typeof paths

const server = useSharedServer()

const paths = {
  persons: '/contacts/persons',
  organizations: '/contacts/organizations',
  quotes: '/quotes',
  activities: '/activities',
  emails: '/emails',
} as const
const entities = Object.keys(paths) as Entity[]
const exported = ['persons', 'organizations', 'quotes'] as const

let rep: Someone
let stranger: Someone
let former: Someone
let next = 0

beforeAll(async () => {
  rep = await addUser(server, 'Rep', { view: 'individual' })
  stranger = await addUser(server, 'Stranger', { view: 'individual' })
  former = await addUser(server, 'Former', { view: 'individual' })
})

interface Deal {
  word: string
  lead: number
  ids: Record<Entity, number>
  address: string
}

/** Creates a lead of a user. The administrator owns its person, organization and the rest. */
async function deal(owner: number): Promise<Deal> {
  const make = given(server.admin)
  const word = `word${unique()}x`
  const address = `${word}@example.com`
  const organization = await make.organization({ name: `Org ${word}` })
  const emails = [{ value: `first${word}@example.com` }, { value: address }]
  const person = await make.person({ name: `Per ${word}`, organization_id: organization.id, emails })
  const lead = await make.lead({ title: `Lead ${word}`, user_id: owner, person_id: person.id })
  const quote = await make.quote({ subject: `Quo ${word}`, person_id: person.id, lead_id: lead.id })
  const links = [
    { lead_id: lead.id },
    { person_id: person.id },
    { organization_id: organization.id },
    { quote_id: quote.id },
  ]
  const activity = await made('/activities', { type: 'note', title: `Act ${word}`, comment: 'c', ...links[next++ % 4] })
  const about = next % 2 ? { person_id: person.id } : { lead_id: lead.id }
  const email = await made('/emails', {
    subject: `Ema ${word}`,
    html: 'x',
    to: ['a@example.com'],
    is_draft: true,
    ...about,
  })
  const ids = {
    persons: person.id,
    organizations: organization.id,
    quotes: quote.id,
    activities: activity.id,
    emails: email.id,
  }
  return { word, lead: lead.id, ids, address }
}

async function made(path: string, body: object): Promise<any> {
  const { status, body: answer, text } = await server.admin.post(path, body)
  expect(status, text).toBe(201)
  return answer.data
}

const idsOf = ({ status, body, text }: any): number[] => {
  expect(status, text).toBe(200)
  return body.data.map(({ id }: { id: number }) => id)
}

/** Returns where the caller meets the record of a type; a channel without it is missing. */
async function channels(caller: Caller, { word, ids, lead, address }: Deal, entity: Entity): Promise<string[]> {
  const [path, id] = [paths[entity], ids[entity]]
  const found: string[] = []
  const has = (name: string, isThere: boolean): void => void (isThere && found.push(name))
  has('get', (await caller.get(`${path}/${id}`)).status === 200)
  has('list', idsOf(await caller.get(`${path}?per_page=100`)).includes(id))
  has('id', idsOf(await caller.get(`${path}?id=${id}`)).includes(id))
  const words = await caller.get(`${path}?q=${word}`)
  has('q', idsOf(words).includes(id))
  expect(words.body.meta.total).toBe(words.body.data.length)
  has('cursor', idsOf(await caller.get(`${path}?per_page=100&cursor=`)).includes(id))
  const searched = await caller.get(`/search?q=${word}&types=${entity}`)
  has('search', idsOf(searched).includes(id))
  has('history', (await caller.get(`${path}/${id}/history`)).status === 200)
  const feed = await caller.get(`/events?entity_type=${entity}&entity_id=${id}`)
  has('events', feed.body.data.length > 0)
  if ((exported as readonly string[]).includes(entity))
    has('export', (await caller.get(`${path}/export?format=csv&q=${word}`)).text.includes(word))
  if (entity === 'persons') {
    has('address', idsOf(await caller.get(`/leads?q=${address}`)).includes(lead))
    has('activities', (await caller.get(`${path}/${id}/activities`)).status === 200)
  }
  const refers = {
    persons: () =>
      caller.post('/leads', { title: 'New', lead_value: 1, person_id: id }, { headers: { 'accord-dry-run': 'true' } }),
    organizations: () =>
      caller.post(paths.persons, { name: 'New', organization_id: id }, { headers: { 'accord-dry-run': 'true' } }),
    quotes: () =>
      caller.post(
        '/activities',
        { type: 'note', comment: 'x', quote_id: id },
        { headers: { 'accord-dry-run': 'true' } },
      ),
    activities: () =>
      caller.put(`/activities/${id}`, { title: `Act ${word} again` }, { headers: { 'accord-dry-run': 'true' } }),
    emails: () => caller.put(`/emails/${id}`, { is_read: true }, { headers: { 'accord-dry-run': 'true' } }),
  }
  has('write', (await refers[entity]()).status < 300)
  return found
}

const every = (entity: Entity): string[] => [
  ...['get', 'list', 'id', 'q', 'cursor', 'search', 'history', 'events'],
  ...((exported as readonly string[]).includes(entity) ? ['export'] : []),
  ...(entity === 'persons' ? ['address', 'activities'] : []),
  'write',
]

describe.each(entities)('the %s of a lead', (entity) => {
  // Four deals link the activity and the e-mail in each way.
  it.each([1, 2, 3, 4])('are there for the owner of the lead alone, on every channel (%i)', async () => {
    const one = await deal(former.id)
    expect(await channels(former, one, entity)).toEqual(every(entity))
    expect(await channels(rep, one, entity)).toEqual([])
    expect((await server.admin.put(`/leads/${one.lead}`, { user_id: rep.id })).status).toBe(200)
    expect(await channels(rep, one, entity)).toEqual(every(entity))
    expect(await channels(former, one, entity)).toEqual([])
    expect(await channels(stranger, one, entity)).toEqual([])
  })
})

describe('a lead', () => {
  it('shows its person by include, with quotes and organization, and counts them', async () => {
    const { lead, ids } = await deal(rep.id)
    const { body } = await rep.get(`/leads/${lead}?include=person,organization,quotes`)
    expect(body.data.person).toMatchObject({ id: ids.persons, emails: [{}, {}] })
    expect(body.data.organization).toHaveProperty('address')
    expect(body.data.quotes[0]).toHaveProperty('grand_total')
    expect(body.data.quotes_count).toBe(1)
    const person = (await rep.get(`/contacts/persons/${ids.persons}`)).body.data
    expect([person.leads_count, person.quotes_count]).toEqual([1, 1])
    const organization = (await rep.get(`/contacts/organizations/${ids.organizations}`)).body.data
    expect([organization.leads_count, organization.persons_count]).toEqual([1, 1])
  })

  it('shows no other person of the organization, and no other lead or quote of the person', async () => {
    const { ids } = await deal(rep.id)
    const make = given(server.admin)
    const other = await make.person({ organization_id: ids.organizations })
    const lead = await make.lead({ person_id: ids.persons })
    const quote = await make.quote({ person_id: ids.persons })
    for (const path of [`/contacts/persons/${other.id}`, `/leads/${lead.id}`, `/quotes/${quote.id}`])
      expect((await rep.get(path)).status).toBe(404)
    const listed = await rep.get(`/contacts/persons?organization_id=${ids.organizations}`)
    expect(idsOf(listed)).toEqual([ids.persons])
    const person = (await rep.get(`/contacts/persons/${ids.persons}`)).body.data
    expect([person.leads_count, person.quotes_count]).toEqual([1, 1])
  })

  it('shows nothing once it is deleted, and everything again once it is restored', async () => {
    const { lead, ids } = await deal(rep.id)
    expect((await rep.delete(`/leads/${lead}`)).status).toBe(200)
    expect((await rep.get(`/contacts/persons/${ids.persons}`)).status).toBe(404)
    expect((await rep.get(`/quotes/${ids.quotes}`)).status).toBe(404)
    expect((await rep.post(`/leads/${lead}/restore`)).status).toBe(200)
    expect((await rep.get(`/contacts/persons/${ids.persons}`)).status).toBe(200)
    expect((await rep.get(`/quotes/${ids.quotes}`)).status).toBe(200)
  })

  it('shows the new person instead of the old one, and the new organization of a person who moved', async () => {
    const { lead, ids } = await deal(rep.id)
    const make = given(server.admin)
    const organization = await make.organization()
    await server.admin.put(`/contacts/persons/${ids.persons}`, { organization_id: organization.id })
    expect((await rep.get(`/contacts/organizations/${ids.organizations}`)).status).toBe(404)
    expect((await rep.get(`/contacts/organizations/${organization.id}`)).status).toBe(200)
    const person = await make.person()
    await server.admin.put(`/leads/${lead}`, { person_id: person.id })
    expect((await rep.get(`/contacts/persons/${ids.persons}`)).status).toBe(404)
    expect((await rep.get(`/contacts/persons/${person.id}`)).status).toBe(200)
  })

  it('shows a quote as long as one of its leads is in sight', async () => {
    const [one, other] = [await deal(rep.id), await deal(former.id)]
    expect((await server.admin.post(`/leads/${other.lead}/quotes`, { quote_id: one.ids.quotes })).status).toBe(200)
    for (const caller of [rep, former]) expect((await caller.get(`/quotes/${one.ids.quotes}`)).status).toBe(200)
    expect((await rep.delete(`/leads/${one.lead}/quotes/${one.ids.quotes}`)).status).toBe(200)
    expect((await rep.get(`/quotes/${one.ids.quotes}`)).status).toBe(404)
    expect((await former.get(`/quotes/${one.ids.quotes}`)).status).toBe(200)
  })

  it('shows the deletion of its quote and organization to those who saw them, who may restore them', async () => {
    const { ids } = await deal(rep.id)
    for (const entity of ['quotes', 'organizations'] as const) {
      expect((await rep.delete(`${paths[entity]}/${ids[entity]}`)).status).toBe(200)
      const feed = async (caller: Caller) =>
        (await caller.get(`/events?entity_type=${entity}&entity_id=${ids[entity]}`)).body.data.at(-1)?.name
      expect(await feed(rep)).toMatch(/delete/)
      expect(await feed(stranger)).toBeUndefined()
      expect((await stranger.post(`${paths[entity]}/${ids[entity]}/restore`)).status).toBe(404)
      expect((await rep.post(`${paths[entity]}/${ids[entity]}/restore`)).status).toBe(200)
      expect((await rep.get(`${paths[entity]}/${ids[entity]}`)).status).toBe(200)
    }
  })
})
