// The server responds while a large mail is parsed. test/mail/parse.apart.test.ts tests the result.
import { describe, expect, it } from 'vitest'
import { readMailSource } from '../../src/mail/parse/fields.ts'
import { parseMail } from '../../src/mail/parse/parse.ts'
import { lines } from '../mail/given.ts'

const long = (bytes: number): Buffer =>
  lines('From: Ada <ada@example.com>', '', `${'x'.repeat(98)}\r\n`.repeat(bytes / 100))

/** Returns the longest gap of a 10 ms timer during the work, as a share of the whole time. */
async function silence(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  let last = began
  let longest = 0
  const heard = (): void => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  }
  const timer = setInterval(heard, 10)
  await work()
  clearInterval(timer)
  heard()
  return longest / (performance.now() - began)
}

describe('a large mail', () => {
  it('does not hold up the server', async () => {
    const bytes = long(20 * 1024 * 1024)
    const share = await silence(async () => {
      const mail = await parseMail(bytes)
      expect(mail.text).toHaveLength(2 * 1024 * 1024)
    })
    // Parsing on the same thread would block the timer for the whole time.
    expect(share).toBeLessThan(0.5)
    expect(await silence(() => readMailSource({ raw: bytes.subarray(0, 2_000_000), fields: {} }))).toBeGreaterThan(0.5)
  })
})
