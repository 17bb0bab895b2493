// Custom attributes take the name of an option or of a record in the place of its id.
import { beforeAll, describe, expect, it } from 'vitest'
import { newName } from '../support/names.ts'
import { useSharedServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

let size: { id: number; name: string }[]
const server = useSharedServer()
beforeAll(async () => {
  const define = async (code: string, type: string, more: object = {}) =>
    (await server.admin.post('/settings/attributes', { entity_type: 'leads', code, name: code, type, ...more })).body
      .data
  const options = [{ name: 'Small' }, { name: 'Large' }, { name: 'Größe XL' }]
  size = (await define('size', 'select', { options })).options
  await define('sizes', 'multiselect', { options })
  await define('partner', 'lookup', { lookup_type: 'organizations' })
  await define('engineer', 'lookup', { lookup_type: 'users' })
  await define('part', 'lookup', { lookup_type: 'products' })
  await define('related', 'lookup', { lookup_type: 'leads' })
})

const post = (custom_attributes: object, caller = server.admin) =>
  caller.post('/leads', { title: 'Named', lead_value: 1, custom_attributes })
const errorsOf = async (custom_attributes: object) => {
  const { status, body } = await post(custom_attributes)
  expect(status).toBe(422)
  return body.errors
}

describe('a custom attribute', () => {
  it('takes names of options and records', async () => {
    const partner = (await server.admin.post('/contacts/organizations', { name: newName('Café') })).body.data
    const part = (await server.admin.post('/products', { name: newName('Bolt'), sku: newName('B'), price: 1 })).body
      .data
    const { status, text, body } = await post({
      size: { name: 'large' },
      sizes: [{ name: 'SMALL' }, { name: 'grosse xl' }],
      partner: { name: partner.name.toUpperCase() },
      engineer: { email: 'admin@example.com' },
      part: { sku: part.sku },
    })
    expect(status, text).toBe(201)
    const { sizes, ...one } = body.data.custom_attributes
    expect(one).toMatchObject({ size: size[1]?.id, partner: partner.id, engineer: 1, part: part.id })
    expect(sizes).toHaveLength(2)
    const { id } = body.data
    const changed = await server.admin.put(`/leads/${id}`, { custom_attributes: { size: { name: 'Small' } } })
    expect(changed.body.data.custom_attributes.size, changed.text).toBe(size[0]?.id)
  })

  it('names the nearest option, and refuses what names nothing', async () => {
    expect(await errorsOf({ size: { name: 'Lrage' }, sizes: [size[0]?.id, { name: 'None' }] })).toMatchObject({
      'custom_attributes.size': ['No option of size has the name Lrage. Did you mean `Large`?'],
      'custom_attributes.sizes.1': ['No option of sizes has the name None. Known are Small, Large, Größe XL.'],
    })
    expect(await errorsOf({ engineer: { email: 'gone@example.com' } })).toEqual({
      'custom_attributes.engineer': ['No user has the e-mail address gone@example.com.'],
    })
    for (const value of [{ id: 1 }, {}, { name: 3 }, { name: 'Small', id: 1 }, { __proto__: null, constructor: 'x' }])
      expect(Object.keys(await errorsOf({ size: value }))).toEqual(['custom_attributes.size'])
    // Leads have no unique name.
    expect(Object.keys(await errorsOf({ related: { name: 'Named' } }))).toEqual(['custom_attributes.related'])
  })

  it('finds only what the caller may list', async () => {
    const hidden = (await server.admin.post('/contacts/organizations', { name: newName('Hidden'), user_id: 1 })).body
      .data
    const seller = await addUser(server, newName('seller'), { view: 'individual' })
    const refused = await post({ partner: { name: hidden.name } }, seller)
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      { 'custom_attributes.partner': [`No organization has the name ${hidden.name}.`] },
    ])
    const token = await server.as(1, ['leads:*'])
    const forbidden = await post({ partner: { name: hidden.name } }, token)
    expect([forbidden.status, forbidden.body.required]).toEqual([403, 'organizations:read'])
  })

  it('shows in the contract which objects it takes', async () => {
    const { components } = (await server.admin.get('/openapi.json')).body
    const { size: one, sizes, engineer, related } = components.schemas.LeadAttributesInput.properties
    expect(one.anyOf.at(1)).toEqual({ $ref: '#/components/schemas/ByName' })
    expect(sizes.items.anyOf.at(1)).toEqual({ $ref: '#/components/schemas/ByName' })
    expect(engineer.anyOf.slice(1, 4).map(({ $ref }: { $ref: string }) => $ref.split('/').at(-1))).toEqual([
      'ByExternalId',
      'ByEmail',
      'ByName',
    ])
    expect(related.anyOf.at(1)).toEqual({ $ref: '#/components/schemas/ByExternalId' })
  })
})
