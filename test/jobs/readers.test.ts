// Readers of the event log: each event once, in order, whatever fails in between; and nothing of what happened while nobody listened.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFeeder, type EventReader } from '../../src/jobs/readers.ts'
import { startServer, type TestServer } from '../support/app.ts'
import { given } from '../support/given.ts'

let server: TestServer
let taken: number[]
let isIdle: boolean
let fails: boolean

const reader: EventReader = {
  name: 'webhooks',
  isIdle: async () => isIdle,
  take: async (_ctx, events) => {
    taken.push(...events.map(({ id }) => id))
    if (fails) throw new Error('in the middle')
  },
}

beforeEach(async () => {
  server = await startServer()
  taken = []
  isIdle = false
  fails = false
})
afterEach(() => server.close())

const feeder = () => createFeeder(server.app.services, [reader])
const place = async () =>
  (
    await server.store.db
      .selectFrom('event_readers')
      .select('last_event_id')
      .where('name', '=', 'webhooks')
      .executeTakeFirstOrThrow()
  ).last_event_id
const newest = async () =>
  (await server.store.db.selectFrom('events').select('id').orderBy('id', 'desc').executeTakeFirstOrThrow()).id

async function drained({ feed } = feeder()): Promise<void> {
  while (await feed());
}

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
    await expect(feeder().feed()).rejects.toThrow('in the middle')
    expect(await place()).toBe(0)
    fails = false
    taken = []
    await drained()
    expect(taken).toEqual([await newest()])
  })

  it('writes nothing while no event means anything to it, and later sees only what came after', async () => {
    isIdle = true
    const one = feeder()
    await given(server.admin).tag()
    expect(await one.feed()).toBe(false)
    expect([taken, await place()]).toEqual([[], 0])
    isIdle = false
    await given(server.admin).tag()
    await drained(one)
    expect(taken).toEqual([await newest()])
    isIdle = true
    await given(server.admin).tag()
    await one.feed()
    server.clock.advanceMs(5000)
    await one.feed()
    expect([taken.length, await place()]).toEqual([1, await newest()])
  })
})
