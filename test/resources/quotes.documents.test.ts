// Quotes as documents: what may follow each status, what a sent quote keeps, revisions, expiry, the
// tax by rate, and the PDF, which stays the same.
import { describe, expect, it } from 'vitest'
import type { Body, Schema } from '../../src/contract/types.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { cleanFiles } from '../../src/resources/files/clean-up.ts'
import type { Reply } from '../support/app.ts'
import { file, form } from '../support/form.ts'
import { given } from '../support/given.ts'
import { textOf } from '../support/pdf.ts'
import { pixel } from '../support/pictures.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'
import { alone, workflowsOn } from '../support/workflows.ts'

type Quote = Schema<'Quote'>

let person: Schema<'Person'>
let { workflow, states } = {} as ReturnType<typeof workflowsOn>
const server = useServer({ config: { timezone: 'Europe/Berlin' } }, async () => {
  await alone(server)
  ;({ workflow, states } = workflowsOn(server))
  const organization = await make.organization({ name: 'Analytical Ltd' })
  person = await make.person({ name: 'Ada Lovelace', organization_id: organization.id })
})
const { admin } = server
const make = given(admin)

const items = [{ name: 'Consulting', price: 100, quantity: 2, tax_percent: 20 }]
const quote = (changes: Partial<Body<'createQuote'>> = {}): Promise<Quote> =>
  make.quote({ person_id: person.id, items, expiry_date: '2026-03-31', ...changes })
const put = (id: number, body: object): Promise<Reply> => admin.put(`/quotes/${id}`, body)
const get = async (id: number): Promise<Quote> => (await admin.get(`/quotes/${id}`)).body.data
const revise = (id: number): Promise<Reply> => admin.post(`/quotes/${id}/revise`)
const print = async (id: number): Promise<Buffer> => {
  const headers = { authorization: `Bearer ${admin.token}` }
  const reply = await server.inject({ method: 'GET', url: `/api/admin/quotes/${id}/print`, headers })
  expect(reply.statusCode, reply.body).toBe(200)
  return reply.rawPayload
}

describe('the status of a quote', () => {
  it('is draft, then sent with a number, then accepted, and each change has an event', async () => {
    const { id, ...draft } = await quote()
    expect(draft).toMatchObject({ status: 'draft', number: null, sent_at: null, customer: null, revision: 1 })
    server.events()
    expect((await put(id, { status: 'sent' })).body.data).toMatchObject({
      status: 'sent',
      number: 'Q-2026-0001',
      sent_at: '2026-03-01T09:30:00.000Z',
      customer: { person: 'Ada Lovelace', organization: 'Analytical Ltd' },
      version: 2,
    })
    expect(server.events()).toEqual(['quote.update.before', 'quote.update.after', 'quote.sent'])
    await put(id, { status: 'accepted' })
    expect(server.events()).toEqual(['quote.update.before', 'quote.update.after', 'quote.accepted'])
    const { body } = await admin.get(`/quotes/${id}/history`)
    expect(JSON.stringify(body.data)).toContain('Q-2026-0001')
  })

  it('follows its rules', async () => {
    const allowed: Record<string, string[]> = {
      draft: ['sent'],
      sent: ['accepted', 'declined'],
      accepted: [],
      declined: ['accepted'],
    }
    for (const [from, targets] of Object.entries(allowed))
      for (const to of ['draft', 'sent', 'accepted', 'declined', 'expired']) {
        const { id } = await quote()
        if (from !== 'draft') await put(id, { status: 'sent' })
        if (from !== 'draft' && from !== 'sent') await put(id, { status: from })
        const { status, body } = await put(id, { status: to })
        expect([from, to, status]).toEqual([from, to, to === from || targets.includes(to) ? 200 : 422])
        if (status === 422) expect(Object.keys(body.errors)).toEqual(['status'])
      }
  })

  it('needs an item and a day of validity to be sent, and says so with all other errors', async () => {
    const { id } = await quote({ items: [] })
    expect((await put(id, { status: 'sent' })).body.errors).toEqual({
      items: ['A quote needs an item before it is sent.'],
    })
    server.clock.set('2026-05-01T12:00:00.000Z')
    const { body } = await put(id, { status: 'sent', subject: '' })
    expect(Object.keys(body.errors).sort()).toEqual(['expiry_date', 'items', 'subject'])
    const late = await put(id, { status: 'sent', items, expiry_date: '2026-05-01' })
    expect(late.body.data).toMatchObject({ status: 'sent', expiry_date: '2026-05-01' })
  })

  it('filters, sorts, searches and exports', async () => {
    const [draft, sent, won] = [await quote(), await quote({ status: 'sent' }), await quote({ status: 'sent' })]
    await put(won.id, { status: 'accepted' })
    const ids = async (query: string) => (await admin.get(`/quotes?${query}`)).body.data.map(({ id }: Quote) => id)
    expect(await ids('status=sent,accepted&sort=-number')).toEqual([won.id, sent.id])
    expect(await ids('status[not]=draft&sort=status')).toEqual([won.id, sent.id])
    expect(await ids('number=q-2026-0002')).toEqual([won.id])
    expect(await ids('sent_at[gte]=2026-03-01&sort=number')).toEqual([sent.id, won.id])
    expect(await ids('sort=number')).toEqual([sent.id, won.id, draft.id])
    expect(await ids('q=2026-0002')).toEqual([won.id])
    const found = await admin.get('/search?q=Q-2026-0001')
    expect(JSON.stringify(found.body.data)).toContain(`"id":${sent.id}`)
    const { text } = await admin.get('/quotes/export?format=csv&status=accepted')
    const [head = '', row = ''] = text.split('\r\n')
    expect(head).toContain('id,number,status,revision,revises_id,revised_by_id,sent_at,customer.person')
    expect(row).toContain('Q-2026-0002,accepted,1,,,2026-03-01T09:30:00.000Z,Ada Lovelace,Analytical Ltd')
  })

  it('starts workflows and meets their conditions', async () => {
    const actions = [{ id: 'add_tag', value: 'Won' }]
    const conditions = [
      { attribute: 'status', operator: '==', value: 'accepted' },
      { attribute: 'number', operator: '{}', value: '2026' },
    ]
    const id = await workflow({ entity_type: 'quotes', event: 'quote.accepted', actions, conditions })
    const changed = await workflow({
      entity_type: 'quotes',
      event: 'quote.update.after',
      actions,
      conditions: [{ attribute: 'status', operator: 'changed_to', value: 'declined' }],
    })
    const [won, lost] = [await quote({ status: 'sent' }), await quote({ status: 'sent' })]
    await put(won.id, { status: 'accepted' })
    await put(lost.id, { status: 'declined' })
    await server.work()
    expect([await states(id), (await states(changed)).at(-1)]).toEqual([['succeeded'], 'succeeded'])
    expect((await get(won.id)).tags).toMatchObject([{ name: 'Won' }])
    expect((await get(lost.id)).tags).toMatchObject([{ name: 'Won' }])
  })

  it('becomes expired in the night after the last day, also after nights without a server', async () => {
    const open = await quote({ status: 'sent', expiry_date: '2026-03-02' })
    const [kept, draft] = [await quote({ status: 'sent' }), await quote({ expiry_date: '2026-03-02' })]
    const answered = await quote({ status: 'sent', expiry_date: '2026-03-02' })
    await put(answered.id, { status: 'accepted' })
    const statuses = async () => {
      await server.tick()
      await server.work()
      return Promise.all([open, kept, draft, answered].map(async ({ id }) => (await get(id)).status))
    }
    await statuses()
    expect((await put(open.id, { status: 'expired' })).status).toBe(422)
    server.clock.set('2026-03-02T22:59:00.000Z')
    expect(await statuses()).toEqual(['sent', 'sent', 'draft', 'accepted'])
    server.events()
    server.clock.set('2026-03-05T12:00:00.000Z')
    expect(await statuses()).toEqual(['expired', 'sent', 'draft', 'accepted'])
    expect(server.events()).toEqual(['quote.update.before', 'quote.update.after', 'quote.expired'])
    expect((await put(open.id, { status: 'accepted' })).body.data).toMatchObject({
      status: 'accepted',
      is_expired: true,
    })
  })
})

describe('a sent quote', () => {
  it('refuses every change of what the customer got, and names all refused fields', async () => {
    const { id, items: lines } = await quote({ status: 'sent' })
    const other = await make.person()
    const { status, body } = await put(id, {
      subject: 'Other',
      description: 'Other terms',
      person_id: other.id,
      billing_address: { city: 'Paris' },
      shipping_address: { city: 'Paris' },
      expiry_date: '2026-04-30',
      discount_percent: 5,
      adjustment_amount: 1,
      items: [{ id: lines[0]?.id, price: 101 }],
    })
    expect(status).toBe(422)
    expect(new Set(Object.values(body.errors).flat())).toEqual(
      new Set(['A quote that was sent keeps this value; revise the quote.']),
    )
    expect(Object.keys(body.errors).sort()).toEqual([
      'adjustment_amount',
      'billing_address',
      'description',
      'discount_percent',
      'expiry_date',
      'items',
      'person_id',
      'shipping_address',
      'subject',
    ])
    for (const wrong of [
      [],
      [...lines.map(({ id }) => ({ id })), { name: 'More', price: 1 }],
      [{ name: 'Consulting', price: 100 }],
    ])
      expect((await put(id, { items: wrong })).status).toBe(422)
  })

  it('takes the whole record back, and a new owner, tag, lead and custom attribute', async () => {
    const sent = await quote({ status: 'sent' })
    const same = await put(sent.id, sent)
    expect([same.status, same.body.data, same.body.meta]).toEqual([200, sent, undefined])
    const [user, lead, tag] = [await addUser(server, 'Bea'), await make.lead(), await make.tag()]
    const { status, body } = await put(sent.id, { ...sent, user_id: user.id, lead_id: lead.id, tag_ids: [tag.id] })
    expect([status, body.data]).toMatchObject([
      200,
      { user_id: user.id, leads: [{ id: lead.id }], tags: [{ id: tag.id }] },
    ])
  })

  it('keeps the names of its customer, its lines and its figures, whatever changes around it', async () => {
    const product = await make.product({ sku: 'chair', name: 'Chair', price: 10 })
    const lead = await make.lead()
    const { id } = await quote({ items: [...items, { product_id: product.id, quantity: 3 }], lead_id: lead.id })
    const {
      body: { data: sent },
    } = await put(id, { status: 'sent' })
    await admin.put(`/contacts/persons/${person.id}`, { name: 'Ada King', organization_id: null })
    await admin.put(`/products/${product.id}`, { name: 'Stool', price: 99 })
    await admin.delete(`/products/${product.id}`)
    await admin.delete(`/leads/${lead.id}`)
    const now = await get(id)
    expect(now).toMatchObject({ person: { name: 'Ada King' }, customer: sent.customer, taxes: sent.taxes, leads: [] })
    expect(now.grand_total).toBe(sent.grand_total)
    expect(now.items.map(({ name, sku, price }) => [name, sku, price])).toEqual([
      ['Consulting', '', 100],
      ['Chair', 'chair', 10],
    ])
    expect((await put(id, { items: now.items })).status).toBe(200)
  })

  it('takes no number from a client', async () => {
    const body = { subject: '40 seats', person_id: person.id, items, expiry_date: '2026-03-31', number: 'MINE-1' }
    const address = { address: '12 Analytical Way', city: 'London', country: 'GB', postcode: 'W1 2AB' }
    const reply = await admin.post('/quotes', { ...body, billing_address: address, status: 'sent' })
    expect([reply.status, reply.body.errors]).toEqual([
      422,
      { number: ['Read-only: the server gives it when the quote is sent.'] },
    ])
  })
})

describe('reviseQuote', () => {
  it('makes a draft with the content of the quote, and both name each other', async () => {
    const lead = await make.lead()
    const tag = await make.tag()
    const sent = await quote({
      status: 'sent',
      description: 'Terms',
      discount_percent: 10,
      adjustment_amount: -1.5,
      items: [...items, { name: 'Fee', price: 5, discount_amount: 1, tax_amount: 0.4 }],
      lead_id: lead.id,
      tag_ids: [tag.id],
    })
    server.events()
    const { status, body } = await revise(sent.id)
    expect(status).toBe(201)
    expect(server.events().filter((name) => name.startsWith('quote.'))).toEqual([
      'quote.create.before',
      'quote.update.before',
      'quote.create.after',
      'quote.update.after',
    ])
    const { id } = body.data
    expect(body.data).toMatchObject({ status: 'draft', number: null, revision: 2, revises_id: sent.id })
    const same = ['description', 'subtotal', 'grand_total', 'taxes', 'leads', 'tags', 'expiry_date'] as const
    for (const key of same) expect(body.data[key], key).toEqual(sent[key])
    expect(await get(sent.id)).toMatchObject({ status: 'sent', number: sent.number, revised_by_id: id })
    expect((await admin.get('/quotes?revised_by_id[null]=true')).body.data).toMatchObject([{ id }])
    const draft = await put(id, { subject: 'Better', items: [...items, ...items] })
    expect(draft.body.data).toMatchObject({ subject: 'Better', subtotal: 400 })
  })

  it('revises a quote once, and not a draft; a deleted revision makes room for another', async () => {
    const { id } = await quote()
    expect((await revise(id)).body).toMatchObject({ status: 409, code: 'state_conflict' })
    await put(id, { status: 'sent' })
    const results = await Promise.all([revise(id), revise(id), revise(id)])
    expect(results.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    const first = (await get(id)).revised_by_id ?? 0
    expect((await admin.delete(`/quotes/${first}`)).status).toBe(200)
    expect(await get(id)).toMatchObject({ revised_by_id: null })
    const second = (await revise(id)).body.data
    expect((await admin.post(`/quotes/${first}/restore`)).status).toBe(409)
    await admin.delete(`/quotes/${second.id}`)
    await admin.post(`/quotes/${first}/restore`)
    expect(await get(id)).toMatchObject({ revised_by_id: first })
    await admin.delete(`/quotes/${id}`)
    expect(await get(first)).toMatchObject({ revises_id: null, revision: 2 })
  })

  it('leaves the revised quote open until the revision is sent', async () => {
    const [{ id }, accepted] = [await quote({ status: 'sent' }), await quote({ status: 'sent' })]
    const revision = (await revise(id)).body.data
    await put(revision.id, { status: 'sent' })
    expect((await put(id, { status: 'accepted' })).body.errors).toEqual({
      status: [`The quote ${revision.id} revises this one and was sent.`],
    })
    expect((await put(id, { status: 'declined' })).status).toBe(200)
    await put(accepted.id, { status: 'accepted' })
    expect((await revise(accepted.id)).status).toBe(201)
    expect((await get(accepted.id)).status).toBe('accepted')
  })

  it('copies no unique value, and asks an expired quote for a new day when its revision is sent', async () => {
    const attribute = { entity_type: 'quotes', name: 'Reference', code: 'reference', type: 'text', is_unique: true }
    await admin.post('/settings/attributes', attribute)
    const { id } = await quote({ status: 'sent', custom_attributes: { reference: 'PO-1' } })
    server.clock.set('2026-06-01T12:00:00.000Z')
    const { body } = await revise(id)
    expect(body.data).toMatchObject({ expiry_date: '2026-03-31', custom_attributes: { reference: null } })
    expect((await put(body.data.id, { status: 'sent' })).body.errors).toHaveProperty('expiry_date')
    expect((await put(body.data.id, { status: 'sent', expiry_date: '2026-06-30' })).status).toBe(200)
  })
})

describe('the tax of a quote', () => {
  const taxes = async (changes: Partial<Body<'createQuote'>>) => {
    const { taxes, tax_amount, subtotal, discount_amount } = await quote(changes)
    const sum = (key: 'tax_amount' | 'taxable_amount') =>
      Math.round(taxes.reduce((all, each) => all + each[key], 0) * 10_000) / 10_000
    expect([sum('tax_amount'), sum('taxable_amount')]).toEqual([
      tax_amount,
      Math.round((subtotal - discount_amount) * 10_000) / 10_000,
    ])
    return taxes.map(({ tax_percent, taxable_amount, tax_amount }) => [tax_percent, taxable_amount, tax_amount])
  }

  it('is shown by rate, with untaxed items and fixed amounts apart', async () => {
    const lines = [
      { name: 'A', price: 50, tax_percent: 7 },
      { name: 'B', price: 100, tax_percent: 19 },
      { name: 'C', price: 10, tax_percent: 0 },
      { name: 'D', price: 20 },
      { name: 'E', price: 30, tax_amount: 2.5 },
      { name: 'F', price: 100, tax_percent: 19 },
    ]
    expect(await taxes({ items: lines })).toEqual([
      [19, 200, 38],
      [7, 50, 3.5],
      [0, 30, 0],
      [null, 30, 2.5],
    ])
    expect(await taxes({ items: [] })).toEqual([])
    expect(await taxes({ items: lines, discount_percent: 100 })).toEqual([
      [19, 0, 0],
      [7, 0, 0],
      [0, 0, 0],
      [null, 0, 2.5],
    ])
  })

  it('adds up to the total, although each line is rounded', async () => {
    const cents = Array.from({ length: 7 }, (_, index) => ({
      name: `Line ${index}`,
      price: 0.33,
      tax_percent: [19, 7, 5.5][index % 3] ?? 0,
    }))
    await taxes({ items: cents, discount_percent: 33.3333 })
    await taxes({ items: cents.map((line) => ({ ...line, discount_percent: 12.5 })), discount_percent: 1 })
  })

  it('of a quote of an earlier version is computed from its items', async () => {
    const { id, taxes } = await quote()
    await server.store.db.updateTable('quotes').set({ taxes: null }).where('id', '=', id).execute()
    expect((await get(id)).taxes).toEqual(taxes)
    expect((await put(id, { status: 'sent' })).body.data.taxes).toEqual(taxes)
  })
})

describe('printQuote', { timeout: 60_000 }, () => {
  it('sends the same bytes for a sent quote, whatever changes, also after its deletion and restore', async () => {
    const logo = async () => {
      const { body, headers } = await form({ file: file('logo.png', pixel) })
      return (await admin.post('/files', body, { headers })).body.data.id
    }
    const configure = (values: object) => admin.put('/settings/configuration', { values })
    await configure({ 'general.company.name': 'Seller', 'general.company.logo': await logo() })
    const { id } = await quote()
    const draft = await print(id)
    await put(id, { status: 'sent' })
    // The setting and the names change before the first print.
    await configure({ 'general.company.name': 'New seller', 'general.company.logo': null })
    await admin.put(`/contacts/persons/${person.id}`, { name: 'Ada King' })
    const [one, two] = await Promise.all([print(id), print(id)])
    expect(one.equals(two)).toBe(true)
    expect(one.equals(draft)).toBe(false)
    const lines = textOf(one)
      .map(({ text }) => text)
      .join('')
    for (const text of ['Q-2026-0001', 'Ada Lovelace', 'Analytical Ltd', 'Seller']) expect(lines).toContain(text)
    expect(lines).not.toMatch(/New seller|Ada King/)
    expect(one.toString('latin1')).toContain('/Subtype /Image')
    const tag = await make.tag()
    await put(id, { status: 'accepted', tag_ids: [tag.id] })
    await admin.post('/settings/attributes', { entity_type: 'quotes', name: 'Scan', code: 'scan', type: 'file' })
    const scan = await logo()
    expect((await put(id, { custom_attributes: { scan } })).status).toBe(200)
    expect((await put(id, { custom_attributes: { scan: null } })).status).toBe(200)
    await admin.delete(`/quotes/${id}`)
    await cleanFiles(systemContext(server.app.services, 'cli'))
    await admin.post(`/quotes/${id}/restore`)
    expect((await print(id)).equals(one)).toBe(true)
    const revision = (await revise(id)).body.data.id
    await put(revision, { status: 'sent' })
    const replaced = textOf(await print(revision)).map(({ text }) => text)
    expect(replaced.join('')).toContain('Revision 2, replaces Q-2026-0001')
  })
})
