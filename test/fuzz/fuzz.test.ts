// The daily share of the fuzzer: a fixed seed, so that a failure is one of the change at hand; the long run is `npm run test:fuzz`.
import { describe, expect, it } from 'vitest'
import { fuzz } from './fuzz.ts'
import { randomOf } from './random.ts'

describe('whatever is sent', () => {
  it('is answered as the contract says, and leaves everything whole', async () => {
    const findings: string[] = []
    const { byStatus } = await fuzz({ seed: 5, requests: 1_500, onFinding: (text) => findings.push(text) })
    expect(findings).toEqual([])
    // It came further than to refusals.
    expect(byStatus.get(200)).toBeGreaterThan(100)
    expect(byStatus.get(201)).toBeGreaterThan(20)
    expect([...byStatus.keys()].filter((status) => status >= 500)).toEqual([])
  }, 180_000)
})

describe('the fuzzer', () => {
  it('draws the same numbers for the same seed and index, and others for others', () => {
    const draw = (seed: number, index: number): number[] => {
      const random = randomOf(seed, index)
      return Array.from({ length: 20 }, () => random.whole(0, 1_000_000))
    }
    expect(draw(1, 7)).toEqual(draw(1, 7))
    expect(new Set([draw(1, 7), draw(2, 7), draw(1, 8), draw(7, 1)].map(String)).size).toBe(4)
  })
})
