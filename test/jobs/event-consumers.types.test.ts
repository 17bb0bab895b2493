// Event consumers of certain types get all events of these types and no others, and their positions
// advance past other events.
import { sql } from 'kysely'
import { beforeEach, describe, expect, it } from 'vitest'
import { createEventDispatcher, type EventConsumer, takeWithinLimit } from '../../src/jobs/event-consumers.ts'
import { subscriptions } from '../../src/resources/webhooks/subscriptions.ts'
import { workflowTriggers } from '../../src/resources/workflows/triggers.ts'
import { drain, placeOf } from '../support/event-consumers.ts'
import { given, unique } from '../support/given.ts'
import { useNewServers } from '../support/using.ts'

let taken: number[]
/** Null for all types. */
let types: readonly string[] | null
let fails: boolean
/** The number of rows that each event reads. */
let rows: number

const reader: EventConsumer = {
  name: 'webhooks',
  entityTypes: async () => types,
  consume: async (ctx, events) => {
    const { asked, last } = takeWithinLimit(events, ({ id }) => Array.from({ length: rows }, () => id))
    if (fails) throw new Error('in the middle')
    ctx.unit?.onCommit.push(() => taken.push(...new Set(asked)))
    return last
  },
}

const server = useNewServers()
beforeEach(() => {
  taken = []
  types = ['tags']
  fails = false
  rows = 1
})

const make = () => given(server.admin)
const feeder = (own = reader) => createEventDispatcher(server.app.services, [own])
const events = () => server.store.db.selectFrom('events').select('id').orderBy('id')
const idsOf = async (type?: string): Promise<number[]> =>
  (await (type ? events().where('entity_type', '=', type) : events()).execute()).map(({ id }) => id)
const newest = async () => (await idsOf()).at(-1) ?? 0
const place = () => placeOf(server, 'webhooks')

const drained = (one = feeder()) => drain(one)

describe('a reader that hears of some types only', () => {
  it('gets no others, and its place moves on to the newest all the same', async () => {
    const one = feeder()
    await make().lead()
    expect(await one.dispatch()).toBe(false)
    // The position is not stored immediately.
    expect([taken, await place()]).toEqual([[], 0])
    server.clock.advanceMs(5000)
    expect(await one.dispatch()).toBe(false)
    expect([taken, await place()]).toEqual([[], await newest()])
    for (const type of ['tag', 'lead', 'tag', 'lead'] as const) await make()[type]()
    expect(await one.dispatch()).toBe(true)
    expect([taken, await place()]).toEqual([await idsOf('tags'), await newest()])
    expect(await one.dispatch()).toBe(false)
  })

  it('receives all events when it names no type, also those about things that are not records', async () => {
    types = null
    await make().lead()
    const { status } = await server.admin.put('/settings/configuration', {
      values: { 'email.imap.account.host': 'imap.example.com' },
    })
    expect(status).toBe(200)
    expect(await events().where('entity_id', 'is', null).execute()).toHaveLength(1)
    await drained()
    expect(taken).toEqual(await idsOf())
  })

  it('keeps its position before unhandled events, and misses none of them', async () => {
    rows = 90
    for (let count = 0; count < 5; count++) {
      await make().tag()
      await make().lead()
    }
    const one = feeder()
    expect(await one.dispatch()).toBe(true)
    expect([taken, await place()]).toEqual([(await idsOf('tags')).slice(0, 2), (await idsOf('tags'))[1]])
    fails = true
    expect(await one.dispatch()).toBe(false)
    fails = false
    // Another process continues.
    await drained()
    expect([taken, await place()]).toEqual([await idsOf('tags'), await newest()])
  })

  it('misses no event of a type that it adds while it handles others', async () => {
    await make().tag()
    const changing: EventConsumer = {
      ...reader,
      entityTypes: async () => {
        if (types === null) return null
        types = null
        await make().lead()
        return ['tags']
      },
    }
    const one = feeder(changing)
    expect(await one.dispatch()).toBe(true)
    expect([taken, await place()]).toEqual([await idsOf('tags'), (await idsOf('tags'))[0]])
    await drained(one)
    expect(taken).toEqual(await idsOf())
  })

  it('comes through a long log in stretches to the one that it hears of', async () => {
    await make().lead()
    const columns = sql.join(['name', 'entity_type', 'actor_type', 'origin', 'created_at'].map((each) => sql.ref(each)))
    await sql`with recursive n(n) as (select 1 union all select n + 1 from n where n < 2500)
      insert into events (${columns}) select ${columns} from n, events where events.id = ${await newest()}`.execute(
      server.store.db,
    )
    await make().tag()
    const one = feeder()
    const places: number[] = []
    while (await one.dispatch()) places.push(await place())
    const last = await newest()
    // A stretch has 1000 ids.
    expect(places).toEqual([...Array.from({ length: Math.floor(last / 1000) }, (_, n) => 1000 * (n + 1)), last])
    expect(places.length).toBeGreaterThanOrEqual(3)
    expect(taken).toEqual(await idsOf('tags'))
  })
})

describe.each([
  ['workflows', workflowTriggers, 'workflow_runs'],
  ['webhooks', subscriptions, 'webhook_deliveries'],
] as const)('the reader of %s', (whose, real, table) => {
  it('gives a consumer that becomes active no earlier event, skipped or not', async () => {
    const own = feeder(real)
    const about =
      whose === 'workflows'
        ? { event: 'lead.create.after', actions: [{ id: 'add_tag', value: 'Seen' }] }
        : { url: 'https://example.com/x', events: ['lead.create.after'] }
    await given(server.admin).lead()
    await drained(own)
    await given(server.admin).lead()
    const added = { name: `N${unique()}`, entity_type: 'leads', ...about }
    expect((await server.admin.post(`/settings/${whose}`, added)).status).toBe(201)
    await given(server.admin).lead()
    const after = await newest()
    // The new dispatcher has skipped no event in memory.
    await drained(feeder(real))
    await drained(own)
    const told = await server.store.db.selectFrom(table).select('event_id').execute()
    expect(told).toEqual([{ event_id: after }])
  })
})
