// Every way to set, change or delete tags of a record fires the events of the links.
import { describe, expect, it } from 'vitest'
import { given, seeded, unique, validBody } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()
const { admin } = server
const make = given(admin)

/** The records with tags: their path, how to create one, and the noun of their links in events. */
const holders = [
  ['leads', '/leads', make.lead, 'leads.tag'],
  ['persons', '/contacts/persons', make.person, 'persons.tag'],
  ['organizations', '/contacts/organizations', make.organization, 'organizations.tag'],
  ['products', '/products', make.product, 'products.tag'],
  ['quotes', '/quotes', make.quote, 'quotes.tag'],
  ['warehouses', '/settings/warehouses', make.warehouse, 'warehouses.tag'],
] as const
const [withUpsert, withMassUpdate] = [holders.slice(0, 5), holders.slice(0, 2)]

const tags = async (): Promise<number[]> => [(await make.tag()).id, (await make.tag()).id]

describe.each(holders)('%s', (_name, path, create, noun) => {
  it('are tagged by a new name, which creates the tag', async () => {
    const { id } = await create()
    server.events()
    const { status, text } = await admin.post(`${path}/${id}/tags`, { name: `New ${unique()}` })
    expect(status, text).toBeLessThan(300)
    expect(server.events()).toEqual(expect.arrayContaining(['settings.tag.create.after', `${noun}.create.after`]))
  })

  it.each(['a deletion', 'a mass deletion'])('lose a tag by %s of the tag', async (way) => {
    const [tag = 0] = await tags()
    const { id } = await create({ tag_ids: [tag] })
    server.events()
    await (way === 'a deletion' ? admin.delete(`/tags/${tag}`) : admin.post('/tags/mass-delete', { ids: [tag] }))
    expect(server.seen.map(({ name, entityId }) => `${name} ${entityId}`)).toContain(`${noun}.delete.after ${id}`)
  })
})

describe.each(withUpsert)('an upsert of %s', (name, path, create, noun) => {
  const word = `${name[0]?.toUpperCase()}${name.slice(1, -1)}`
  it('sets and changes tags', async () => {
    const [one, other] = await tags()
    const known = await create()
    const address = `${path}/external/crm/${name}-${unique()}`
    const sent = validBody(`create${word}`, (entity) =>
      entity === 'persons' && 'person_id' in known ? Number(known.person_id) : seeded(entity),
    )
    server.events()
    const made = await admin.put(address, { ...sent, ...(name === 'quotes' && { items: [] }), tag_ids: [one] })
    expect(made.status, made.text).toBe(201)
    expect(server.events()).toContain(`${noun}.create.after`)
    expect((await admin.put(address, { tag_ids: [other] })).status).toBe(200)
    expect(server.events()).toEqual(expect.arrayContaining([`${noun}.create.after`, `${noun}.delete.after`]))
  })
})

describe.each(withMassUpdate)('a mass update of %s', (_name, path, create, noun) => {
  it('changes tags', async () => {
    const [one = 0, other] = await tags()
    const { id } = await create({ tag_ids: [one] })
    server.events()
    const { status, text } = await admin.post(`${path}/mass-update`, { ids: [id], changes: { tag_ids: [other] } })
    expect(status, text).toBe(200)
    expect(server.events()).toEqual(expect.arrayContaining([`${noun}.create.after`, `${noun}.delete.after`]))
  })
})
