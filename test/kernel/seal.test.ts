// What is sealed comes out as it went in, reads as nothing to others, and cannot be changed unnoticed.
import { describe, expect, it } from 'vitest'
import { createSeal } from '../../src/kernel/seal.ts'

const seal = createSeal('a secret of at least thirty-two characters')

describe('seal', () => {
  it.each(['', 'secret', '"quotes" and ünïcödé 🔑', 'x'.repeat(100_000)])('opens what it closed', (text) => {
    expect(seal.open(seal.close(text))).toBe(text)
  })

  it('closes the same text differently each time, and shows none of it', () => {
    const [one, two] = [seal.close('hunter2hunter2'), seal.close('hunter2hunter2')]
    expect(one).not.toBe(two)
    expect(Buffer.from(one, 'base64').includes('hunter2')).toBe(false)
  })

  it('refuses what was changed, cut short, or closed with another secret', () => {
    const closed = seal.close('secret')
    const bytes = Buffer.from(closed, 'base64')
    for (const at of [0, 12, 28]) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(() => seal.open(changed.toString('base64'))).toThrow()
    }
    expect(() => seal.open(bytes.subarray(0, 20).toString('base64'))).toThrow()
    expect(() => createSeal('another secret of thirty-two characters!').open(closed)).toThrow()
  })
})
