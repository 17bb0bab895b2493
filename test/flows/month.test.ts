// A month of a small company: eight users, 192 leads from an import, a form and the team, two
// pipelines, quotes, mails, a user who leaves and a reorganization. The team keeps a book of its
// own, and the figures of the server must equal it.
import { beforeAll, describe, expect, it } from 'vitest'
import { form as multipart } from '../support/form.ts'
import { csvOf, importing } from '../support/importing.ts'
import { useSharedServer } from '../support/using.ts'
import { monthOf, openBook } from './month/book.ts'
import { type Company, must, openCompany, type Representative, representatives } from './month/company.ts'

const inboundSecret = 'open: sesame'
const server = useSharedServer({ config: { timezone: 'Europe/Berlin', inboundSecret } })
const { admin } = server
const book = openBook()
let team: Company

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
/** Returns a value in whole cents that differs from lead to lead. */
const worth = (index: number): number => Math.round(50_000 + index * 3745) / 100
const repAt = (index: number): Representative => representatives[index % representatives.length] ?? 'Rita'

async function leadsOf(query: string, by: Pick<typeof admin, 'get'> = admin): Promise<any[]> {
  const found: any[] = []
  for (let page = 1; ; page += 1) {
    const some = must(await by.get(`/leads?per_page=100&page=${page}&sort=id&${query}`))
    found.push(...some)
    if (some.length < 100) return found
  }
}

const stageOf = (code: string): number => team.stage(team.pipelines.standard, code)

async function close(id: number, kind: 'won' | 'lost', by: Pick<typeof admin, 'put'> = team.Mara): Promise<void> {
  const reason = kind === 'lost' ? { lost_reason: 'Price' } : {}
  must(await by.put(`/leads/${id}/stage`, { lead_pipeline_stage_id: stageOf(kind), ...reason }))
  book.close(id, kind, server.clock.now())
}

/** Returns the figures of March that the server reports. */
async function march() {
  const revenue = async (user = '') => {
    const { statistics } = must(await admin.get(`/reports/revenue-stats?start=2026-03-01&end=2026-03-31${user}`))
    return { won: statistics.won_revenue.current, lost: statistics.lost_revenue.current }
  }
  const byUser: Record<string, number> = {}
  for (const { name, id } of Object.values(team.sales)) {
    const { won } = await revenue(`&user_id=${id}`)
    if (won > 0) byUser[name] = won
  }
  return { ...(await revenue()), byUser }
}

const expectedMarch = () => {
  const { won, lost, byUser } = book.figures('2026-03')
  return { won: won.value, lost: lost.value, byUser }
}

beforeAll(async () => {
  team = await openCompany(server)
})

describe('a month', () => {
  it('1 March: imports bring 50 persons with their organizations, and 100 leads of four owners', async () => {
    const run = importing(admin)
    const people = numbers(50).map((at) => [
      `Customer ${at}`,
      `customer${at}@example.org`,
      `Company ${at % 20}`,
      repAt(at),
    ])
    const persons = await run.run('persons', csvOf([['name', 'emails', 'organization_name', 'user'], ...people]))
    expect(persons.errors).toEqual([])
    const rows = numbers(100).map((at) => [
      `Imported ${at}`,
      worth(at),
      `customer${at % 50}@example.org`,
      repAt(at % 50),
    ])
    const leads = await run.run('leads', csvOf([['title', 'lead_value', 'person_email', 'user'], ...rows]))
    expect(leads.errors).toEqual([])
    const stored = await leadsOf('')
    expect(stored).toHaveLength(100)
    for (const [at, lead] of stored.entries()) book.add(lead.id, worth(at), repAt(at % 50))
    for (const name of ['Rita', 'Sam', 'Uwe'] as const)
      expect(new Set((await leadsOf('', team[name])).map(({ user }) => user.name))).toEqual(new Set([name]))
  })

  it('2 March: a form brings 40 leads without an owner, and the manager hands them over in turns', async () => {
    server.clock.set('2026-03-02T08:00:00Z')
    const attributes = must(await admin.get('/settings/attributes?per_page=100&entity_type=leads'))
    const idOf = (code: string): number => attributes.find((each: any) => each.code === code).id
    const form = must(
      await admin.post('/settings/web-forms', {
        ...{ title: 'Contact', submit_button_label: 'Send', create_lead: true },
        ...{ submit_success_action: 'message', submit_success_content: 'Thank you' },
        attributes: [{ attribute_id: idOf('title') }, { attribute_id: idOf('lead_value') }],
      }),
    )
    for (const at of numbers(40)) {
      // One address may send ten submissions in a while.
      server.clock.advanceMs(10 * 60_000)
      const sent = {
        persons: { name: `Visitor ${at}`, emails: [{ value: `visitor${at}@example.net` }] },
        leads: { title: `Asked ${at}`, lead_value: worth(100 + at) },
      }
      must(await server.anonymous.post(`//web-forms/forms/${form.form_id}`, sent))
    }
    const asked = await leadsOf('user_id[null]=true')
    expect(asked).toHaveLength(40)
    for (const [at, lead] of asked.entries()) book.add(lead.id, worth(100 + at), null)
    expect(await leadsOf('user_id[null]=true', team.Rita)).toEqual([])
    const given = must(
      await team.Mara.post('/leads/hand-over', {
        lead_ids: asked.map(({ id }) => id),
        user_ids: [team.Rita.id, team.Sam.id],
        with: ['person', 'organization', 'quotes', 'activities'],
      }),
    )
    expect(given.leads).toBe(40)
    for (const { id, user, person } of await leadsOf('q=Asked')) {
      book.handOver(id, user.name)
      expect(await team[user.name as 'Rita'].get(`/contacts/persons/${person.id}`)).toMatchObject({ status: 200 })
    }
  })

  it('3 to 6 March: the team adds 52 leads, also for persons of others', async () => {
    for (const at of numbers(52)) {
      server.clock.set(`2026-03-0${3 + (at % 4)}T10:${String(at).padStart(2, '0')}:00Z`)
      const owner = team[repAt(at)]
      const lead = must(
        await owner.post('/leads', {
          title: `Met ${at}`,
          lead_value: worth(140 + at),
          user_id: owner.id,
          ...(at % 5 === 0 && { lead_pipeline_id: team.pipelines.service.id }),
          person: { name: `Met person ${at}`, emails: [{ value: `met${at}@example.com` }] },
        }),
      )
      book.add(lead.id, worth(140 + at), owner.name)
    }
    expect(book.deals.size).toBe(192)
    expect((await leadsOf('')).length).toBe(192)
  })

  it('9 March: quotes are sent with numbers without a gap, and customers answer', async () => {
    server.clock.set('2026-03-09T09:00:00Z')
    const numbersOfQuotes: string[] = []
    for (const lead of (await leadsOf('q=Met')).slice(0, 12)) {
      const owner = team[lead.user.name as Representative]
      const quote = must(
        await owner.post('/quotes', {
          subject: `Offer for ${lead.title}`,
          person_id: lead.person.id,
          lead_id: lead.id,
          billing_address: { address: 'Street 1', city: 'Bremen', postcode: '28195', country: 'DE', state: 'HB' },
          expiry_date: '2026-04-09',
          items: [{ product_id: team.products[0].id, quantity: 2, price: team.products[0].price }],
        }),
      )
      const sent = must(await owner.put(`/quotes/${quote.id}`, { status: 'sent' }))
      numbersOfQuotes.push(sent.number)
      must(await owner.put(`/quotes/${quote.id}`, { status: numbersOfQuotes.length % 3 ? 'accepted' : 'declined' }))
      expect(await team.Karl.get(`/quotes/${quote.id}`)).toMatchObject({ status: 200 })
      // Vera sees none of these leads, and so none of their quotes.
      expect(await team.Vera.get(`/quotes/${quote.id}`)).toMatchObject({ status: 403 })
    }
    const counters = numbersOfQuotes.map((number) => Number(/\d+$/.exec(number)?.[0]))
    expect(counters).toEqual(numbers(12).map((at) => (counters[0] ?? 0) + at))
  })

  it('10 March: a mail of a customer is seen by the owner of the person, and by no other representative', async () => {
    server.clock.set('2026-03-10T07:00:00Z')
    const raw = [
      'Message-ID: <month-1@example.org>',
      'From: Customer 2 <customer2@example.org>',
      'To: crm@localhost',
      'Subject: Our pump',
      'Date: Tue, 10 Mar 2026 07:59:00 +0100',
      '',
      'It leaks.',
    ].join('\r\n')
    const sent = await multipart({ email: raw })
    const headers = { ...sent.headers, 'x-inbound-secret': inboundSecret }
    must(await server.anonymous.post('//admin/mail/inbound-parse', sent.body, { headers }))
    await server.work()
    const seenBy = async (name: Representative): Promise<number> => must(await team[name].get('/emails?q=pump')).length
    expect(repAt(2)).toBe('Tom')
    expect([await seenBy('Tom'), await seenBy('Rita')]).toEqual([1, 0])
  })

  it('12 March: leads are won and lost, by their owners', async () => {
    server.clock.set('2026-03-12T12:00:00Z')
    const service = await leadsOf(`lead_pipeline_id=${team.pipelines.service.id}`)
    for (const [at, id] of [...book.deals.keys()].entries()) {
      if (service.some((lead) => lead.id === id)) continue
      const owner = team[book.deal(id).owner as Representative]
      if (at % 7 === 0) await close(id, 'won', owner)
      else if (at % 11 === 0) await close(id, 'lost', owner)
    }
    expect(await march()).toEqual(expectedMarch())
  })

  it('16 March: Rita leaves; Sam and Uwe work on with everything that belongs to her leads', async () => {
    server.clock.set('2026-03-16T09:00:00Z')
    const hers = await leadsOf(`user_id=${team.Rita.id}&status=1`)
    expect(hers.length).toBeGreaterThan(20)
    const order = {
      lead_ids: hers.map(({ id }) => id),
      user_ids: [team.Sam.id, team.Uwe.id],
      with: ['person', 'organization', 'quotes', 'activities'],
    }
    const dry = must(await team.Mara.post('/leads/hand-over', order, { headers: { 'accord-dry-run': 'true' } }))
    expect(must(await team.Mara.post('/leads/hand-over', order))).toEqual(dry)
    for (const { id, person } of hers) {
      const { user } = must(await admin.get(`/leads/${id}`))
      book.handOver(id, user.name)
      expect((await team[user.name as 'Sam'].get(`/contacts/persons/${person.id}`)).status).toBe(200)
    }
    expect(await march()).toEqual(expectedMarch())
  })

  it('20 March: the service pipeline goes; each stage names its successor', async () => {
    server.clock.set('2026-03-20T09:00:00Z')
    const { service, standard } = team.pipelines
    const leads = await leadsOf(`lead_pipeline_id=${service.id}`)
    expect(leads.length).toBeGreaterThan(5)
    const pair = `${team.stage(service, 'new')}:${team.stage(standard, 'prospect')}`
    expect((await admin.delete(`/pipelines/${service.id}?stage_successors=${pair}`)).status).toBe(200)
    for (const { id } of leads)
      expect(must(await admin.get(`/leads/${id}`))).toMatchObject({ stage: { code: 'prospect' } })
  })

  it('29 and 31 March: the night of summer time and the last hour belong to March', async () => {
    const open = (await leadsOf(`status=1&user_id=${team.Sam.id}`)).map(({ id }) => id)
    const moments = [
      ['2026-03-28T23:30:00Z', '2026-03'],
      ['2026-03-29T00:59:59Z', '2026-03'],
      ['2026-03-29T01:00:00Z', '2026-03'],
      ['2026-03-31T21:59:59Z', '2026-03'],
      ['2026-03-31T22:00:00Z', '2026-04'],
    ] as const
    for (const [at, [moment, month]] of moments.entries()) {
      server.clock.set(moment)
      expect(monthOf(server.clock.now())).toBe(month)
      await close(open[at], 'won', team.Sam)
    }
    expect(await march()).toEqual(expectedMarch())
  })

  it('a year later: March stays after a deletion, an edit, a reopening and a hand-over', async () => {
    const before = await march()
    expect(before).toEqual(expectedMarch())
    server.clock.set('2027-03-15T09:00:00Z')
    const [first, second, third, fourth] = await leadsOf('status=2')
    expect((await admin.delete(`/leads/${first.id}`)).status).toBe(200)
    must(await admin.put(`/leads/${second.id}`, { lead_value: 1 }))
    must(await admin.put(`/leads/${third.id}/stage`, { lead_pipeline_stage_id: stageOf('prospect') }))
    must(await admin.put(`/leads/${fourth.id}`, { user_id: team.Mara.id }))
    expect(await march()).toEqual(before)
    const rows = must(
      await admin.post('/reports/query', {
        measure: 'won_value',
        group_by: 'user',
        from: '2026-03-01',
        to: '2026-03-31',
      }),
    ).rows.filter(({ value }: any) => value !== 0)
    expect(Object.fromEntries(rows.map(({ label, value }: any) => [label, value]))).toEqual(before.byUser)
  })
})
