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

/** The catalogue: nouns with their verbs. */
const catalogue = `
lead create update delete restore won lost reopened
leads.quote create delete
leads.tag create delete
leads.product create update delete
contacts.person create update delete restore
contacts.organization create update delete restore
product create update delete restore
product.inventory update
quote create update delete restore
activity create update delete restore answered
activities.file create delete
email create update delete restore bounced
persons.tag create delete
organizations.tag create delete
products.tag create delete
quotes.tag create delete
warehouses.tag create delete
emails.tag create delete
settings.attribute create update delete
settings.email_templates create update delete
settings.group create update delete
settings.pipeline create update delete
settings.role create update delete
settings.source create update delete
settings.tag create update delete
settings.type create update delete
settings.user create update delete
settings.workflow create update delete
settings.web_forms create update delete
settings.webhook create update delete
settings.warehouse create update delete
settings.location create update delete
settings.marketing.events create update delete
settings.marketing.campaigns create update delete
marketing.campaign run
marketing.send create resend
marketing.suppression create delete
core.configuration save
user.account update update-password
user.token create delete
user.session create delete failed
data_transfer.imports create update delete validate started completed
files create delete
`
const bases = catalogue
  .trim()
  .split('\n')
  .flatMap((line) => {
    const [noun, ...verbs] = line.split(' ')
    return verbs.map((verb) => `${noun}.${verb}`)
  })
  .sort()

/** Events without a before- and after-event. */
const bareOnly = [
  'data_transfer.imports.started',
  'data_transfer.imports.completed',
  'user.session.failed',
  ...['lead.won', 'lead.lost', 'lead.reopened', 'email.bounced', 'activity.answered'],
  ...['lead', 'contacts.person', 'contacts.organization', 'product', 'quote', 'activity', 'email'].map(
    (noun) => `${noun}.restore`,
  ),
]
/** Events that are also fired without suffix, after the pair. */
const bareToo = ['user.account.update-password']
const names = [
  ...bases.filter((base) => !bareOnly.includes(base)).flatMap((base) => [`${base}.before`, `${base}.after`]),
  ...bareOnly,
  ...bareToo,
].sort()

describe('the catalogue of events', () => {
  it('is what the contract may declare, no more and no less', () => {
    expect([...eventBases].sort()).toEqual(bases)
  })

  it('has nothing that no operation declares', () => {
    const declared = new Set<string>(facts.flatMap(([, { events }]) => events))
    expect(bases.filter((base) => !declared.has(base))).toEqual([])
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
