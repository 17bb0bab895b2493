// The PDF of a quote: every valid quote can be printed. The layout is not tested.
import { afterEach, describe, expect, it } from 'vitest'
import { createOffload, type Offload, OffloadError } from '../../src/kernel/runtime/offload.ts'
import { startServer, type TestServer } from '../support/app.ts'
import { given } from '../support/given.ts'
import { addUser } from '../support/viewers.ts'

let server: TestServer
afterEach(() => server.close())

const print = (id: number, method: 'GET' | 'HEAD' = 'GET') =>
  server.inject({
    method,
    url: `/api/admin/quotes/${id}/print`,
    headers: { authorization: `Bearer ${server.admin.token}` },
  })

const refusing = (reason: OffloadError['reason']): Offload => ({
  run: () => Promise.reject(new OffloadError(reason)),
  close: async () => undefined,
})

/** Returns the number of pages in the page tree of a PDF. */
const pagesOf = (bytes: Buffer): number => Number(/\/Type \/Pages\s*\/Count (\d+)/.exec(bytes.toString('latin1'))?.[1])

describe('printQuote', { timeout: 60_000 }, () => {
  it('sends a PDF named after subject and day, the same bytes each time', async () => {
    server = await startServer()
    const { id } = await given(server.admin).quote({ subject: '40 seats' })
    server.clock.set('2026-05-01T00:00:00.000Z')
    const { statusCode, headers, rawPayload } = await print(id)
    expect([statusCode, headers['content-type']]).toEqual([200, 'application/pdf'])
    expect(headers['content-disposition']).toBe('attachment; filename="Quote_40 seats_2026-03-01.pdf"')
    expect(rawPayload.subarray(0, 5).toString()).toBe('%PDF-')
    expect(headers['content-length']).toBe(String(rawPayload.length))
    expect(pagesOf(rawPayload)).toBe(1)
    expect((await print(id)).rawPayload.equals(rawPayload)).toBe(true)
    expect((await print(id, 'HEAD')).rawPayload.length).toBe(0)
  })

  it('needs no address of the person', async () => {
    server = await startServer()
    const make = given(server.admin)
    const person = (await server.admin.post('/contacts/persons', { name: 'Walk-in' })).body.data
    const { id } = await make.quote({ person_id: person.id })
    expect((await print(id)).statusCode).toBe(200)
  })

  it('holds long words, any script, huge amounts and two hundred items', async () => {
    server = await startServer({ config: { locale: 'ar-EG', currency: 'UAH', appName: 'x'.repeat(200) } })
    const make = given(server.admin)
    const [person, product] = [await make.person({ name: 'Ж'.repeat(100) }), await make.product()]
    const item = { product_id: product.id, name: '見積書😀'.repeat(20), price: 399_999_999.9999, tax_percent: 19 }
    const { id } = await make.quote({
      subject: '報/價"單\\'.repeat(36),
      person_id: person.id,
      billing_address: { address: 'a\n\nb'.repeat(60), city: 'Ł'.repeat(100), country: 'PL', postcode: '1' },
      items: Array.from({ length: 200 }, () => item),
    })
    const { statusCode, headers, rawPayload } = await print(id)
    expect(statusCode).toBe(200)
    expect(pagesOf(rawPayload)).toBeGreaterThan(5)
    const name = decodeURIComponent(/filename\*=UTF-8''(\S+)/.exec(String(headers['content-disposition']))?.[1] ?? '')
    expect(name).toMatch(/^Quote_報_價.*_2026-03-01\.pdf$/)
    expect(Buffer.byteLength(name)).toBeLessThan(255)
  }, 180_000)

  it('asks a user to wait who has too much waiting, and no other user', async () => {
    const offload = createOffload({ maxWaitingPerKey: 1, maxWaitMs: 60_000, maxRunMs: 60_000 })
    server = await startServer({ offload })
    const { id } = await given(server.admin).quote()
    const ann = await addUser(server, 'Ann', { permissions: ['quotes.print'] })
    const own = [print(id), print(id), print(id)]
    const other = ann.get(`/quotes/${id}/print`)
    const replies = await Promise.all(own)
    expect(replies.map(({ statusCode }) => statusCode).sort()).toEqual([200, 200, 429])
    const refused = replies.find(({ statusCode }) => statusCode === 429)
    expect([refused?.json().code, refused?.headers['retry-after']]).toEqual(['rate_limited', '5'])
    expect((await other).status).toBe(200)
  })

  it.each([
    ['timed_out', '30'],
    ['crashed', '30'],
    ['queue_full', '10'],
    ['waited_too_long', '10'],
    ['closed', '1'],
  ] as const)('answers 503 when its drawing %s', async (reason, seconds) => {
    server = await startServer({ offload: refusing(reason) })
    const { id } = await given(server.admin).quote()
    const { statusCode, headers, body } = await print(id)
    expect([statusCode, JSON.parse(body).code, headers['retry-after']]).toEqual([503, 'unavailable', seconds])
    expect(headers['content-disposition']).toBeUndefined()
  })

  it('needs a permission of its own', async () => {
    server = await startServer()
    const { id } = await given(server.admin).quote()
    const ann = await addUser(server, 'Ann', { permissions: ['quotes'] })
    expect((await ann.get(`/quotes/${id}/print`)).body.required).toBe('quotes.print')
    const bob = await addUser(server, 'Bob', { permissions: ['quotes.print'] })
    expect((await bob.get(`/quotes/${id}/print`)).status).toBe(200)
    expect((await bob.get('/quotes/99/print')).status).toBe(404)
  })
})
