// The link between quotes and leads: both directions create the same link with one pair of events,
// and change both records.
import { describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

let lead: Schema<'Lead'>
let quote: Schema<'Quote'>

const linked = ['leads.quote.create.before', 'leads.quote.create.after']
const unlinked = ['leads.quote.delete.before', 'leads.quote.delete.after']

const server = useServer({}, async () => {
  lead = await make.lead({ title: 'Seats' })
  quote = await make.quote({ subject: '40 seats' })
})
const { admin } = server
const make = given(admin)

const versions = async (): Promise<number[]> => [
  (await admin.get(`/leads/${lead.id}`)).body.data.version,
  (await admin.get(`/quotes/${quote.id}`)).body.data.version,
]

describe.each([
  ['attachQuoteLead', () => admin.post(`/quotes/${quote.id}/leads`, { lead_id: lead.id })],
  ['attachLeadQuote', () => admin.post(`/leads/${lead.id}/quotes`, { quote_id: quote.id })],
])('%s', (_id, attach) => {
  it('links the two once, as a change of both, and answers the record in the path', async () => {
    const { status, body } = await attach()
    expect([status, body.message]).toEqual([200, 'Quote linked to the lead.'])
    expect(server.seen.at(-1)).toMatchObject({
      name: 'leads.quote.create.after',
      entityType: 'leads',
      entityId: lead.id,
      related: { type: 'quotes', id: quote.id },
      entity: { lead_id: lead.id, quote_id: quote.id, quote: { id: quote.id, subject: '40 seats' } },
    })
    expect(server.events()).toEqual(linked)
    expect(await versions()).toEqual([2, 2])
    expect((await attach()).status).toBe(200)
    expect(server.events()).toEqual([])
    expect(await versions()).toEqual([2, 2])
    expect((await admin.get(`/quotes/${quote.id}`)).body.data.leads).toEqual([{ id: lead.id, title: 'Seats' }])
    expect((await admin.get(`/leads/${lead.id}`)).body.data.quotes_count).toBe(1)
  })
})

describe.each([
  ['detachQuoteLead', () => `/quotes/${quote.id}/leads/${lead.id}`],
  ['detachLeadQuote', () => `/leads/${lead.id}/quotes/${quote.id}`],
])('%s', (_id, path) => {
  it('takes the link away and nothing else, and answers 404 when there is none', async () => {
    await admin.post(`/leads/${lead.id}/quotes`, { quote_id: quote.id })
    server.events()
    expect((await admin.delete(path())).body).toEqual({ message: 'Quote unlinked from the lead.' })
    expect(server.events()).toEqual(unlinked)
    expect(await versions()).toEqual([3, 3])
    expect((await admin.delete(path())).status).toBe(404)
    expect(server.events()).toEqual([])
    expect((await admin.get(`/leads/${lead.id}/quotes`)).body.data).toEqual([])
  })
})

describe('lead_id', () => {
  it('links a new quote after its own pair of events, with one version', async () => {
    const created = await make.quote({ lead_id: lead.id, person_id: quote.person_id, tag_ids: [(await make.tag()).id] })
    expect(created).toMatchObject({ leads: [{ id: lead.id }], version: 1 })
    expect(server.events().filter((name) => !name.startsWith('settings'))).toEqual(
      ['before', 'after'].flatMap((phase) =>
        ['quote.create', 'quotes.tag.create', 'leads.quote.create'].map((base) => `${base}.${phase}`),
      ),
    )
    expect((await admin.get(`/leads/${lead.id}`)).body.data).toMatchObject({ version: 2, quotes_count: 1 })
  })

  it('adds a link and never takes one away', async () => {
    const other = await make.lead()
    await admin.put(`/quotes/${quote.id}`, { lead_id: lead.id })
    server.events()
    const { body } = await admin.put(`/quotes/${quote.id}`, { subject: '41 seats', lead_id: other.id })
    expect(body.data).toMatchObject({ leads: [{ id: lead.id }, { id: other.id }], version: 3 })
    expect(server.events()).toEqual([
      'quote.update.before',
      'leads.quote.create.before',
      'quote.update.after',
      'leads.quote.create.after',
    ])
    const again = await admin.put(`/quotes/${quote.id}`, { lead_id: other.id })
    expect([again.status, again.body.data.version]).toEqual([200, 3])
    expect(server.events()).toEqual(['quote.update.before', 'quote.update.after'])
    expect((await admin.put(`/quotes/${quote.id}`, { lead_id: null })).body.errors).toHaveProperty('lead_id')
  })
})

describe('who may link', () => {
  it('no caller reaches an invisible record: 404 in the path, a finding in the body', async () => {
    const ann = await addUser(server, 'Ann', { view: 'individual' })
    const own = await given(ann).lead()
    expect((await ann.post(`/quotes/${quote.id}/leads`, { lead_id: own.id })).status).toBe(404)
    const refused = await ann.post(`/leads/${own.id}/quotes`, { quote_id: quote.id })
    expect([refused.status, refused.body.errors]).toEqual([422, { quote_id: [`No quote has id ${quote.id}.`] }])
    expect((await ann.get(`/leads/${lead.id}/quotes`)).status).toBe(404)
    expect((await ann.get(`/quotes/${quote.id}/leads`)).status).toBe(404)
  })

  it('no caller removes a link to an invisible record: 404, as without a link', async () => {
    const ann = await addUser(server, 'Ann', { view: 'individual' })
    const offer = await given(ann).quote()
    const path = `/quotes/${offer.id}/leads/${lead.id}`
    expect((await ann.delete(path)).status).toBe(404)
    await admin.post(`/quotes/${offer.id}/leads`, { lead_id: lead.id })
    server.events()
    expect((await ann.delete(path)).status).toBe(404)
    expect(server.events()).toEqual([])
    expect((await admin.delete(path)).status).toBe(200)
  })

  it('a link shows a quote of another owner, in counts and lists, too', async () => {
    const ann = await addUser(server, 'Ann', { view: 'individual' })
    const own = await given(ann).lead()
    await admin.post(`/leads/${own.id}/quotes`, { quote_id: quote.id })
    expect((await ann.get(`/leads/${own.id}`)).body.data.quotes_count).toBe(1)
    expect((await ann.get(`/leads/${own.id}/quotes`)).body.meta.total).toBe(1)
    server.events()
    expect((await ann.post(`/leads/${own.id}/quotes`, { quote_id: quote.id })).status).toBe(200)
    expect(server.events()).toEqual([])
    const { body } = await ann.get(`/leads/${own.id}?include=quotes`)
    expect(body.data.quotes).toMatchObject([{ id: quote.id, subject: '40 seats', grand_total: expect.anything() }])
  })

  it('each side needs its own permission and ability', async () => {
    const ann = await addUser(server, 'Ann', { permissions: ['quotes', 'quotes.edit', 'leads.view'] })
    expect((await ann.post(`/quotes/${quote.id}/leads`, { lead_id: lead.id })).status).toBe(200)
    expect((await ann.post(`/leads/${lead.id}/quotes`, { quote_id: quote.id })).body.required).toBe('leads.edit')
    expect((await ann.get(`/quotes/${quote.id}/leads`)).body.required).toBe('leads')
    const token = await server.as(1, ['leads:*'])
    expect((await token.get(`/leads/${lead.id}/quotes`)).body.required).toBe('quotes:read')
  })
})

describe('include=quotes', () => {
  it('adds the quotes of a lead in full, once asked for, and references where they may not be read', async () => {
    await admin.post(`/leads/${lead.id}/quotes`, { quote_id: quote.id })
    expect((await admin.get(`/leads/${lead.id}`)).body.data).not.toHaveProperty('quotes')
    const { data } = (await admin.get('/leads?include=quotes,user')).body
    expect(data[0].quotes).toMatchObject([{ id: quote.id, subject: '40 seats', leads: [{ id: lead.id }], items: [] }])
    const token = await server.as(1, ['leads:*'])
    expect((await token.get(`/leads/${lead.id}?include=quotes`)).body.data.quotes).toEqual([
      { id: quote.id, subject: '40 seats' },
    ])
    const { status } = await admin.put(`/leads/${lead.id}`, data[0])
    expect(status).toBe(200)
  })

  it('and include=leads, person and user of a quote swaps the references', async () => {
    await admin.post(`/leads/${lead.id}/quotes`, { quote_id: quote.id })
    const { data } = (await admin.get(`/quotes/${quote.id}?include=leads,person,user`)).body
    expect(data).toMatchObject({
      leads: [{ id: lead.id, lead_value: lead.lead_value }],
      person: { emails: expect.any(Array) },
      user: { view_permission: 'global' },
    })
  })
})

describe('listLeadQuotes and listQuoteLeads', () => {
  it('list the linked records with their own filters and sort keys', async () => {
    const other = await make.quote({ subject: 'Service', adjustment_amount: 5 })
    for (const { id } of [quote, other]) await admin.post(`/leads/${lead.id}/quotes`, { quote_id: id })
    await make.quote()
    const quotes = await admin.get(`/leads/${lead.id}/quotes?sort=-grand_total&grand_total[gte]=0`)
    expect(quotes.body.data.map(({ subject }: Schema<'Quote'>) => subject)).toEqual(['Service', '40 seats'])
    expect((await admin.get(`/quotes?lead_id=${lead.id}`)).body.meta.total).toBe(2)
    expect((await admin.get(`/leads/${lead.id}/quotes?subject=service`)).body.meta.total).toBe(1)
    await make.lead()
    const leads = await admin.get(`/quotes/${quote.id}/leads?title=seats`)
    expect(leads.body.data).toMatchObject([{ id: lead.id }])
  })
})

describe('deleteLead', () => {
  it('leaves its quotes, without the link', async () => {
    await admin.post(`/leads/${lead.id}/quotes`, { quote_id: quote.id })
    server.events()
    await admin.delete(`/leads/${lead.id}`)
    expect(server.events()).toEqual(['lead.delete.before', 'lead.delete.after'])
    expect((await admin.get(`/quotes/${quote.id}`)).body.data.leads).toEqual([])
  })
})
