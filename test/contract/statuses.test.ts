// The contract lists every status that an operation can return because of its body, headers or key.
// The test also causes these statuses where possible.
import { describe, expect, it } from 'vitest'
import { onlyReads } from '../../src/contract/allowed-methods.ts'
import { bodySchema, fact, facts, parametersOf, takesHeader } from '../support/schema.ts'
import { changesNothing, request, send } from './support.ts'
import { useWorld } from './use-world.ts'

const world = useWorld()

const ids = facts.filter(([, each]) => each.servedBy === 'handler').map(([id]) => id)
const isShown = (id: string): boolean => fact(id).method === 'get' && fact(id).produces.includes('application/json')
const records = ids.filter((id) => isShown(id) && !fact(id).public)

describe.each(ids)('%s', (id) => {
  it('lists what its headers, path and body can lead to', () => {
    const { method, statuses } = fact(id)
    const mustList: [status: number, because: boolean][] = [
      [304, method === 'get' && takesHeader(id, 'If-None-Match')],
      [400, true],
      [401, !fact(id).public],
      [404, parametersOf(id, 'path').length > 0],
      [409, takesHeader(id, 'Idempotency-Key')],
      [412, takesHeader(id, 'If-Match')],
      [413, method !== 'get'],
      [415, method !== 'get'],
      [422, true],
    ]
    const missing = mustList.filter(([status, because]) => because && !statuses.includes(status))
    expect(missing.map(([status]) => status)).toEqual([])
  })
})

describe.each(records)('%s', (id) => {
  it('takes If-None-Match, and answers 304 to the ETag it gave', async () => {
    expect(takesHeader(id, 'If-None-Match')).toBe(true)
    const wanted = request(world, id)
    const { headers } = await send(world, id, wanted)
    const again = await send(world, id, { ...wanted, headers: { 'if-none-match': String(headers.etag) } })
    expect([again.status, again.text]).toEqual([304, ''])
  })
})

describe.each(ids.filter((id) => fact(id).method === 'delete'))('%s', (id) => {
  it('takes no body', async () => {
    const findings = await changesNothing(world, async () => {
      const { status } = await send(world, id, { ...request(world, id), body: {} })
      expect.soft(status).toBe(415)
      const large = await send(world, id, { ...request(world, id), body: { a: 'x'.repeat(1024 * 1024) } })
      expect.soft(large.status).toBe(413)
    })
    expect(findings).toEqual([])
  })
})

describe.each(ids.filter((id) => takesHeader(id, 'If-Match')))('%s', (id) => {
  it('answers 412 to a version the record has not, and changes nothing', async () => {
    const findings = await changesNothing(world, async () => {
      const { status, body } = await send(world, id, { ...request(world, id), headers: { 'if-match': '"999"' } })
      expect.soft([status, body?.code]).toEqual([412, 'version_mismatch'])
    })
    expect(findings).toEqual([])
  })
})

describe.each(ids.filter((id) => takesHeader(id, 'Idempotency-Key')))('%s', (id) => {
  it('answers 409 while the first request under a key is not finished', async () => {
    await world.server.rewind()
    const wanted = { ...request(world, id), headers: { 'idempotency-key': 'the same' } }
    const answers = await Promise.all([send(world, id, wanted), send(world, id, wanted)])
    const statuses = answers.map(({ status }) => status)
    expect(statuses).toContain(fact(id).status)
    await world.server.rewind()
  })
})

describe('POST', () => {
  it('takes an Idempotency-Key wherever there is a token to keep it under', () => {
    const posts = ids.filter((id) => fact(id).method === 'post' && !fact(id).public && !onlyReads(fact(id)))
    expect(posts.filter((id) => !takesHeader(id, 'Idempotency-Key'))).toEqual([])
  })

  it('and every other write can be tried, but those of the public', () => {
    const writes = ids.filter((id) => fact(id).method !== 'get')
    const changes = writes.filter((id) => fact(id).events.length > 0 && !fact(id).public)
    expect(changes.filter((id) => !takesHeader(id, 'Accord-Dry-Run'))).toEqual([])
    expect(writes.filter((id) => bodySchema(id) !== undefined && fact(id).consumes.length === 0)).toEqual([])
  })
})

describe.each(ids.filter((id) => 'cursor' in fact(id).query))('%s', (id) => {
  it('can turn every filter for equality round', () => {
    const names = Object.keys(fact(id).query)
    const others = ['page', 'per_page', 'count', 'cursor', 'sort', 'include', 'fields', 'q', 'view']
    // Object parameters are custom attributes, which support only equality.
    const isObject = (name: string) => fact(id).query[name] === 'object'
    const filters = names.filter((name) => !name.includes('[') && !others.includes(name) && !isObject(name))
    expect(filters.filter((name) => !names.includes(`${name}[not]`))).toEqual([])
  })
})

describe('a sum of amounts', () => {
  it('may be more than any one amount', async () => {
    await world.server.rewind()
    const { admin } = world.server
    const most = 99_999_999_999.99
    const line = async (sku: string) => (await admin.post('/products', { sku, name: sku, price: most })).body.data.id
    const products = [{ product_id: await line('most-1') }, { product_id: await line('most-2') }]
    for (const name of ['Sum One', 'Sum Two']) {
      const person = { name, emails: [{ value: `${name.replace(' ', '')}@example.com` }] }
      const { status, body } = await admin.post('/leads', { title: name, lead_value: most, person, products })
      expect([status, body.data.products_amount]).toEqual([201, 2 * most])
    }
    const [{ stages }] = (await admin.get('/pipelines?is_default=true')).body.data
    expect(Math.max(...stages.map(({ lead_value }: { lead_value: number }) => lead_value))).toBeGreaterThan(
      2 * most - 1,
    )
    await world.server.rewind()
  })
})
