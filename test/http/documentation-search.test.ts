// The search of the documentation: queries in the words of readers, and the size of its index. The
// module of the page runs here as in a browser; test/browser/documentation.test.ts tests the field.
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { problemCodes } from '../../src/contract/output/problem-codes.ts'
import { guides } from '../../src/http/docs/guides.ts'
import { outlineOf } from '../../src/http/docs/page-document.ts'
import { wordIndex } from '../../src/http/docs/search-index.ts'
import { synonyms } from '../../src/http/docs/search-synonyms.ts'
import type { ServedDocument } from '../../src/http/docs/served-document.ts'
import { contract } from '../support/contract.ts'
import { facts } from '../support/schema.ts'

// A module of the page has another ending than the files of this program.
const { find } = await import('../../src/http/docs/browser/search.js')

const source = contract as unknown as ServedDocument
const index = wordIndex(source)
const outline = { tags: outlineOf(source), guides, version: '1' }

beforeAll(() => {
  vi.stubGlobal('fetch', async (url: string) => Response.json(url.endsWith('search.json') ? index : outline))
})
afterAll(() => void vi.unstubAllGlobals())

/** Returns the last part of the addresses of the first results. */
const found = async (query: string): Promise<string[]> =>
  (await find(query)).hits.slice(0, 8).map(({ entry }) => entry.href.replace(/^.*\/(?=[^/]*$)/, ''))

describe('the search of the documentation', () => {
  it.each([
    // Operations, parameters, codes and guides by their own names.
    ['createLead', 'createLead', 1],
    ['move stage', 'moveLead', 1],
    ['/leads/kanban', 'kanbanLeads', 1],
    ['query_too_costly', 'errors#query_too_costly', 1],
    ['429', 'errors#rate_limited', 1],
    ['409', 'errors#unique_violation', 8],
    ['lead.won', 'webhooks#event-lead.won', 1],
    ['pagination', 'pagination', 1],
    ['quick start', 'quick-start', 1],
    ['verify signature', 'webhooks#verify-the-signature', 1],
    ['webhook signature', 'webhooks#verify-the-signature', 2],
    ['by cursor', 'pagination#by-cursor', 3],
    // Words of readers.
    ['upsert', 'upsertLead', 8],
    ['vat', 'lead-to-quote', 8],
    ['merge', 'mergePersons', 3],
    ['timezone', 'operating#time-zone', 3],
    ['timezone', 'filtering#date-format-and-time-zone', 3],
    ['time zone', 'operating#time-zone', 3],
    ['time zone', 'filtering#date-format-and-time-zone', 3],
    ['date format', 'filtering#date-format-and-time-zone', 3],
    ['api key', 'authentication#api-keys-oauth-and-single-sign-on', 3],
    ['api key', 'createToken', 8],
    ['bulk import', 'bulkWrite', 3],
    ['bulk import', 'sync#bulk-thousands-of-records', 3],
    ['bulk import', 'imports', 3],
    ['oauth', 'authentication#api-keys-oauth-and-single-sign-on', 3],
    ['backup', 'operating#backup-and-restore', 3],
    ['postgres', 'operating#postgresql-and-sqlite', 3],
    ['logging', 'operating#logs', 3],
    ['docker', 'operating#docker-systemd-proxies-https', 3],
    ['environment variables', 'operating#settings-and-environment-variables', 3],
    ['delete', 'deleteLead', 1],
    ['update', 'updateLead', 3],
    ['dedupe', 'privacy', 1],
    ['gdpr', 'erasePerson', 8],
    ['sso', 'authentication#api-keys-oauth-and-single-sign-on', 5],
    ['how do i delete a customer', 'deletePerson', 3],
    ['rate limit', 'errors#rate_limited', 3],
    ['einladung', 'createActivity', 8],
    ['csv', 'imports', 3],
    ['won', 'quick-start', 8],
    ['price', 'lead-to-quote', 8],
    ['dry run', 'idempotency#dry-runs', 1],
    ['pdf', 'printQuote', 1],
    ['organisation', 'createOrganization', 8],
    ['token', 'createToken', 8],
  ] as const)('finds for "%s" %s among the first %i', async (query, expected, place) => {
    expect((await found(query)).slice(0, place)).toContain(expected)
  })

  it('says which word it took for a misspelled one', async () => {
    const { hits, instead } = await find('webhok')
    expect([instead, hits[0]?.entry.title]).toEqual([['webhook'], 'Webhooks'])
    expect((await find('pagintion')).instead).toEqual(['pagination'])
  })

  it('offers the guides where nothing is found', async () => {
    const { hits, guides: offered } = await find('zzzzqqq')
    expect([hits, offered.map(({ title }) => title)]).toEqual([[], guides.map(({ title }) => title)])
  })

  it('finds every operation by its name, every problem code, and each guide by its title', async () => {
    for (const [id] of facts) expect((await found(id)).slice(0, 3), id).toContain(id)
    for (const code of Object.keys(problemCodes)) expect((await found(code))[0], code).toBe(`errors#${code}`)
    for (const { name, title } of guides) expect((await found(title)).slice(0, 2), title).toContain(name)
  })

  it('has no synonym that leads nowhere', async () => {
    for (const word of Object.keys(synonyms)) expect((await find(word)).hits.length, word).toBeGreaterThan(0)
  })
})

describe('the index of the search', () => {
  it('has at most 30 KB on the wire', () => {
    expect(gzipSync(JSON.stringify(index)).length).toBeLessThan(30_000)
  })
})
