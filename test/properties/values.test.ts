// Values are read back as written: amounts exactly, texts in their stored form, and records as in
// the first reply.
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'
import { fill, lists, pathOf, read } from './data.ts'

const server = useSharedServer()
beforeAll(async () => {
  await fill(server, 6)
})

const amount = fc.integer({ min: 0, max: 999_999_999_999_999 }).map((scaled) => scaled / 10_000)

describe('amounts', () => {
  it('of leads and products come back exactly, sent as a number or as a text', async () => {
    const make = given(server.admin)
    const [lead, product] = [await make.lead(), await make.product()]
    await fc.assert(
      fc.asyncProperty(amount, fc.boolean(), async (value, asText) => {
        const sent = asText ? value.toFixed(4) : value
        const changed = await server.admin.put(`/leads/${lead.id}`, { lead_value: sent })
        expect([changed.status, changed.body.data?.lead_value]).toEqual([200, value])
        expect(
          (await server.admin.put(`/products/${product.id}`, { price: sent, quantity: sent })).body.data,
        ).toMatchObject({ price: value, quantity: value })
        const found = await server.admin.get(
          `/leads?lead_value[gte]=${value}&lead_value[lte]=${value}&fields=id&id=${lead.id}`,
        )
        expect(found.body.data).toEqual([{ id: lead.id }])
      }),
      {
        seed: 6,
        numRuns: 40,
        examples: [
          [99_999_999_999.9999, true],
          [0.0001, false],
          [0, true],
        ],
      },
    )
  })

  it('of product lines are rounded once to the decimals of the currency, and add up', async () => {
    const make = given(server.admin)
    const small = fc.integer({ min: 0, max: 99_999_999 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(small, fc.integer({ min: 1, max: 999 })), { minLength: 1, maxLength: 4 }),
        async (lines) => {
          const products = await Promise.all(lines.map(() => make.product()))
          const body = lines.map(([price, quantity], index) => ({
            product_id: products[index]?.id ?? 0,
            price: price / 10_000,
            quantity,
          }))
          const lead = await make.lead({ products: body })
          const cents = lines.map(([price, quantity]) => (BigInt(price) * BigInt(quantity) + 50n) / 100n)
          expect(lead.products_amount).toBe(Number(cents.reduce((sum, each) => sum + each, 0n)) / 100)
        },
      ),
      { seed: 7, numRuns: 12 },
    )
  })
})

describe('texts', () => {
  it('come back trimmed and composed, and otherwise as they were sent', async () => {
    const tag = await given(server.admin).tag()
    const text = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 20 })
      .filter((each) => each.trim() !== '' && !/\p{Cc}/u.test(each))
    await fc.assert(
      fc.asyncProperty(text, async (name) => {
        const { status, body } = await server.admin.put(`/tags/${tag.id}`, { name })
        if (status === 409) return
        const kept = name.trim().normalize('NFC')
        expect([status, body.data?.name]).toEqual([kept.length > 50 ? 422 : 200, kept.length > 50 ? undefined : kept])
      }),
      { seed: 8, numRuns: 60 },
    )
  })
})

describe.each(lists)('%s', (list) => {
  it('can each be put back as they are shown, and stay as they are', async () => {
    const { data } = await read(server.admin, `${pathOf(list)}?per_page=20`)
    for (const record of data) {
      const { status, body, text } = await server.admin.put(`${pathOf(list)}/${record.id}`, record)
      expect(status === 200 ? body.data : text).toEqual(record)
    }
  })
})
