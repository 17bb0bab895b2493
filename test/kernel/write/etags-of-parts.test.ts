// The ETag of a list of parts, such as the stock of a product, works in If-Match.
import { describe, expect, it } from 'vitest'
import { given } from '../../support/given.ts'
import { useServer } from '../../support/using.ts'

const server = useServer()
const make = given(server.admin)

const tagOf = async (path: string): Promise<string> => {
  const { status, headers } = await server.admin.get(path)
  expect(status).toBe(200)
  return String(headers.etag)
}
const ifMatch = (etag: string) => ({ headers: { 'if-match': etag } })

describe('the ETag of a list of parts', () => {
  it.each<[string, () => Promise<string>, string, object]>([
    ['tags', async () => `/leads/${(await make.lead()).id}`, '/tags', { name: 'VIP' }],
    ['product lines', async () => `/leads/${(await make.lead()).id}`, '/products', {}],
    ['files', async () => `/activities/${(await make.activity()).id}`, '/files', {}],
  ])('has the version of the record: %s', async (_, record, parts, body) => {
    const path = await record()
    const etag = await tagOf(path + parts)
    expect(etag).toMatch(/^"1-[\w-]{22}"$/)
    const entity = path.startsWith('/leads') ? { title: 'Changed' } : { title: 'Changed too' }
    expect((await server.admin.put(path, entity, ifMatch(etag))).status).toBe(200)
    expect((await server.admin.put(path, { title: 'Again' }, ifMatch(etag))).status).toBe(412)
    if (Object.keys(body).length === 0) return
    expect((await server.admin.post(path + parts, body, ifMatch(etag))).status).toBe(412)
    expect((await server.admin.post(path + parts, body, ifMatch(await tagOf(path + parts)))).status).toBe(200)
  })

  it('guards the stock of a product', async () => {
    const { id } = await make.product()
    const path = `/products/${id}/inventories`
    const etag = await tagOf(path)
    const sent = { inventories: [] }
    expect((await server.admin.put(path, sent, ifMatch(etag))).status).toBe(200)
    await server.admin.put(`/products/${id}`, { name: 'Changed' })
    expect((await server.admin.put(path, sent, ifMatch(etag))).status).toBe(412)
    expect((await server.admin.put(path, sent, ifMatch(`W/${await tagOf(path)}`))).status).toBe(200)
  })

  it('changes with the parts, so that no copy is stale', async () => {
    const lead = await make.lead()
    const tag = (await server.admin.post(`/leads/${lead.id}/tags`, { name: 'VIP' })).body.data[0]
    const path = `/leads/${lead.id}/tags`
    const etag = await tagOf(path)
    const again = () => server.admin.get(path, { headers: { 'if-none-match': etag } })
    expect((await again()).status).toBe(304)
    await server.admin.put(`/tags/${tag.id}`, { color: '#112233' })
    expect((await again()).status).toBe(200)
  })
})
