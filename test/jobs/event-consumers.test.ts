// Event consumers get each event once and in order, also after failures, and get no events from
// before their creation.
import { beforeEach, describe, expect, it } from 'vitest'
import { createEventDispatcher, type EventConsumer, takeWithinLimit } from '../../src/jobs/event-consumers.ts'
import { subscriptions } from '../../src/resources/webhooks/subscriptions.ts'
import { workflowTriggers } from '../../src/resources/workflows/triggers.ts'
import { drain, placeOf } from '../support/event-consumers.ts'
import { given, unique } from '../support/given.ts'
import { statementsOf } from '../support/statements.ts'
import { countTurns } from '../support/turns.ts'
import { useNewServers } from '../support/using.ts'

/** The events of each call, also of transactions that were rolled back. */
let offered: number[]
/** The events of committed transactions. */
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
    offered.push(...new Set(asked))
    ctx.unit?.onCommit.push(() => taken.push(...new Set(asked)))
    if (fails) throw new Error('in the middle')
    return last
  },
}

const server = useNewServers()
beforeEach(() => {
  offered = []
  taken = []
  types = null
  fails = false
  rows = 1
})

const feeder = (...others: EventConsumer[]) => createEventDispatcher(server.app.services, [reader, ...others])
const place = () => placeOf(server, 'webhooks')
const newest = async () =>
  (await server.store.db.selectFrom('events').select('id').orderBy('id', 'desc').executeTakeFirstOrThrow()).id

const drained = (one = feeder()) => drain(one)

describe('a reader', () => {
  it('sees each event once and in order, over many batches and restarts', async () => {
    for (let count = 0; count < 130; count++) await given(server.admin).tag()
    await drained()
    await given(server.admin).tag()
    await drained()
    await drained()
    const ids = await server.store.db.selectFrom('events').select('id').orderBy('id').execute()
    expect(taken).toEqual(ids.map(({ id }) => id))
  })

  it('sees an event again when what it did with it was rolled back', async () => {
    await given(server.admin).tag()
    fails = true
    expect(await feeder().dispatch()).toBe(false)
    expect([offered, taken, await place()]).toEqual([[await newest()], [], 0])
    fails = false
    await drained()
    expect(taken).toEqual([await newest()])
  })

  it('writes nothing while no event means anything to it, and later sees only what came after', async () => {
    types = []
    const one = feeder()
    await given(server.admin).tag()
    expect(await one.dispatch()).toBe(false)
    expect([taken, await place()]).toEqual([[], 0])
    types = null
    await given(server.admin).tag()
    await drained(one)
    expect(taken).toEqual([await newest()])
    types = []
    await given(server.admin).tag()
    await one.dispatch()
    server.clock.advanceMs(5000)
    await one.dispatch()
    expect([taken.length, await place()]).toEqual([1, await newest()])
  })

  it('goes on in steps of so many rows, between which others have their turn', async () => {
    for (let count = 0; count < 9; count++) await given(server.admin).tag()
    rows = 90
    const one = feeder()
    const steps: number[] = []
    const turns = countTurns()
    while (await one.dispatch()) steps.push(taken.length)
    turns.stop()
    expect(steps).toEqual([2, 4, 6, 8, 9])
    expect(turns.count).toBeGreaterThanOrEqual(steps.length)
    const ids = await server.store.db.selectFrom('events').select('id').orderBy('id').execute()
    expect(taken).toEqual(ids.map(({ id }) => id))
  })

  it.each([
    ['workflows', workflowTriggers, 'workflow_runs', 20],
    ['webhooks', subscriptions, 'webhook_deliveries', 20],
  ] as const)(
    'of %s writes as many rows as there are with as many statements as one row',
    async (_whose, real, table, many) => {
      const own = createEventDispatcher(server.app.services, [real])
      const add = async (count: number): Promise<void> => {
        for (let n = 0; n < count; n++) {
          const tag = { id: 'add_tag', value: 'Seen' }
          const about = { entity_type: 'leads', event: 'lead.create.after', actions: [tag] }
          const workflow = { name: `W${unique()}`, ...about }
          const webhook = { name: `H${unique()}`, url: 'https://example.com/x', events: ['lead.create.after'] }
          const isWorkflow = table === 'workflow_runs'
          const path = isWorkflow ? '/settings/workflows' : '/settings/webhooks'
          expect((await server.admin.post(path, isWorkflow ? workflow : webhook)).status).toBe(201)
        }
      }
      const statements = async (): Promise<number> => {
        await drained(own)
        await given(server.admin).lead()
        return (await statementsOf(() => drained(own))).length
      }
      const rowsNow = async () => (await server.store.db.selectFrom(table).select('id').execute()).length
      await add(1)
      await statements()
      const [few, rowsBefore] = [await statements(), await rowsNow()]
      await add(many - 1)
      expect(await statements()).toBe(few)
      expect((await rowsNow()) - rowsBefore).toBe(many)
      const jobs = await server.store.db.selectFrom('jobs').select(['state', 'sequence']).orderBy('id').execute()
      expect(jobs.filter(({ sequence }) => sequence !== null)).toHaveLength(rowsBefore + many)
    },
  )

  it('that fails holds up no other, and goes on where it was once it can', async () => {
    const heard: number[] = []
    const other: EventConsumer = {
      name: 'workflows',
      entityTypes: async () => null,
      consume: async (ctx, events) => {
        ctx.unit?.onCommit.push(() => heard.push(...events.map(({ id }) => id)))
        return events.at(-1)?.id ?? 0
      },
    }
    for (let count = 0; count < 120; count++) await given(server.admin).tag()
    fails = true
    const both = feeder(other)
    await drained(both)
    expect(heard).toHaveLength(120)
    // It was called once while the other one continued.
    expect(offered).toEqual(heard.slice(0, offered.length))
    expect(offered.length).toBeGreaterThan(0)
    expect(offered.length).toBeLessThan(120)
    expect([taken, await place()]).toEqual([[], 0])
    fails = false
    await drained(both)
    expect(taken).toEqual(heard)
    expect(heard).toHaveLength(120)
  })
})
