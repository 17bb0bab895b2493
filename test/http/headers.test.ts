// Tests the checker of reply headers (support/headers.ts). With a broken checker, all other tests
// would still pass.
import { describe, expect, it } from 'vitest'
import type { ContractDocument } from '../../codegen/read.ts'
import { contract } from '../support/contract.ts'
import { headerChecker } from '../support/headers.ts'

const { findings } = headerChecker(contract as ContractDocument)
const id = { 'x-request-id': '01JQ8Z7V2M' }

describe('the check of headers', () => {
  it.each([
    ['nothing to say', 'GET', '/api/admin/leads/7?fields=id', 200, { ...id, etag: '"3"' }, []],
    ['no ETag', 'GET', '/api/admin/leads/7', 200, id, ['GET /api/admin/leads/{id} 200 lacks the header ETag.']],
    [
      'a version without quotes',
      'HEAD',
      '/api/admin/leads/7',
      200,
      { ...id, etag: '3' },
      ['HEAD /api/admin/leads/{id} 200 has the header ETag: 3, which its schema does not allow.'],
    ],
    [
      'a place of something that was not made',
      'PUT',
      '/api/admin/leads/7',
      200,
      { ...id, etag: '"3"', location: 'http://localhost:8000/api/admin/leads/7' },
      ['PUT /api/admin/leads/{id} 200 has the header Location, which the contract does not declare.'],
    ],
    [
      'no Location of a created record',
      'POST',
      '/api/admin/leads',
      201,
      { ...id, etag: '"1"' },
      [/lacks the header Location/],
    ],
    ['no wait', 'GET', '/api/admin/leads', 429, id, [/lacks the header Retry-After/]],
    ['no request id, wherever', 'GET', '/nowhere', 404, {}, [/without X-Request-Id/]],
  ])('finds %s', (_what, method, url, status, headers, expected) => {
    const found = findings({ method, url }, status, headers)
    expect(found).toHaveLength(expected.length)
    for (const [at, each] of expected.entries()) expect(found[at]).toMatch(each)
  })
})
