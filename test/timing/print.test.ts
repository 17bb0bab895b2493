// The server responds while a quote is printed. test/resources/quotes.print.test.ts tests the
// document.
import { describe, expect, it } from 'vitest'
import { given } from '../support/given.ts'
import { useSharedServer } from '../support/using.ts'

const server = useSharedServer()

describe('printQuote', () => {
  it('leaves the server free for others while two hundred items are drawn', async () => {
    const make = given(server.admin)
    const product = await make.product()
    const item = { product_id: product.id, name: 'long '.repeat(51).trim(), price: 1 }
    const { id } = await make.quote({ items: Array.from({ length: 200 }, () => item) })
    let [longest, last] = [0, performance.now()]
    const look = (): void => {
      longest = Math.max(longest, performance.now() - last)
      last = performance.now()
    }
    const ticks = setInterval(look, 5)
    try {
      expect((await server.admin.get(`/quotes/${id}/print`)).status).toBe(200)
      look()
    } finally {
      clearInterval(ticks)
    }
    // Drawing on the event loop would block it for more than a second.
    expect(longest).toBeLessThan(700)
  })
})
