// Every writing operation fires its pair of events and leaves the matching rows in the event log, and nothing else; a dry
// run and a veto leave nothing at all.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Veto } from '../../src/kernel/events.ts'
import { fact, facts, takesHeader } from '../support/schema.ts'
import { change, changesNothing, request, send, startWorld, type World } from './support.ts'

const writers = facts.filter(([, { events }]) => events.length > 0).map(([id]) => id)
const isMass = (id: string): boolean => /\/mass-\w+$/.test(fact(id).path)
let refused: string | null = null
let world: World

beforeAll(async () => {
  const veto = (event: { name: string }) => {
    if (event.name === refused) throw new Veto('Not on a Sunday.')
  }
  world = await startWorld({ extensions: [(events) => void events.on('*', veto)] })
})
afterAll(() => world.server.close())

async function logged(): Promise<string[]> {
  const rows = await world.server.store.db.selectFrom('events').select('name').orderBy('id').execute()
  return rows.map(({ name }) => name)
}

describe.each(facts.filter(([, { method }]) => method !== 'get'))('%s', (_id, { events }) => {
  it('says in the contract what it fires', () => {
    expect(events.length).toBeGreaterThan(0)
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
    const stray = fired.filter((name) => !events.some((base) => [`${base}.before`, `${base}.after`].includes(name)))
    expect(stray).toEqual([])
    expect(rows).toEqual(fired.filter((name) => name.endsWith('.after')))
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

describe.each(facts.filter(([, { method }]) => method === 'get'))('%s', (id) => {
  it('fires no event and writes nothing', async () => {
    const findings = await changesNothing(world, async () => {
      await send(world, id, request(world, id))
    })
    expect(findings).toEqual([])
  })
})
