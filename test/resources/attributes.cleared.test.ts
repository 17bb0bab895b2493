// A deletion clears the lookups that name the record, with an event for each changed record: every
// type of record that a lookup may name, in attributes of every type of record.
import { beforeAll, describe, expect, it } from 'vitest'
import { given, unique } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()
const { admin } = server
const make = given(admin)

type Make = () => Promise<{ id: number }>

/** How to create a record that a lookup may name, and how to delete it alone or with others. */
const targets: Record<string, { create: Make; path: string; mass?: string }> = {
  leads: { create: () => make.lead(), path: '/leads', mass: '/leads/mass-delete' },
  lead_sources: { create: () => make.source(), path: '/sources' },
  lead_types: { create: () => make.type(), path: '/types' },
  lead_pipelines: { create: () => make.pipeline(), path: '/pipelines' },
  users: { create: () => make.user(), path: '/settings/users', mass: '/settings/users/mass-delete' },
  organizations: {
    create: () => make.organization(),
    path: '/contacts/organizations',
    mass: '/contacts/organizations/mass-delete',
  },
  persons: { create: () => make.person(), path: '/contacts/persons', mass: '/contacts/persons/mass-delete' },
  warehouses: { create: () => make.warehouse(), path: '/settings/warehouses' },
  locations: {
    create: async () => {
      const warehouse = await make.warehouse()
      const sent = { name: `Shelf ${unique()}`, warehouse_id: warehouse.id }
      return (await admin.post('/settings/locations', sent)).body.data
    },
    path: '/settings/locations',
  },
  products: { create: () => make.product(), path: '/products', mass: '/products/mass-delete' },
  quotes: { create: () => make.quote(), path: '/quotes', mass: '/quotes/mass-delete' },
}

/** The records with attributes, and the event of their update. */
const holders = {
  leads: { create: (attributes: object) => make.lead(attributes), event: 'lead.update.after' },
  persons: { create: (attributes: object) => make.person(attributes), event: 'contacts.person.update.after' },
  organizations: {
    create: (attributes: object) => make.organization(attributes),
    event: 'contacts.organization.update.after',
  },
  products: { create: (attributes: object) => make.product(attributes), event: 'product.update.after' },
  quotes: { create: (attributes: object) => make.quote(attributes), event: 'quote.update.after' },
  warehouses: { create: (attributes: object) => make.warehouse(attributes), event: 'settings.warehouse.update.after' },
} as const

/** Returns the id of a new attribute whose default is the record. */
async function defaultsTo(lookup_type: string, default_value: number): Promise<number> {
  const code = `default_${lookup_type}_${unique()}`
  const { body, text } = await admin.post('/settings/attributes', {
    ...{ code, name: code, entity_type: 'leads', type: 'lookup', lookup_type, default_value },
  })
  if (!body.data) throw new Error(text)
  return body.data.id
}

describe.each(Object.entries(targets))('a lookup of %s', (lookup_type, { create, path, mass }) => {
  const codes: Record<string, string> = {}
  beforeAll(async () => {
    for (const entity_type of Object.keys(holders)) {
      const code = `names_${lookup_type}_${unique()}`
      const body = { code, name: code, entity_type, type: 'lookup', lookup_type }
      const { status, text } = await admin.post('/settings/attributes', body)
      expect(status, text).toBe(201)
      codes[entity_type] = code
    }
  })

  type Remove = (id: number) => ReturnType<typeof admin.delete>
  const ways: [string, Remove][] = [['a deletion', (id) => admin.delete(`${path}/${id}`)]]
  if (mass) ways.push(['a mass deletion', (id) => admin.post(mass, { ids: [id] })])
  it.each(ways)('is cleared by %s, with an event for each record', async (_name, remove) => {
    const { id } = await create()
    const named: number[] = []
    for (const [entity, holder] of Object.entries(holders))
      named.push((await holder.create({ custom_attributes: { [codes[entity] ?? '']: id } })).id)
    const byDefault = await defaultsTo(lookup_type, id)
    server.events()
    const { status, text } = await remove(id)
    expect(status, text).toBeLessThan(300)
    const fired = server.seen.map(({ name, entityId }) => `${name} ${entityId}`)
    const expected = [
      `settings.attribute.update.after ${byDefault}`,
      ...Object.values(holders).map(({ event }, index) => `${event} ${named[index]}`),
    ]
    expect(fired).toEqual(expect.arrayContaining(expected))
  })
})
