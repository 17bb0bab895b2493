// The event catalogue: the contract has every event, an operation declares it, and
// the operation fires its before- and after-event.
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it, vi } from 'vitest'
import { catalogueEvents, eventBases } from '../../codegen/events.ts'
import { parseEvent, type StoredEvent } from '../../src/jobs/event-consumers.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { isNeverSent } from '../../src/kernel/write/event-names.ts'
import { factsOf } from '../../src/resources/events/event-facts.ts'
import { listableTypes } from '../../src/resources/events/event-visibility.ts'
import { document, facts } from '../support/schema.ts'
import { flows } from './catalogue.flows.ts'
import { change } from './support.ts'
import { useWorld } from './use-world.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

/** Events that are also fired without suffix, after the pair. */
const bareToo = ['user.account.update-password']
/** The names of all events that the code fires, with the suffixes of those that have a pair. */
const names = catalogueEvents
  .flatMap(({ base, name }) => {
    const pair = [`${base}.before`, `${base}.after`]
    return name === base ? [base, ...(bareToo.includes(base) ? pair : [])] : pair
  })
  .sort()

describe('the catalogue of events', () => {
  it('has nothing that no operation declares', () => {
    const declared = new Set<string>(facts.flatMap(([, { events }]) => events))
    expect(eventBases.filter((base) => !declared.has(base))).toEqual([])
  })
})

/** The events that the section `webhooks` of the contract describes. */
const described = document.webhooks as Record<string, { post: { requestBody: { content: object } } }>
const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema({ $id: 'contract', ...document })

/** Returns how the message of an event violates the contract, or null. */
function fault(row: StoredEvent): string | null {
  const event = catalogueEvents.find(({ name }) => name === row.name)
  if (event?.entity !== row.entity_type) return `${row.name} is about ${row.entity_type}`
  const entity = row.after ?? row.before
  const snapshot = ajv.getSchema(`contract#/components/schemas/${event.schema ?? 'EventSnapshot'}`)
  if (!snapshot?.(entity)) return `${row.name}: ${ajv.errorsText(snapshot?.errors)}`
  if (event.isUnsent) return described[row.name] === undefined ? null : `${row.name} is described but never sent`
  const message = {
    id: 'msg_1',
    type: row.name,
    timestamp: row.created_at,
    data: { ...factsOf(row, row), before: row.before, after: row.after },
  }
  const place = `webhooks/${row.name}/post/requestBody/content/application~1json/schema`
  const matches = ajv.getSchema(`contract#/${place}`)
  return matches?.(message) ? null : `${row.name}: ${ajv.errorsText(matches?.errors ?? [])}`
}

describe('the section webhooks of the contract', () => {
  it('has every event that webhooks send, the test, and nothing else', () => {
    const sent = catalogueEvents.map(({ name }) => name).filter((name) => !isNeverSent(name))
    expect(Object.keys(described).sort()).toEqual([...sent, 'webhook.test'].sort())
    expect(catalogueEvents.filter(({ name, isUnsent }) => isNeverSent(name) !== isUnsent)).toEqual([])
  })
})

describe('what operations fire', () => {
  const world = useWorld()

  it('is the whole catalogue, before and after, and nothing else', async () => {
    const fired = new Set<string>()
    const types = new Set<string>()
    const logged = new Set<string>()
    const faults = new Set<string>()
    const run = async (work: () => Promise<unknown>): Promise<void> => {
      await world.server.rewind()
      await work()
      await world.server.work()
      for (const { entityType } of world.server.seen) types.add(entityType)
      for (const name of world.server.events()) fired.add(name)
      for (const row of await world.server.store.db.selectFrom('events').selectAll().execute()) {
        logged.add(row.name)
        // The erasure of a person has emptied it.
        if (row.before === null && row.after === null) continue
        const found = fault(parseEvent(row))
        if (found !== null) faults.add(found)
      }
    }
    const isMissing = (base: string): boolean => names.some((name) => name.startsWith(base) && !fired.has(name))
    for (const [id, { events }] of facts) if (events.some(isMissing)) await run(() => change(world, id))
    for (const flow of flows) await run(() => flow(world))
    await world.server.rewind()
    expect(names.filter((name) => !fired.has(name))).toEqual([])
    expect([...fired].filter((name) => !names.includes(name))).toEqual([])
    expect([...logged].sort()).toEqual(catalogueEvents.map(({ name }) => name).sort())
    expect([...faults]).toEqual([])
    // The feed must support every type of record.
    const told = listableTypes(systemContext(world.server.app.services, 'api'))
    expect([...types].filter((type) => !told.includes(type))).toEqual([])
  })
})
