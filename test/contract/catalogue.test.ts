// The event catalogue (DOMAIN 17.2) against the product: the contract knows each name of it, some
// operation declares it, and the operations really fire it, before and after.
import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { eventBases } from '../../codegen/events.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { listableTypes } from '../../src/resources/events/event-visibility.ts'
import { facts } from '../support/schema.ts'
import { flows } from './catalogue.flows.ts'
import { change, startWorld, type World } from './support.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })

/** The catalogue as specified: a noun, and the things that happen to it. */
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
activity create update delete restore
activities.file create delete
email create update delete restore
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

/** Fired once, without a pair. */
const bareOnly = [
  'data_transfer.imports.started',
  'data_transfer.imports.completed',
  'user.session.failed',
  ...['lead.won', 'lead.lost', 'lead.reopened'],
  ...['lead', 'contacts.person', 'contacts.organization', 'product', 'quote', 'activity', 'email'].map(
    (noun) => `${noun}.restore`,
  ),
]
/**
 * Chapter 0 of the specification adds to its table the sessions, the outcomes of leads and
 * restores; 20.2 adds resending a mail that may have been sent.
 */
const amended = [
  'marketing.send.resend',
  'user.session.create',
  'user.session.delete',
  ...bareOnly.filter((name) => !name.startsWith('data_transfer.')),
]
/** Fired again after the pair. */
const bareToo = ['user.account.update-password']
const names = [
  ...bases.filter((base) => !bareOnly.includes(base)).flatMap((base) => [`${base}.before`, `${base}.after`]),
  ...bareOnly,
  ...bareToo,
].sort()

/** The specification, when it lies beside the tree. */
const specification = new URL('../../../shared/DOMAIN.md', import.meta.url)

/**
 * The names of the table with its short forms expanded: `.update` after `lead.create`,
 * `persons.tag.*` for verbs in brackets.
 */
function written(text: string): string[] {
  const table = text.slice(text.indexOf('### 17.2 '), text.indexOf('### 17.3 '))
  const rows = table.split('\n').filter((line) => /^\|.*`/.test(line))
  return rows.flatMap((row) => {
    const words = [...row.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word).filter((word) => /^[\w.*-]+$/.test(word))
    const verbs = words.filter((word) => /^(create|update|delete)$/.test(word))
    let noun = ''
    return words.flatMap((word) => {
      if (verbs.includes(word) || word === '.before' || word === '.after') return []
      if (word.startsWith('.')) return [noun + word]
      noun = word.slice(0, word.lastIndexOf('.'))
      // Another word in a cell, such as the name of a field.
      if (!word.includes('.')) return []
      return word.endsWith('.*') ? verbs.map((verb) => `${noun}.${verb}`) : [word]
    })
  })
}

describe('the catalogue of events', () => {
  it('is what the contract may declare, no more and no less', () => {
    expect([...eventBases].sort()).toEqual(bases)
  })

  it('is the table of the specification', () => {
    // Without the specification beside the tree, the list above is the reference.
    const found = existsSync(specification)
      ? [...new Set([...written(readFileSync(specification, 'utf8')), ...amended])].sort()
      : bases
    expect(found).toEqual(bases)
  })

  it('has nothing that no operation declares', () => {
    const declared = new Set<string>(facts.flatMap(([, { events }]) => events))
    expect(bases.filter((base) => !declared.has(base))).toEqual([])
  })
})

describe('what operations fire', () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld()
  })
  afterAll(() => world.server.close())

  it('is the whole catalogue, before and after, and nothing else', async () => {
    const fired = new Set<string>()
    const types = new Set<string>()
    const run = async (work: () => Promise<unknown>): Promise<void> => {
      await world.server.rewind()
      await work()
      await world.server.work()
      for (const { entityType } of world.server.seen) types.add(entityType)
      for (const name of world.server.events()) fired.add(name)
    }
    const isMissing = (base: string): boolean => names.some((name) => name.startsWith(base) && !fired.has(name))
    for (const [id, { events }] of facts) if (events.some(isMissing)) await run(() => change(world, id))
    for (const flow of flows) await run(() => flow(world))
    await world.server.rewind()
    expect(names.filter((name) => !fired.has(name))).toEqual([])
    expect([...fired].filter((name) => !names.includes(name))).toEqual([])
    // A caller who sees everything gets every event: the feed knows every type of record.
    const told = listableTypes(systemContext(world.server.app.services, 'api'))
    expect([...types].filter((type) => !told.includes(type))).toEqual([])
  })
})
