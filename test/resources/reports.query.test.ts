// POST /reports/query: every measure by every group equals a sum of its own over the same leads,
// and what the contract does not define is refused.
import { beforeEach, describe, expect, it } from 'vitest'
import { measures } from '../../src/resources/reports/measures.ts'
import type { Caller } from '../support/app.ts'
import { deal } from '../support/deals.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer({ config: { timezone: 'Europe/Berlin' } })
const stage = { new: 1, followUp: 2, prospect: 3, negotiation: 4, won: 5, lost: 6 }
const october = { from: '2026-10-01', to: '2026-10-31' }

async function ask(body: object, caller: Caller = server.admin): Promise<any> {
  const { status, body: reply, text } = await caller.post('/reports/query', body)
  expect(status, text).toBe(200)
  return reply.data
}

const shortRows = ({ rows }: any) => rows.map(({ key, value }: any) => [key, value])

beforeEach(() => server.clock.set('2026-10-20T08:00:00.000Z'))

describe('won and lost leads', () => {
  interface Deal {
    owner: number
    source: number
    type: number
    value: number
    day: string
    reason: string | null
    isWon: boolean
  }
  let deals: Deal[]
  let owners: Map<number, string[]>

  beforeEach(async () => {
    const ann = await addUser(server, 'Ann', { view: 'individual', group: 'North' })
    const bob = await addUser(server, 'Bob', { view: 'group', group: 'South' })
    owners = new Map([
      [1, []],
      [ann.id, ['1']],
      [bob.id, ['2']],
    ])
    const ids = [...owners.keys()]
    deals = Array.from({ length: 24 }, (_, index) => ({
      owner: ids[index % 3] ?? 1,
      source: (index % 4) + 1,
      type: (index % 2) + 1,
      value: index * 10.05 + 0.0001,
      day: index % 5 === 0 ? '2026-09-30' : index % 7 === 0 ? '2026-10-25' : `2026-10-${10 + (index % 9)}`,
      reason: index % 3 === 0 ? 'Price' : null,
      isWon: index % 4 !== 1,
    })).map((each) => ({ ...each, value: Number(each.value.toFixed(4)) }))
    server.clock.set('2026-10-30T08:00:00.000Z')
    for (const { owner, source, type, value, day, reason, isWon } of deals)
      await deal(server, {
        lead_value: value,
        user_id: owner,
        lead_source_id: source,
        lead_type_id: type,
        lead_pipeline_stage_id: isWon ? stage.won : stage.lost,
        // 23:30 in Berlin, before and after the end of summer time.
        closed_at: `${day}T${day < '2026-10-25' ? '21' : '22'}:30:00.000Z`,
        ...(!isWon && { lost_reason: reason }),
      })
  })

  const inOctober = (each: Deal) => each.day >= '2026-10-01'
  const keysOf: Record<string, (each: Deal) => (string | null)[]> = {
    user: ({ owner }) => [String(owner)],
    group: ({ owner }) => owners.get(owner)?.map(String) ?? [],
    source: ({ source }) => [String(source)],
    type: ({ type }) => [String(type)],
    lost_reason: ({ reason }) => [reason],
    day: ({ day }) => [day],
    month: ({ day }) => [day.slice(0, 7)],
  }

  /** Sums in whole ten-thousandths, apart from the code of the server. */
  function own(group: string, which: (each: Deal) => boolean, of: (all: Deal[]) => number): Map<string | null, number> {
    const found = new Map<string | null, Deal[]>()
    for (const each of deals.filter(which)) {
      const keys = keysOf[group]?.(each) ?? []
      for (const key of keys.length === 0 ? [null] : keys) found.set(key, [...(found.get(key) ?? []), each])
    }
    return new Map([...found].map(([key, all]) => [key, of(all)]))
  }
  const money = (all: Deal[]) => all.reduce((sum, { value }) => sum + Math.round(value * 10_000), 0) / 10_000
  const sorted = (rows: [string | null, number][]) =>
    rows.sort(([one], [other]) => (String(one) < String(other) ? -1 : 1))

  it.each(['user', 'group', 'source', 'type', 'day', 'month'])('by %s equal sums of their own', async (group_by) => {
    const isWon = (each: Deal) => inOctober(each) && each.isWon
    const isLost = (each: Deal) => inOctober(each) && !each.isWon
    const percent = (all: Deal[]) => Number(((100 * all.filter((each) => each.isWon).length) / all.length).toFixed(4))
    for (const [measure, which, of] of [
      ['won_value', isWon, money],
      ['won_count', isWon, (all: Deal[]) => all.length],
      ['lost_value', isLost, money],
      ['lost_count', isLost, (all: Deal[]) => all.length],
      ['conversion', inOctober, percent],
    ] as const) {
      const data = await ask({ measure, group_by, ...october })
      const rows = shortRows(data).filter(([, value]: any) => value !== null && (group_by !== 'day' || value !== 0))
      const wanted = [...own(group_by, which, of)].filter(([, value]) => group_by !== 'day' || value !== 0)
      expect.soft([measure, sorted(rows)]).toEqual([measure, sorted(wanted)])
      expect.soft([measure, data.total.value]).toEqual([measure, of(deals.filter(which))])
    }
  })

  it('by reason name those without one', async () => {
    const data = await ask({ measure: 'lost_count', group_by: 'lost_reason', ...october })
    const wanted = own(
      'lost_reason',
      (each) => inOctober(each) && !each.isWon,
      (all) => all.length,
    )
    expect(sorted(shortRows(data))).toEqual(sorted([...wanted]))
    expect(data.rows.find(({ key }: any) => key === null).label).toBe('No reason')
  })

  it('are compared with the calendar month before, and filtered by their references', async () => {
    const filter = { lead_source_id: [1, 2], user_id: [1] }
    const isAsked = ({ source, owner }: Deal) => source <= 2 && owner === 1
    const data = await ask({ measure: 'won_value', group_by: 'source', period: 'this_month', compare: true, filter })
    expect([data.period, data.compared]).toEqual([october, { from: '2026-09-01', to: '2026-09-30' }])
    const of = (which: (each: Deal) => boolean) =>
      money(deals.filter((each) => which(each) && isAsked(each) && each.isWon))
    expect([data.total.value, data.total.previous]).toEqual([of(inOctober), of((each) => !inOctober(each))])
    const byGroup = await ask({ measure: 'won_count', ...october, filter: { group_id: [1] } })
    const members = deals.filter((each) => inOctober(each) && each.isWon && owners.get(each.owner)?.includes('1'))
    expect(byGroup.total.value).toBe(members.length)
  })
})

describe('the way through the stages', () => {
  it('is measured by stage: days in it, and the share that did not end as lost', async () => {
    const move = (id: number, to: number) => server.admin.put(`/leads/${id}/stage`, { lead_pipeline_stage_id: to })
    const leads = [await deal(server), await deal(server)]
    server.clock.set('2026-10-22T08:00:00.000Z')
    for (const { id } of leads) await move(id, stage.followUp)
    server.clock.set('2026-10-26T20:00:00.000Z')
    await move(leads[0].id, stage.won)
    await move(leads[1].id, stage.lost)
    const days = await ask({ measure: 'days_in_stage', group_by: 'stage', ...october })
    expect(shortRows(days)).toEqual([
      ['1', 2],
      ['2', 4.5],
    ])
    expect(shortRows(await ask({ measure: 'stage_conversion', group_by: 'stage', ...october }))).toEqual([
      ['1', 100],
      ['2', 50],
    ])
    expect((await ask({ measure: 'days_to_win', ...october })).total.value).toBe(6.5)
  })
})

describe('a forecast', () => {
  it('has a row for overdue leads and one for those without a date, and loses none', async () => {
    const values: [string | undefined, number, number][] = [
      ['2026-10-19', 100, stage.new],
      ['2026-10-20', 7.5, stage.prospect],
      ['2026-12-31', 30, stage.negotiation],
      ['2026-12-01', 20, stage.new],
      [undefined, 885_914, stage.followUp],
    ]
    for (const [date, lead_value, lead_pipeline_stage_id] of values)
      await deal(server, { lead_value, lead_pipeline_stage_id, ...(date && { expected_close_date: date }) })
    await deal(server, { lead_pipeline_stage_id: stage.won })
    const rows = async (measure: string, more = {}) => shortRows(await ask({ measure, group_by: 'month', ...more }))
    expect(await rows('expected_value')).toEqual([
      ['overdue', 100],
      ['2026-10', 7.5],
      ['2026-12', 50],
      ['no_date', 885_914],
    ])
    expect(await rows('expected_count', { period: 'this_quarter' })).toEqual([
      ['overdue', 1],
      ['2026-10', 1],
      ['2026-11', 0],
      ['2026-12', 2],
      ['no_date', 1],
    ])
    const chances = await server.store.db.selectFrom('lead_pipeline_stages').select(['id', 'probability']).execute()
    const chance = new Map(chances.map(({ id, probability }) => [id, probability]))
    const weighted = values.reduce((sum, [, value, at]) => sum + (value * (chance.get(at) ?? 0)) / 100, 0)
    expect((await ask({ measure: 'forecast_value', group_by: 'month' })).total.value).toBe(weighted)
    expect((await ask({ measure: 'open_value' })).total.value).toBe(886_071.5)
    expect(shortRows(await ask({ measure: 'open_count', group_by: 'stage' }))).toEqual([
      ['1', 2],
      ['2', 1],
      ['3', 1],
      ['4', 1],
    ])
    expect((await ask({ measure: 'expected_value', group_by: 'user', period: 'next_month' })).rows).toEqual([])
  })
})

describe('calendar periods', () => {
  it.each([
    ['today', '2026-10-20', '2026-10-20', '2026-10-19', '2026-10-19'],
    ['yesterday', '2026-10-19', '2026-10-19', '2026-10-18', '2026-10-18'],
    ['this_week', '2026-10-19', '2026-10-25', '2026-10-12', '2026-10-18'],
    ['last_week', '2026-10-12', '2026-10-18', '2026-10-05', '2026-10-11'],
    ['this_month', '2026-10-01', '2026-10-31', '2026-09-01', '2026-09-30'],
    ['last_month', '2026-09-01', '2026-09-30', '2026-08-01', '2026-08-31'],
    ['next_month', '2026-11-01', '2026-11-30', '2026-10-01', '2026-10-31'],
    ['this_quarter', '2026-10-01', '2026-12-31', '2026-07-01', '2026-09-30'],
    ['last_quarter', '2026-07-01', '2026-09-30', '2026-04-01', '2026-06-30'],
    ['next_quarter', '2027-01-01', '2027-03-31', '2026-10-01', '2026-12-31'],
    ['this_year', '2026-01-01', '2026-12-31', '2025-01-01', '2025-12-31'],
    ['last_year', '2025-01-01', '2025-12-31', '2024-01-01', '2024-12-31'],
    ['next_year', '2027-01-01', '2027-12-31', '2026-01-01', '2026-12-31'],
  ])('%s', async (period, from, to, before, until) => {
    const data = await ask({ measure: 'leads_count', period, compare: true })
    expect([data.period, data.compared]).toEqual([
      { from, to },
      { from: before, to: until },
    ])
  })

  it('are refused where they cannot be meant', async () => {
    for (const [body, field] of [
      [{ from: '2026-10-01' }, 'to'],
      [{ to: '2026-10-01' }, 'from'],
      [{ from: '2026-10-02', to: '2026-10-01' }, 'to'],
      [{ from: '2020-10-02', to: '2026-10-01' }, 'to'],
      [{ from: '0001-01-01', to: '0001-01-31' }, 'to'],
      [{ ...october, period: 'today' }, 'period'],
      [{ from: '2026-01-01', to: '2026-10-01', group_by: 'day' }, 'group_by'],
      [{ measure: 'open_count', period: 'today' }, 'period'],
      [{ measure: 'expected_count', compare: true }, 'compare'],
      [{ measure: 'quotes_count', filter: { lead_type_id: [1] } }, 'filter.lead_type_id'],
    ] as const) {
      const reply = await server.admin.post('/reports/query', { measure: 'leads_count', ...body })
      expect.soft([body, reply.status, Object.keys(reply.body.errors ?? {})]).toEqual([body, 422, [field]])
    }
  })
})

describe('queryReport', () => {
  const all = ['user', 'group', 'source', 'type', 'pipeline', 'stage', 'lost_reason', 'activity_type', 'quote_status']

  it('answers every measure by every group that it has, and refuses the others', async () => {
    await deal(server, { lead_pipeline_stage_id: stage.won, expected_close_date: '2026-10-21' })
    await server.admin.post('/activities', { type: 'call', title: 'Call' })
    for (const [measure, { groups }] of Object.entries(measures)) {
      for (const group_by of [...all, 'day', 'week', 'month']) {
        const { status } = await server.admin.post('/reports/query', { measure, group_by })
        expect
          .soft([measure, group_by, status])
          .toEqual([measure, group_by, groups.includes(group_by as never) ? 200 : 422])
      }
    }
  })

  it('only reads: it needs dashboard and reports:read, and leaves no event', async () => {
    const body = { measure: 'leads_count' }
    const ann = await addUser(server, 'Ann', { permissions: ['leads', 'leads.view'] })
    const bob = await addUser(server, 'Bob', { permissions: ['dashboard'] })
    expect((await ann.post('/reports/query', body)).status).toBe(403)
    expect((await bob.post('/reports/query', body)).status).toBe(200)
    expect((await (await server.as(1, ['leads:read'])).post('/reports/query', body)).body.required).toBe('reports:read')
    expect((await (await server.as(1, ['reports:read'])).post('/reports/query', body)).status).toBe(200)
    server.events()
    await ask(body)
    expect(server.events()).toEqual([])
  })

  it('comes as a table and as a chart, in which names are only names', async () => {
    const name = `=1+1,<script>alert('x')</script>`
    await server.store.db.updateTable('lead_sources').set({ name }).where('id', '=', 1).execute()
    await deal(server, { lead_pipeline_stage_id: stage.won, lead_source_id: 1, lead_value: 12.5 })
    const body = { measure: 'won_value', group_by: 'source', compare: true }
    const as = (accept: string) => server.admin.post('/reports/query', body, { headers: { accept } })
    const table = await as('text/csv')
    expect(table.headers['content-type']).toBe('text/csv; charset=utf-8')
    expect(table.text).toBe(
      `key,label,value,previous,change_percent\r\n1,"'=1+1,<script>alert('x')</script>",12.5,0,\r\n`,
    )
    const chart = await as('image/svg+xml')
    expect([chart.headers['content-type'], chart.text.startsWith('<svg ')]).toEqual(['image/svg+xml', true])
    expect(chart.text).not.toContain('<script')
    const empty = await server.admin.post(
      '/reports/query',
      { measure: 'quotes_value', group_by: 'user' },
      { headers: { accept: 'image/svg+xml' } },
    )
    expect(empty.text).toContain('Nothing was counted in this period.')
  })
})
