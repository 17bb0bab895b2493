// The numbers of quotes: each year has its own series, without a gap and without a double, also
// with many writers, refusals, dry runs and failed transactions.
import { afterEach, describe, expect, it } from 'vitest'
import { type Emitter, Veto } from '../../src/kernel/write/events.ts'
import { type Reply, startServer, type TestServer } from '../support/app.ts'
import { isPostgres } from '../support/engine.ts'
import { given } from '../support/given.ts'
import { installedFolder } from '../support/installed.ts'

let server: TestServer
let closing: (() => Promise<void>)[] = []
afterEach(async () => {
  await server.close()
  for (const close of closing) await close()
  closing = []
})

const items = [{ name: 'Consulting', price: 100, tax_percent: 20 }]

/** Returns the numbers of all quotes that have one, in their order. */
async function numbers(): Promise<string[]> {
  const found: string[] = []
  for (let page = 1; ; page++) {
    const { body } = await server.admin.get(`/quotes?status[not]=draft&sort=number&per_page=100&page=${page}`)
    found.push(...body.data.map(({ number }: { number: string }) => number))
    if (body.data.length < 100) return found
  }
}

const series = (count: number, year = 2026): string[] =>
  Array.from({ length: count }, (_, index) => `Q-${year}-${String(index + 1).padStart(4, '0')}`)

/** Repeats a request as long as the server is too busy for it, as clients do. */
async function patiently(ask: () => Promise<Reply>): Promise<any> {
  for (;;) {
    const { status, body, text } = await ask()
    if (status < 300) return body
    if (status !== 503) throw new Error(text)
  }
}

/** A listener that refuses every quote with this subject. */
const refusing = (events: Emitter): void => {
  events.on('quote.update.before', ({ input }) => {
    if ((input as { subject?: string }).subject === 'Refused') throw new Veto('No.')
  })
}

describe('the series of numbers', { timeout: 120_000 }, () => {
  it('has no gap and no double after two hundred quotes by sixteen writers, some of whom fail', async () => {
    const folder = isPostgres ? undefined : await installedFolder()
    if (folder) closing.push(folder.close)
    server = await startServer({
      extensions: [refusing],
      ...(folder && { config: folder.config, open: () => folder.store }),
    })
    const { admin } = server
    const person = await given(admin).person()
    const address = { address: '12 Analytical Way', city: 'London', country: 'GB', postcode: 'W1 2AB' }
    const body = { subject: 'Many', person_id: person.id, items, expiry_date: '2026-12-31', billing_address: address }
    const refused = await given(admin).quote({ person_id: person.id, items })
    const waiting = [...Array(200).keys()]
    const writer = async (): Promise<void> => {
      for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
        const headers = { 'Idempotency-Key': `quote-${each}` }
        const status = each % 2 === 0 ? 'sent' : 'draft'
        const { data } = await patiently(() => admin.post('/quotes', { ...body, status }, { headers }))
        const sent = await patiently(() => admin.put(`/quotes/${data.id}`, { status: 'sent' }))
        expect(sent.data.number).toMatch(/^Q-2026-\d{4}$/)
        const path = `/quotes/${refused.id}`
        const attempts = [
          () => admin.put(path, { status: 'sent', subject: 'Refused' }),
          () => admin.put(path, { status: 'sent' }, { headers: { 'Accord-Dry-Run': 'true' } }),
          () => admin.put(path, { status: 'sent', expiry_date: '2020-01-01' }),
          () => admin.put(path, { status: 'sent' }, { headers: { 'If-Match': '"99"' } }),
        ]
        await attempts[each % attempts.length]?.()
      }
    }
    await Promise.all(Array.from({ length: 16 }, writer))
    expect(await numbers()).toEqual(series(200))
    expect((await admin.get(`/quotes/${refused.id}`)).body.data).toMatchObject({ status: 'draft', number: null })
  })

  it('begins anew at the midnight of the time zone of the installation', async () => {
    server = await startServer({ config: { timezone: 'America/New_York' } })
    const make = given(server.admin)
    const send = async () => (await make.quote({ items, status: 'sent' })).number
    server.clock.set('2027-01-01T04:59:59.000Z')
    expect([await send(), await send()]).toEqual(series(2))
    server.clock.set('2027-01-01T05:00:00.000Z')
    expect(await send()).toBe('Q-2027-0001')
    // A clock that was set back goes on with the series of its year.
    server.clock.set('2027-01-01T04:00:00.000Z')
    expect(await send()).toBe('Q-2026-0003')
  })

  it('keeps the number of a deleted quote, which comes back with the quote', async () => {
    server = await startServer()
    const { admin } = server
    const make = given(admin)
    const first = await make.quote({ items, status: 'sent' })
    await admin.delete(`/quotes/${first.id}`)
    expect((await make.quote({ items, status: 'sent' })).number).toBe('Q-2026-0002')
    const { body } = await admin.post(`/quotes/${first.id}/restore`)
    expect(body.data).toMatchObject({ number: 'Q-2026-0001', status: 'sent', customer: first.customer })
  })

  it('has the form of the configuration, from the next quote on', async () => {
    server = await startServer()
    const { admin } = server
    const make = given(admin)
    const set = (format: string | null) =>
      admin.put('/settings/configuration', { values: { 'quotes.number.format': format } })
    const send = async () => (await make.quote({ items, status: 'sent' })).number
    expect((await set('AN {year}/{number} ü')).status).toBe(200)
    expect(await send()).toBe('AN 2026/1 ü')
    expect((await set('{year}-{number:6}')).status).toBe(200)
    expect(await send()).toBe('2026-000002')
    expect((await set(null)).status).toBe(200)
    expect(await send()).toBe('Q-2026-0003')
    for (const wrong of [
      '{number}',
      '{year}',
      '{year}{number}',
      '{number}-{year}',
      'Q1-{year}-{number}',
      '{year}-{number:12}',
    ])
      expect((await set(wrong)).status, wrong).toBe(422)
  })
})
