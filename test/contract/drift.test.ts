// Generated files must match their sources, as in `npm run regenerate -- --check`.
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { regenerate } from '../../codegen/regenerate.ts'
import { handlers } from '../../src/operations.ts'
import { facts } from '../support/schema.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

describe('regenerate', { timeout: 60_000 }, () => {
  it('finds nothing to say about openapi.yaml and nothing stale', async () => {
    const { findings, stale } = await regenerate({ root, check: true })
    expect(findings).toEqual([])
    expect(stale, 'Run: npm run regenerate').toEqual([])
  })
})

describe('operations.ts', () => {
  it('has a handler for every operation that needs one, and for no other', () => {
    const needed = facts.filter(([, { servedBy }]) => servedBy === 'handler').map(([id]) => id)
    expect(Object.keys(handlers).sort()).toEqual(needed.sort())
  })
})
