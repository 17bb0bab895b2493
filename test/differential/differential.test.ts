// A short differential run: sends the same requests to both engines. `npm run test:differential` is
// the long run.
import { describe, expect, it } from 'vitest'
import { facts } from '../support/schema.ts'
import { differences } from './compare.ts'
import { differential } from './run-rounds.ts'

const headers = { 'content-type': 'application/json' }
const reply = (status: number, body: unknown) => ({ status, headers, bytes: Buffer.from(JSON.stringify(body)) })
const wanted = {
  operation: 'listLeads',
  method: 'GET',
  url: '/api/admin/leads',
  headers: [],
  bytes: undefined,
  who: 'admin',
  transport: 'inject',
} as const
const asked = { ...wanted, headers: [] }

describe('SQLite and PostgreSQL', () => {
  it('answer the same to the same requests, and write the same events', { timeout: 300_000 }, async () => {
    const found: string[] = []
    const { byStatus, requested } = await differential({
      seed: 7,
      requests: 600,
      onDifference: (text) => found.push(text),
    })
    expect(found).toEqual([])
    // Many requests succeeded, so the run tested more than refusals.
    expect(byStatus.get(200)).toBeGreaterThan(100)
    expect(byStatus.get(201)).toBeGreaterThan(20)
    expect(requested.size).toBeGreaterThan(facts.length / 2)
  })
})

describe('the comparison', () => {
  it('notices another status, another body and another header', () => {
    expect(differences('listLeads', asked, reply(200, { a: 1 }), reply(200, { a: 1 }))).toEqual([])
    expect(differences('listLeads', asked, reply(200, {}), reply(404, {}))).toHaveLength(1)
    expect(differences('listLeads', asked, reply(200, { a: 1 }), reply(200, { a: 2 }))).toHaveLength(1)
    const other = { ...reply(200, {}), headers: { ...headers, etag: '"2"' } }
    expect(differences('listLeads', asked, reply(200, {}), other)).toHaveLength(1)
    expect(differences('listLeads', asked, new Error('one'), reply(200, {}))).toHaveLength(1)
  })

  it('lets search results differ in their order and score, but not in their records', () => {
    const hits = (...ids: number[]) => reply(200, { data: ids.map((id, score) => ({ type: 'leads', id, score })) })
    expect(differences('searchRecords', asked, hits(1, 2), hits(2, 1))).toEqual([])
    expect(differences('searchRecords', asked, hits(1, 2), hits(1, 3))).toHaveLength(1)
    expect(differences('searchRecords', asked, hits(1, 2), hits(1))).toHaveLength(1)
  })
})
