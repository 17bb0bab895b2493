// Rules of products that the generated contract tests do not check.
import { describe, expect, it } from 'vitest'
import type { Schema } from '../../src/contract/types.ts'
import { given } from '../support/given.ts'
import { useNewServers } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useNewServers()
const { admin } = server
const make = given(admin)

const skus = async (query: string): Promise<string[]> => {
  const { body, status } = await admin.get(`/products?${query}`)
  expect(status).toBe(200)
  return body.data.map(({ sku }: Schema<'Product'>) => sku)
}

describe('listProducts', () => {
  it('compares and sorts prices as amounts, to the last of four decimals', async () => {
    await make.product({ sku: 'a', price: 9.9999 })
    await make.product({ sku: 'b', price: 10 })
    await make.product({ sku: 'c', price: 100.5 })
    expect(await skus('sort=-price')).toEqual(['c', 'b', 'a'])
    expect(await skus('price[lt]=10&sort=id')).toEqual(['a'])
    expect(await skus('price[gte]=9.9999&price[lte]=10&sort=id')).toEqual(['a', 'b'])
    expect(await skus('price[gt]=100.4999')).toEqual(['c'])
  })

  it('finds products by SKU and name in either case, by tag, and by words of the description', async () => {
    const tag = await make.tag()
    await make.product({ sku: 'GTX-1', name: 'GTX Basic', description: 'Entry level', tag_ids: [tag.id] })
    await make.product({ sku: 'MG-1', name: 'MG Special', description: null })
    expect(await skus('sku=gtx-1')).toEqual(['GTX-1'])
    expect(await skus('name[not]=gtx basic')).toEqual(['MG-1'])
    expect(await skus(`tag_id=${tag.id}`)).toEqual(['GTX-1'])
    expect(await skus('q=LEVEL gtx')).toEqual(['GTX-1'])
    expect(await skus('q=level mg')).toEqual([])
  })

  it('shows every product to every user', async () => {
    const ada = await addUser(server, 'Ada', { view: 'individual' })
    const { id } = await make.product()
    expect((await ada.get('/products')).body.meta.total).toBe(1)
    expect((await ada.get(`/products/${id}`)).status).toBe(200)
  })
})

describe('createProduct', () => {
  it('keeps amounts exactly and counts from zero when no quantity is given', async () => {
    const { status, body, headers } = await admin.post('/products', {
      sku: 'gtx-pro',
      name: 'GTX Pro',
      price: '4821.1',
    })
    expect(status).toBe(201)
    expect(body.data).toMatchObject({ sku: 'gtx-pro', price: 4821.1, quantity: 0, description: null, version: 1 })
    expect(headers.location).toBe(`http://localhost:80/api/admin/products/${body.data.id}`)
    expect(server.events()).toEqual(['product.create.before', 'product.create.after'])
    const largest = await make.product({ price: 99_999_999_999.9999, quantity: 0.0001 })
    expect([largest.price, largest.quantity]).toEqual([99_999_999_999.9999, 0.0001])
  })

  it('refuses a fifth decimal, a negative price and a missing name, and says so for each', async () => {
    const { status, body } = await admin.post('/products', { sku: 'x', price: -1, quantity: 1.00001 })
    expect([status, Object.keys(body.errors).sort()]).toEqual([422, ['name', 'price', 'quantity']])
    expect(server.events()).toEqual([])
  })

  it('refuses a SKU that differs only in case with 409 and names the other product', async () => {
    const { id } = await make.product({ sku: 'gtx-pro' })
    server.events()
    const { status, body } = await admin.post('/products', { sku: 'GTX-PRO', name: 'Other', price: 1 })
    expect(status).toBe(409)
    expect(body).toMatchObject({ code: 'unique_violation', conflicts: [{ entity_type: 'products', id, field: 'sku' }] })
    expect(server.events()).toEqual([])
  })
})

describe('updateProduct', () => {
  it('changes the price and nothing else, and says what changed', async () => {
    const { id, sku } = await make.product({ price: 10 })
    server.events()
    const { body } = await admin.put(`/products/${id}`, { price: 12.5 })
    expect(body.data).toMatchObject({ sku, price: 12.5, version: 2 })
    expect(server.seen.at(-1)).toMatchObject({ name: 'product.update.after', changed: ['price'] })
  })

  it('takes back what it has shown without a change', async () => {
    const product = await make.product({ description: 'Entry level', price: 0.1 })
    const { status, body } = await admin.put(`/products/${product.id}`, product)
    expect([status, body.data]).toEqual([200, product])
  })
})

describe('deleteProduct', () => {
  it('leaves product lines of leads with name, SKU and price, and activities about the product', async () => {
    const { id } = await make.product({ sku: 'gtx-pro', name: 'GTX Pro', price: 10 })
    const lead = await make.lead({ products: [{ product_id: id, quantity: 2 }] })
    const note = await make.activity({ type: 'note', comment: 'Sells well', product_ids: [id] })
    server.events()
    expect((await admin.delete(`/products/${id}`)).status).toBe(200)
    expect(server.events()).toEqual(['product.delete.before', 'product.delete.after'])
    const [line] = (await admin.get(`/leads/${lead.id}`)).body.data.products
    expect(line).toMatchObject({
      product_id: null,
      product: null,
      sku: 'gtx-pro',
      name: 'GTX Pro',
      price: 10,
      amount: 20,
    })
    expect((await admin.get(`/activities/${note.id}`)).body.data.product_ids).toEqual([])
  })
})

describe('massDeleteProducts', () => {
  it('deletes each product with its own events and reports the ones that are not there', async () => {
    const first = await make.product()
    const second = await make.product()
    server.events()
    const { body } = await admin.post('/products/mass-delete', { ids: [second.id, 99, first.id] })
    expect(body.data).toMatchObject({ processed: [second.id, first.id], failed: [{ id: 99, status: 404 }] })
    expect(server.events()).toEqual([
      'product.delete.before',
      'product.delete.after',
      'product.delete.before',
      'product.delete.after',
    ])
  })
})

describe('attachProductTag', () => {
  it('attaches a tag once, by id or by name, and says nothing about the second time', async () => {
    const { id } = await make.product()
    const tag = await make.tag({ name: 'New' })
    server.events()
    const first = await admin.post(`/products/${id}/tags`, { tag_id: tag.id })
    expect([first.status, first.body.data]).toEqual([200, [{ id: tag.id, name: 'New', color: tag.color }]])
    expect(server.events()).toEqual(['products.tag.create.before', 'products.tag.create.after'])
    const again = await admin.post(`/products/${id}/tags`, { name: 'nEW' })
    expect([again.status, again.body.data.length]).toEqual([200, 1])
    expect(server.events()).toEqual([])
    expect((await admin.get(`/products/${id}`)).body.data.version).toBe(2)
  })
})

describe('detachProductTag', () => {
  it('detaches the tag and keeps it, and answers 404 when it is not attached', async () => {
    const tag = await make.tag()
    const { id } = await make.product({ tag_ids: [tag.id] })
    server.events()
    expect((await admin.delete(`/products/${id}/tags/${tag.id}`)).body).toEqual({ message: 'Tag detached.' })
    expect(server.events()).toEqual(['products.tag.delete.before', 'products.tag.delete.after'])
    expect((await admin.delete(`/products/${id}/tags/${tag.id}`)).status).toBe(404)
    expect((await admin.get(`/tags/${tag.id}`)).status).toBe(200)
    expect((await admin.get(`/products/${id}/tags`)).body.data).toEqual([])
  })
})
