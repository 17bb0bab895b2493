// Every write fires exactly its pairs of events and logs the matching rows. A dry run and a veto
// leave nothing. Reads fire no event, except exports.
import { describe, expect, it } from 'vitest'
import { Veto } from '../../src/kernel/write/events.ts'
import { fact, facts, isSilent, takesHeader } from '../support/schema.ts'
import { change, changesNothing, request, send, urlOf } from './support.ts'
import { useWorld } from './use-world.ts'

const writers = facts.filter(([, { events, method }]) => events.length > 0 && method !== 'get').map(([id]) => id)
const isMass = (id: string): boolean => /\/mass-\w+$/.test(fact(id).path)
let refused: string | null = null

const veto = (event: { name: string }) => {
  if (event.name === refused) throw new Veto('Not on a Sunday.')
}
const world = useWorld({ extensions: [(events) => void events.on('*', veto)] })

async function logged(): Promise<string[]> {
  const rows = await world.server.store.db.selectFrom('events').select('name').orderBy('id').execute()
  return rows.map(({ name }) => name)
}

describe.each(facts.filter(([, { method }]) => method !== 'get'))('%s', (id, { events }) => {
  it('says in the contract what it fires', () => {
    expect(events.length > 0).toBe(!isSilent(id))
  })
})

describe.each(writers)('%s', (id) => {
  const { events, status } = fact(id)
  const [own = ''] = events

  it(`fires ${own}.before and .after, once, and leaves a row in the event log`, async () => {
    await world.server.rewind()
    const before = await logged()
    const answer = await change(world, id)
    expect(answer.status === status ? status : answer.text).toBe(status)
    const fired = world.server.events()
    const rows = (await logged()).slice(before.length)
    await world.server.rewind()
    expect(fired.filter((name) => name.startsWith(`${own}.`) && /\.(before|after)$/.test(name))).toEqual([
      `${own}.before`,
      `${own}.after`,
    ])
    const stray = fired.filter(
      (name) => !events.some((base) => [`${base}.before`, `${base}.after`, base].includes(name)),
    )
    expect(stray).toEqual([])
    // An event that is also fired without suffix is logged under that name.
    const isTwice = (name: string): boolean => fired.includes(name.replace(/\.after$/, ''))
    expect(rows).toEqual(
      fired.filter((name) => !/\.(before|after)$/.test(name) || (/\.after$/.test(name) && !isTwice(name))),
    )
  })

  it('changes nothing when a listener refuses, and gives the reason of the listener', async () => {
    await world.server.rewind()
    let fired: string[] = []
    refused = `${own}.before`
    const findings = await changesNothing(world, async () => {
      const { status, body } = await send(world, id, request(world, id))
      fired = world.server.events()
      if (isMass(id)) {
        expect.soft([status, body.code]).toEqual([422, 'mass_failed'])
        expect.soft(body.failed).toMatchObject([{ status: 403, code: 'event_vetoed', detail: 'Not on a Sunday.' }])
      } else expect.soft([status, body.code, body.detail]).toEqual([403, 'event_vetoed', 'Not on a Sunday.'])
    })
    refused = null
    expect(findings).toEqual([])
    expect(fired.filter((name) => name.endsWith('.after'))).toEqual([])
    expect(fired.at(-1)).toBe(`${own}.before`)
  })
})

describe.each(writers.filter((id) => takesHeader(id, 'Accord-Dry-Run')))('%s', (id) => {
  it('changes nothing when asked for a dry run, and answers as if it had', async () => {
    const findings = await changesNothing(world, async () => {
      const { status, headers, body } = await send(world, id, {
        ...request(world, id),
        headers: { 'accord-dry-run': 'true' },
      })
      expect.soft([status, headers['accord-dry-run'], headers.location]).toEqual([200, 'true', undefined])
      expect.soft(typeof body?.message).toBe('string')
    })
    expect(findings).toEqual([])
  })
})

describe.each(facts.filter(([id, { method }]) => method !== 'get' && !takesHeader(id, 'Accord-Dry-Run')))(
  '%s',
  (id) => {
    it('does nothing when asked for a dry run, which it has not', async () => {
      const findings = await changesNothing(world, async () => {
        const wanted = request(world, id)
        const { status, body } = await send(world, id, { ...wanted, headers: { 'accord-dry-run': 'true' } })
        expect.soft([status, Object.keys(body.errors ?? {})]).toEqual([422, ['header.Accord-Dry-Run']])
        expect.soft(world.server.events()).toEqual([])
      })
      expect(findings).toEqual([])
    })
  },
)

/** Reads that leave a fact in the event log, as an export tells who took which list. */
const told = facts.filter(([, { method, events }]) => method === 'get' && events.length > 0)

describe.each(told)('%s', (id, { events }) => {
  it('leaves its fact in the event log, and none for HEAD', async () => {
    await world.server.rewind()
    const before = (await logged()).length
    expect((await send(world, id, { ...request(world, id), method: 'HEAD' })).status).toBe(200)
    expect((await logged()).slice(before)).toEqual([])
    expect((await send(world, id, request(world, id))).status).toBe(200)
    expect((await logged()).slice(before)).toEqual(events)
    await world.server.rewind()
  })
})

describe.each(facts.filter(([, { method, events }]) => method === 'get' && events.length === 0))('%s', (id) => {
  it('fires no event and writes nothing', async () => {
    const findings = await changesNothing(world, async () => {
      await send(world, id, request(world, id))
    })
    expect(findings).toEqual([])
  })
})

describe('what is created on the way', () => {
  const person = (name: string) => ({
    name,
    emails: [{ value: `${name}@example.com` }],
    organization_name: `${name} Ltd`,
    tag_ids: [world.main.tags],
  })

  // Requests with additional events. send() throws for events that the operation does not declare.
  const cases: [what: string, id: string, body: () => object, ids: () => object, fired: string[]][] = [
    [
      'a lead with a new person',
      'createLead',
      () => ({ title: 'a', lead_value: 1, person: person('one'), tag_ids: [world.main.tags] }),
      () => ({}),
      [
        'contacts.organization.create',
        'contacts.person.create',
        'lead.create',
        'leads.tag.create',
        'persons.tag.create',
      ],
    ],
    [
      'a lead that gets a new person',
      'updateLead',
      () => ({ person: person('two'), tag_ids: [] }),
      () => world.main,
      [
        'contacts.organization.create',
        'contacts.person.create',
        'lead.update',
        'leads.tag.delete',
        'persons.tag.create',
      ],
    ],
    [
      'leads that get new persons',
      'massUpdateLeads',
      () => ({ ids: [world.main.leads], changes: { person: person('three'), tag_ids: [] } }),
      () => ({}),
      [
        'contacts.organization.create',
        'contacts.person.create',
        'lead.update',
        'leads.tag.delete',
        'persons.tag.create',
      ],
    ],
    [
      'persons that get a new organization',
      'massUpdatePersons',
      () => ({ ids: [world.main.persons], changes: { organization_name: 'Four Ltd', tag_ids: [] } }),
      () => ({}),
      ['contacts.organization.create', 'contacts.person.update', 'persons.tag.delete'],
    ],
    ...['Lead', 'Person', 'Organization', 'Product'].map(
      (kind): [string, string, () => object, () => object, string[]] => [
        `a new tag on a ${kind.toLowerCase()}`,
        `attach${kind}Tag`,
        () => ({ name: 'Made on the way' }),
        () => world.main,
        [`${kind.toLowerCase()}s.tag.create`, 'settings.tag.create'],
      ],
    ),
    [
      'a new password',
      'updateUser',
      () => ({ password: 'a long enough secret', password_confirmation: 'a long enough secret' }),
      () => world.spare,
      ['settings.user.update', 'user.token.delete'],
    ],
  ]

  const everywhere: [id: string, body: () => object | undefined][] = [
    ['deleteTag', () => undefined],
    ['massDeleteTags', () => ({ ids: [world.main.tags] })],
  ]

  it.each(everywhere)('%s of a tag that is on everything: all that is declared, once', async (id, body) => {
    await world.server.rewind()
    const { method, events } = fact(id)
    const { status, text } = await send(world, id, {
      method: method.toUpperCase(),
      url: urlOf(world, id),
      body: body(),
    })
    expect(status, text).toBe(200)
    const bases = world.server.events().map((name) => name.replace(/\.(before|after)$/, ''))
    await world.server.rewind()
    // Only `replace_with` changes rules, and no rule names this tag.
    const rules = ['settings.workflow.update', 'settings.marketing.campaigns.update', 'settings.web_forms.update']
    expect([...new Set(bases)].sort()).toEqual(events.filter((name) => !rules.includes(name)).sort())
  })

  it.each(cases)('%s', async (_what, id, body, ids, fired) => {
    await world.server.rewind()
    if (id === 'updateUser') await world.server.as(world.spare.users ?? 0)
    const { method } = fact(id)
    const url = urlOf(world, id, ids() as Record<string, number>)
    const { status, text } = await send(world, id, { method: method.toUpperCase(), url, body: body() })
    expect([200, 201].includes(status) ? '' : text).toBe('')
    const bases = world.server.events().map((name) => name.replace(/\.(before|after)$/, ''))
    expect([...new Set(bases)].sort()).toEqual(fired)
    await world.server.rewind()
  })
})
