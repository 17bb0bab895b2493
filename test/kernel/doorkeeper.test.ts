// Who is known to the doorkeeper: who came before, hardly ever anybody else, and of very many only the last.
import { beforeEach, describe, expect, it } from 'vitest'
import { createDoorkeeper, type Doorkeeper } from '../../src/kernel/doorkeeper.ts'

const keys = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_none, index) => `getLead 17 https://crm.example.com/api/admin/leads/${from + index}`)

describe('the doorkeeper', () => {
  let comesAgain: Doorkeeper
  beforeEach(() => {
    comesAgain = createDoorkeeper()
  })

  it('knows who came before, and nobody who did not', () => {
    expect(keys(10_000).filter(comesAgain)).toEqual([])
    const known = keys(10_000).filter(comesAgain).length
    // Some have taken the place of others.
    expect(known).toBeGreaterThan(9_000)
  })

  it('knows no empty place', () => {
    expect(['', '\u0000', 'a'].filter(comesAgain)).toEqual([])
    expect(['', '\u0000', 'a'].filter(comesAgain)).toEqual(['', '\u0000', 'a'])
  })

  it('forgets who came long ago', () => {
    keys(10_000).forEach(comesAgain)
    keys(1_000_000, 10_000).forEach(comesAgain)
    expect(keys(10_000).filter(comesAgain).length).toBeLessThan(100)
  })
})
