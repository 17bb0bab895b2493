// A closed month is closed: the won and lost figures of October stay what they were on 31 October,
// and what changes later counts in the month of the change.
import { beforeEach, describe, expect, it } from 'vitest'
import type { Caller } from '../support/app.ts'
import { deal } from '../support/deals.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer({ config: { timezone: 'Europe/Berlin' } })
const stage = { new: 1, followUp: 2, won: 5, lost: 6 }
const october = { from: '2026-10-01', to: '2026-10-31' }

type Someone = Caller & { id: number }
let ann: Someone
let bob: Someone

beforeEach(async () => {
  server.clock.set('2026-10-05T08:00:00.000Z')
  ann = await addUser(server, 'Ann', { view: 'individual', group: 'North' })
  bob = await addUser(server, 'Bob', { view: 'individual', group: 'South' })
})

async function ask(body: object, caller: Caller = server.admin): Promise<any> {
  const { status, body: reply, text } = await caller.post('/reports/query', body)
  expect(status, text).toBe(200)
  return reply.data
}

const total = async (measure: string, period: object, caller?: Caller): Promise<number> =>
  (await ask({ measure, ...period }, caller)).total.value

const close = async (lead: any, stageId: number, more: object = {}) => {
  const { status, text } = await server.admin.put(`/leads/${lead.id}/stage`, {
    lead_pipeline_stage_id: stageId,
    ...more,
  })
  expect(status, text).toBe(200)
}

const change = async (lead: any, body: object, caller: Caller = server.admin) => {
  const { status, text } = await caller.put(`/leads/${lead.id}`, body)
  expect(status, text).toBe(200)
}

const measures = ['won_count', 'won_value', 'lost_count', 'lost_value', 'conversion', 'days_to_win']
const groups = ['user', 'group', 'source', 'type', 'pipeline', 'day', 'week', 'month']
const nine = ['revenue-stats', 'total-leads', 'revenue-by-sources', 'revenue-by-types', 'top-selling-products']

/** All figures of won and lost leads of October. */
async function figures(): Promise<unknown> {
  const all: unknown[] = []
  for (const measure of measures) {
    for (const group_by of groups) all.push(await ask({ measure, group_by, ...october, compare: true }))
  }
  all.push(await ask({ measure: 'lost_count', group_by: 'lost_reason', ...october }))
  for (const report of nine) {
    const { body } = await server.admin.get(`/reports/${report}?start=2026-10-01&end=2026-10-31`)
    // New leads are not booked: a deletion takes them from the month of their creation.
    const { all: _, ...booked } = body.data.statistics
    all.push(booked)
  }
  return all
}

/** Wins 1000 and 70.5 of Ann and 300 of Bob, and loses 40 of Ann, in October. */
async function play() {
  const { body: product } = await server.admin.post('/products', { sku: 'P', name: 'Pump', price: 7 })
  const products = [{ product_id: product.data.id, quantity: 3, price: 7 }]
  const add = (value: number, owner: Someone, more = {}) =>
    deal(server, { lead_value: value, user_id: owner.id, ...more })
  const [big, small, other, lost] = [
    await add(1000, ann, { products }),
    await add(70.5, ann, { lead_source_id: 2 }),
    await add(300, bob),
    await add(40, ann),
  ]
  server.clock.set('2026-10-15T08:00:00.000Z')
  await close(big, stage.won)
  await close(other, stage.won)
  server.clock.set('2026-10-31T22:59:00.000Z')
  await close(small, stage.won)
  await close(lost, stage.lost, { lost_reason: 'Price' })
  return { big, small, other, lost }
}

describe('the figures of October', () => {
  it('are those on 31 October after a deletion, a new owner, an edit, a reorganisation and a reopening', async () => {
    const { big, small, other, lost } = await play()
    const before = await figures()
    expect(await total('won_value', october)).toBe(1370.5)
    // In Berlin, this is 1 November.
    server.clock.set('2026-10-31T23:00:00.000Z')
    expect(await figures()).toEqual(before)
    await server.admin.delete(`/leads/${big.id}`)
    await change(small, { user_id: bob.id })
    await change(small, { lead_value: 100.5, lead_source_id: 3 })
    await change(lost, { lost_reason: 'Time' })
    await server.store.db.deleteFrom('user_groups').where('user_id', '=', ann.id).execute()
    expect(await figures()).toEqual(before)
    const november = { from: '2026-11-01', to: '2026-11-30' }
    expect(await total('won_value', november)).toBe(-1000 + 30)
    expect(await total('won_count', november)).toBe(-1)
    server.clock.set('2027-11-20T08:00:00.000Z')
    await close(other, stage.followUp)
    expect(await total('won_value', { period: 'this_month' })).toBe(-300)
    expect(await total('won_value', october)).toBe(1370.5)
    // The bookings add up to the leads that are won now.
    const { rows } = await ask({ measure: 'won_value', group_by: 'month', from: '2026-01-01', to: '2027-12-31' })
    expect(rows.reduce((sum: number, { value }: any) => sum + value, 0)).toBe(100.5)
  })

  it('follow the lead while the month is open', async () => {
    const { big, small } = await play()
    await change(small, { lead_value: 80 })
    await server.admin.delete(`/leads/${big.id}`)
    expect([await total('won_value', october), await total('won_count', october)]).toEqual([380, 2])
    const { status } = await server.admin.post(`/leads/${big.id}/restore`)
    expect(status).toBe(200)
    expect([await total('won_value', october), await total('won_count', october)]).toEqual([1380, 3])
    await close(small, stage.new)
    expect(await total('won_value', october)).toBe(1300)
    const days = await ask({ measure: 'won_value', group_by: 'day', ...october })
    expect(days.rows.filter(({ value }: any) => value !== 0)).toMatchObject([{ key: '2026-10-15', value: 1300 }])
  })

  it('stay open for the days that the configuration grants', async () => {
    const { small } = await play()
    const code = 'reports.months.close_after_days'
    expect((await server.admin.put('/settings/configuration', { values: { [code]: 5 } })).status).toBe(200)
    server.clock.set('2026-11-05T22:59:59.000Z')
    await change(small, { lead_value: 71 })
    expect(await total('won_value', october)).toBe(1371)
    server.clock.set('2026-11-05T23:00:00.000Z')
    await change(small, { lead_value: 72 })
    expect([await total('won_value', october), await total('won_value', { period: 'this_month' })]).toEqual([1371, 1])
    expect((await server.admin.put('/settings/configuration', { values: { [code]: -1 } })).status).toBe(422)
  })

  it('count the lines of the products, and a change of them in the month of the change', async () => {
    const { big } = await play()
    server.clock.set('2026-11-02T08:00:00.000Z')
    const [line] = (await server.admin.get(`/leads/${big.id}/products`)).body.data
    const path = `/leads/${big.id}/products/${line.product_id}`
    expect((await server.admin.put(path, { quantity: 5 })).status).toBe(200)
    const top = async (month: string) =>
      (await server.admin.get(`/reports/top-selling-products?start=2026-${month}-01&end=2026-${month}-30`)).body.data
        .statistics
    expect(await top('10')).toMatchObject([{ quantity: 3, revenue: 21 }])
    expect(await top('11')).toMatchObject([{ quantity: 2, revenue: 14 }])
    expect((await server.admin.delete(path)).status).toBe(200)
    expect(await top('11')).toMatchObject([{ quantity: -3, revenue: -21 }])
    expect(await total('won_count', { period: 'this_month' })).toBe(0)
  })
})

describe('a closing time in a closed month', () => {
  const past = '2026-09-10T08:00:00.000Z'
  const september = { from: '2026-09-01', to: '2026-09-30' }

  it('needs the permission leads.amend, and leaves an event of its own', async () => {
    const rep = await addUser(server, 'Rep', {
      permissions: ['leads', 'leads.view', 'leads.create', 'leads.edit', 'dashboard'],
    })
    const lead = await deal(server, { lead_value: 9 })
    const move = { lead_pipeline_stage_id: stage.won, closed_at: past }
    const refused = await rep.put(`/leads/${lead.id}/stage`, move)
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      { closed_at: ['The month 2026-09 is closed. Only a role with leads.amend may change it.'] },
    ])
    expect((await rep.post('/leads', { title: 'Old', lead_value: 1, ...move })).status).toBe(422)
    expect(await total('won_value', september)).toBe(0)
    await close(lead, stage.won, { closed_at: past })
    expect([await total('won_value', september), await total('won_value', october)]).toEqual([9, 0])
    const back = await rep.put(`/leads/${lead.id}`, { closed_at: '2026-10-02T08:00:00.000Z' })
    expect([back.status, Object.keys(back.body.errors)]).toEqual([422, ['closed_at']])
    // The stored time counts as not sent.
    expect((await rep.put(`/leads/${lead.id}`, { closed_at: past, title: 'New' })).status).toBe(200)
    await change(lead, { closed_at: '2026-10-02T08:00:00.000Z' })
    expect([await total('won_value', september), await total('won_value', october)]).toEqual([0, 9])
    const { body } = await server.admin.get(`/leads/${lead.id}/history`)
    const events = body.data.map(({ name }: any) => name)
    expect(events.filter((event: string) => event === 'lead.amended')).toHaveLength(2)
  })
})

describe('who sees the figures', () => {
  it('is who sees the owner at the win', async () => {
    const { small } = await play()
    await change(small, { user_id: bob.id })
    const rows = async (caller: Caller, group_by: string) =>
      (await ask({ measure: 'won_value', group_by, ...october }, caller)).rows.map(({ label, value }: any) => [
        label,
        value,
      ])
    expect(await rows(ann, 'user')).toEqual([['Ann', 1070.5]])
    expect(await rows(bob, 'group')).toEqual([['South', 300]])
    expect(await rows(server.admin, 'group')).toEqual([
      ['North', 1070.5],
      ['South', 300],
    ])
    expect(await total('won_value', { ...october, filter: { user_id: [ann.id] } }, bob)).toBe(0)
    const { body } = await bob.get('/reports/revenue-stats?start=2026-10-01&end=2026-10-31')
    expect(body.data.statistics.won_revenue.current).toBe(300)
  })

  it('keeps the name of a deleted user', async () => {
    await play()
    server.clock.set('2026-11-02T08:00:00.000Z')
    await server.store.db.deleteFrom('users').where('id', '=', bob.id).execute()
    const { rows } = await ask({ measure: 'won_value', group_by: 'user', ...october })
    expect(rows.map(({ label, value }: any) => [label, value])).toEqual([
      ['Ann', 1070.5],
      ['Bob', 300],
    ])
  })
})
