// A discontinued product stays in old lines and items, and cannot be named by new ones.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useServer } from '../support/using.ts'

const server = useServer()
const { admin } = server
const make = given(admin)

describe('a discontinued product', () => {
  it('is refused in new lines and items, stays in old ones, and is found by a filter', async () => {
    const [old, next] = [await make.product({ price: 5 }), await make.product({ price: 5 })]
    const person = await make.person()
    const lead = await make.lead({ products: [{ product_id: old.id }] })
    const quote = await make.quote({ person_id: person.id, items: [{ product_id: old.id, quantity: 1 }] })
    const { body } = await admin.put(`/products/${old.id}`, { discontinued: true })
    expect(body.data.discontinued).toBe(true)
    const found = async (query: string) =>
      (await admin.get(`/products?${query}`)).body.data.map(({ id }: { id: number }) => id)
    expect([await found('discontinued=true'), await found('discontinued=false')]).toEqual([[old.id], [next.id]])

    const sentence = [`The product ${old.name} is discontinued.`]
    const line = await admin.post(`/leads/${(await make.lead()).id}/products`, { product_id: old.id })
    expect([line.status, line.body.errors]).toEqual([422, { product_id: sentence }])
    const item = await admin.put(`/quotes/${quote.id}`, {
      items: [
        ...quote.items.map(({ id }: { id: number }) => ({ id })),
        { product_id: next.id },
        { product_id: old.id },
      ],
    })
    expect([item.status, item.body.errors]).toEqual([422, { 'items.2.product_id': sentence }])

    const kept = [{ id: lead.products[0]?.id, product_id: old.id, quantity: 3 }]
    expect((await admin.put(`/leads/${lead.id}`, { products: kept })).body.data.products[0].quantity).toBe(3)
    const items = [{ id: quote.items[0]?.id, product_id: old.id, quantity: 4 }]
    expect((await admin.put(`/quotes/${quote.id}`, { items })).body.data.items[0].quantity).toBe(4)
  })
})
